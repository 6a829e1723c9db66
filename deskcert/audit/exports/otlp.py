"""OpenTelemetry traces as OTLP JSON: a run is a trace, a step with a duration a span, everything else a span's event.

One `ExportTraceServiceRequest`; ids are hexadecimal and 64-bit numbers are strings, as OTLP's JSON encoding has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from deskcert.audit.exports.events import VERSION, Event, RunEvents, stable_hex
from deskcert.audit.story import Group, Tone

__all__ = ["otlp_request"]

_INTERNAL: Final = 1
_OK, _ERROR = 1, 2
_SPANS: Final = frozenset({Group.ACTION, Group.DENIAL, Group.REFUSAL, Group.LOOK})


def otlp_request(runs: Iterable[RunEvents]) -> dict[str, Any]:
    return {"resourceSpans": [_resource(run) for run in runs]}


def _resource(run: RunEvents) -> dict[str, Any]:
    resource = {
        "service.name": run.agent or "agent",
        "deskcert.run": run.run,
        "deskcert.suite": run.suite,
        "deskcert.scenario": run.scenario,
        "deskcert.policy.digest": run.policy,
        "deskcert.ledger.word": run.word,
        "deskcert.ledger.root": run.root,
        "deskcert.ledger.records": run.records,
    }
    events = list(run.events())
    trace, root = stable_hex(run.run, run.root, size=16), stable_hex(run.run, "run", size=8)
    points = [_point(event) for event in events if event.step.group not in _SPANS]
    first = int(run.began.timestamp() * 1000)
    last = max((event.unix_ms + event.step.took_ms for event in events), default=first)
    whole = {
        "traceId": trace,
        "spanId": root,
        "name": f"run {run.scenario or run.run}",
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanos(first),
        "endTimeUnixNano": _nanos(last),
        "events": points,
        "status": {},
    }
    spans = [whole, *(_span(event, trace, root) for event in events if event.step.group in _SPANS)]
    scope = {"name": "deskcert", "version": VERSION}
    return {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [{"scope": scope, "spans": spans}]}


def _span(event: Event, trace: str, parent: str) -> dict[str, Any]:
    step = event.step
    began = event.unix_ms
    status: dict[str, Any] = {}
    if step.group in {Group.DENIAL, Group.REFUSAL} or step.tone is Tone.BAD:
        status = {"code": _ERROR, "message": step.code or step.outcome}
    elif step.tone is Tone.GOOD:
        status = {"code": _OK}
    return {
        "traceId": trace,
        "spanId": stable_hex(event.uid, size=8),
        "parentSpanId": parent,
        "name": step.what,
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanos(began),
        "endTimeUnixNano": _nanos(began + step.took_ms),
        "attributes": _attributes(_facts(event)),
        "status": status,
    }


def _point(event: Event) -> dict[str, Any]:
    return {
        "timeUnixNano": _nanos(event.unix_ms),
        "name": f"{event.step.group.value}: {event.step.what}",
        "attributes": _attributes(_facts(event)),
    }


def _facts(event: Event) -> dict[str, Any]:
    return {f"deskcert.{name}": value for name, value in event.step.as_json().items() if value != ""}


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in facts.items() if value != ""]


def _value(value: Any) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}


def _nanos(milliseconds: int) -> str:
    return str(milliseconds * 1_000_000)
