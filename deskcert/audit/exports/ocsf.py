"""OCSF 1.5.0, one event a line: every step as API Activity (6003), what a reviewer must see also as Detection Finding.

Classes, required attributes and numbers: https://schema.ocsf.io/1.5.0. What was blocked, and whether the guard let it
through, is said in the security_control profile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from deskcert.audit.exports.events import NOTABLE, VERSION, Event, RunEvents, grade
from deskcert.audit.story import Group, Tone

__all__ = ["ocsf_lines"]

_VERSION: Final = "1.5.0"
_API, _FINDING = 6003, 2004
_OTHER, _UPDATE = 99, 3
_SUCCESS, _FAILURE = 1, 2
_ALLOWED, _BLOCKED = 1, 2
_STEPS: Final = frozenset({Group.ACTION, Group.DENIAL, Group.REFUSAL, Group.NETWORK, Group.LOOK, Group.CLAIM})


def ocsf_lines(runs: Iterable[RunEvents]) -> Iterator[str]:
    for run in runs:
        for event in run.events():
            if event.step.group in _STEPS:
                yield json.dumps(_activity(event))
            if event.step.group in NOTABLE or event.blocked or event.uncertain:
                yield json.dumps(_finding(event))


def _common(event: Event, category: int, class_uid: int, activity: int) -> dict[str, Any]:
    failed = event.step.tone is Tone.BAD
    return {
        "category_uid": category,
        "class_uid": class_uid,
        "activity_id": activity,
        "type_uid": class_uid * 100 + activity,
        "time": event.unix_ms,
        "severity_id": grade(event) + 1,
        "status_id": _FAILURE if failed else _SUCCESS,
        "action_id": _BLOCKED if event.blocked else _ALLOWED,
        "disposition_id": _BLOCKED if event.blocked else _ALLOWED,
        "message": f"{event.step.what} {event.step.target}".strip(),
        "metadata": {
            "version": _VERSION,
            "profiles": ["security_control"],
            "uid": event.uid,
            "sequence": event.step.seq,
            "correlation_uid": event.run.run,
            "log_name": "ledger.jsonl",
            "product": {"name": "deskcert", "vendor_name": "deskcert", "version": VERSION},
        },
        "unmapped": _unmapped(event),
    }


def _unmapped(event: Event) -> dict[str, Any]:
    """What OCSF has no attribute for: the words of deskcert's own contract, and what proves them."""
    run = event.run
    ledger = {"word": run.word, "records": run.records, "root": run.root}
    return {"deskcert": {**event.step.as_json(), "scenario": run.scenario, "suite": run.suite, "ledger": ledger}}


def _activity(event: Event) -> dict[str, Any]:
    step, run = event.step, event.run
    acts = step.group in {Group.ACTION, Group.DENIAL, Group.REFUSAL}
    activity = _UPDATE if acts else _OTHER
    told = _common(event, 6, _API, activity)
    told["api"] = {
        "operation": step.what,
        "service": {"name": "deskcert guard" if step.group is not Group.NETWORK else "deskcert proxy"},
        "response": {"code": int(step.outcome) if step.outcome.isdecimal() else 0, "message": step.outcome},
    }
    if step.code:
        told["api"]["response"]["error"] = step.code
    told["actor"] = {"app_name": run.agent or "agent", "session": {"uid": run.run}}
    told["src_endpoint"] = {"name": "agent", "type_id": _OTHER, "type": "agent process"}
    if activity == _OTHER:
        told["activity_name"] = step.group.value
    return told


def _finding(event: Event) -> dict[str, Any]:
    step = event.step
    told = _common(event, 2, _FINDING, 1)
    if step.group in {Group.DENIAL, Group.NETWORK}:
        title = f"{step.what} was stopped by {step.rule or step.code or 'the guard'}"
    elif step.group is Group.TROUBLE:
        title = f"{step.what}: {step.target}"
    else:
        title = f"{step.what} may or may not have had its effect ({step.outcome})"
    told["finding_info"] = {"uid": event.uid, "title": title, "created_time": event.unix_ms, "desc": step.target}
    told["is_alert"] = event.blocked
    if step.rule:
        told["finding_info"]["analytic"] = {"name": step.rule, "uid": step.rule, "type_id": 1, "type": "Rule"}
    return told
