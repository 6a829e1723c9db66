"""The records of one action, as the ledger gets them. Source: formats.md, "Records: least payload".

Beyond those, what replay needs to decide again from the record alone: the identity that was compared (`target`), each
value rule's answer (`policy.value_rules`), the gate's inputs (`gate`), the facts of the dispatch (`dispatch`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deskcert.adapters.base import Dispatch, Navigation, RawNode
from deskcert.contract.evidence import ABSENT, Evidence, Known
from deskcert.contract.refs import Ref
from deskcert.guard.delivery import Judgement
from deskcert.guard.identity import saved_identity
from deskcert.guard.outcome import ActRequest, NavigateRequest
from deskcert.guard.policy import Allow, value_facts
from deskcert.guard.refusal import Refusal
from deskcert.guard.retry_gate import GateDecision
from deskcert.guard.verification import Verification
from deskcert_schema.vocabulary import StepOutcome

__all__ = [
    "args_of",
    "denied",
    "dispatch_json",
    "intent",
    "looks_of",
    "navigation_args",
    "navigation_base",
    "navigation_json",
    "refused",
    "result",
    "steps_of",
    "target_of",
    "target_shown",
]


def args_of(request: ActRequest, evidence: Evidence | None) -> dict[str, Any]:
    """The agent's arguments. A typed value is secret; of a field that may be a secure one no opening stays."""
    args: dict[str, Any] = {"ref": str(request.ref), "timeout_ms": request.timeout_ms}
    if request.action.value is not None:
        args["value"] = request.secret(request.action.value, _openable(request, evidence))
    if request.action.key is not None:
        args["key"] = request.action.key
    if request.to is not None:
        args["to"] = str(request.to[0])
    if request.action.direction is not None:
        args |= {"direction": request.action.direction, "amount": request.action.amount}
    if request.repeat_of is not None:
        args["repeat_of"] = request.repeat_of
    return args


def _openable(request: ActRequest, evidence: Evidence | None) -> bool:
    if "secure" in request.saved.node.get("states", ()):
        return False
    return evidence is not None and evidence.states.get("secure", ABSENT) in (ABSENT, Known(False))


def target_of(request: ActRequest) -> dict[str, Any]:
    """ref, role, name, context as the agent knew them, with the rest of the saved identity."""
    target = {"ref": str(request.ref)} | saved_identity(request.saved.node, request.saved.handle)
    if request.to is None:
        return target
    ref, saved = request.to
    return target | {"to": {"ref": str(ref)} | saved_identity(saved.node, saved.handle)}


def target_shown(request: ActRequest) -> dict[str, Any]:
    """ref, role, name for the answer."""
    shown = _shown(request.ref, request.saved.node)
    return shown if request.to is None else shown | {"to": _shown(request.to[0], request.to[1].node)}


def _shown(ref: Ref, node: RawNode) -> dict[str, Any]:
    shown = {"ref": str(ref), "role": node.get("role", "")}
    return shown | ({"name": node["name"]} if isinstance(node.get("name"), str) else {})


def _base(request: ActRequest, evidence: Evidence | None) -> dict[str, Any]:
    return {
        "command": request.action.command,
        "args": args_of(request, evidence),
        "action": request.action_no,
        "target": target_of(request),
        "snapshot_seq": request.snapshot_seq,
    } | ({"evidence": evidence.as_json()} if evidence is not None else {})


def looks_of(looks: Sequence[Mapping[str, Any]], evidence: Evidence | None) -> list[Mapping[str, Any]]:
    """The looks as they are recorded: the first one's evidence is left out where it is the record's own."""
    told = list(looks)
    first = next((n for n, look in enumerate(told) if "evidence" in look["changed"]), None)
    own = evidence.as_json() if evidence is not None else None
    if first is not None and told[first]["changed"]["evidence"] == own:
        told[first] = {**told[first], "changed": {k: v for k, v in told[first]["changed"].items() if k != "evidence"}}
    return told


def _value_rules(request: ActRequest) -> dict[str, Any]:
    facts = value_facts(request.policy, request.action.value, request.action.command)
    return {"value_rules": {k: v.value for k, v in facts.items()}} if facts else {}


def intent(
    request: ActRequest,
    evidence: Evidence,
    *,
    allowed: Allow,
    gate: GateDecision,
    checks: Sequence[Mapping[str, Any]],
    looks: Sequence[Mapping[str, Any]],
    mac: str | None,
    prev_commit_us: int,
) -> dict[str, Any]:
    """`action.intent`: all that the decision to act rests on."""
    payload = _base(request, evidence) | {
        "policy": allowed.as_json(request.policy.digest) | _value_rules(request),
        "actionability": {"checks": list(checks), "looks": looks_of(looks, evidence)},
        "mode": request.mode.value,
        "deadline_ms": request.timeout_ms,
        "fingerprint": gate.fingerprint,
        "gate": gate.as_json(),
        "prev_commit_us": prev_commit_us,
    }
    payload |= {"value_mac": mac} if mac is not None else {}
    return payload | ({"repeat_of": request.repeat_of} if request.repeat_of is not None else {})


def refused(
    request: ActRequest,
    why: Refusal,
    evidence: Evidence | None,
    *,
    checks: Sequence[Mapping[str, Any]],
    looks: Sequence[Mapping[str, Any]],
    phases_us: Mapping[str, int],
) -> dict[str, Any]:
    payload = _base(request, evidence) | {
        "code": why.code.value,
        "phase": why.phase,
        "mode": request.mode.value,
        "actionability": {"checks": list(checks), "looks": looks_of(looks, evidence)},
        "phases_us": dict(phases_us),
    }
    payload |= {"kind": why.kind.value} if why.kind is not None else {}
    return payload | ({"details": dict(why.details)} if why.details else {})


def denied(
    request: ActRequest,
    why: Refusal,
    rule: str,
    source: Mapping[str, str],
    evidence: Evidence,
    *,
    phases_us: Mapping[str, int],
) -> dict[str, Any]:
    """`action.denied`, by the policy or by the retry gate."""
    assert why.kind is not None
    return _base(request, evidence) | {
        "rule": rule,
        "kind": why.kind.value,
        "reason": str(why.details.get("reason") or why.message),
        "source": dict(source),
        "policy": {"digest": request.policy.digest} | _value_rules(request),
        "phases_us": dict(phases_us),
    }


def navigation_args(request: NavigateRequest) -> dict[str, Any]:
    args: dict[str, Any] = {"timeout_ms": request.timeout_ms}
    if request.command == "navigate":
        args["url"] = request.url
    if request.dialog is not None:
        args["dialog"] = request.dialog["id"]
    if request.tab is not None:
        args["tab"] = request.tab["id"]
    if request.text is not None:
        assert request.secret is not None
        args["value"] = request.secret(request.text, True)
    return args | ({"repeat_of": request.repeat_of} if request.repeat_of is not None else {})


def result(
    of: int,
    judgement: Judgement,
    verification: Verification,
    dispatch: Mapping[str, Any],
    steps: Sequence[Mapping[str, str]],
    *,
    phases_us: Mapping[str, int],
    hit: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """`action.result`: on every path after an intent."""
    out: dict[str, Any] = {
        "of": of,
        "ok": judgement.ok,
        "delivery": judgement.delivery.value,
        "retry": judgement.disposition.retry.value,
        "verification": verification.as_json(),
        "dispatch": dict(dispatch),
        "steps": [dict(s) for s in steps],
        "phases_us": dict(phases_us),
    }
    if judgement.code is not None:
        out["code"] = judgement.code.value
    if judgement.kind is not None:
        out["kind"] = judgement.kind.value
    return out | ({"hit": dict(hit)} if hit is not None else {})


def dispatch_json(dispatch: Dispatch) -> dict[str, Any]:
    out: dict[str, Any] = {
        "end": dispatch.end.value,
        "reached": dispatch.reached,
        "events_sent": list(dispatch.events_sent),
        "preparatory_scroll": dispatch.preparatory_scroll,
    }
    out |= {k: True for k in ("unsupported", "late", "physical") if getattr(dispatch, k)}
    if dispatch.differences:
        out["differences"] = list(dispatch.differences)
    if dispatch.dialog is not None:
        out["dialog"] = {"id": dispatch.dialog.id, "type": dispatch.dialog.type, "text": dispatch.dialog.text}
    for key in ("stopped_before", "error"):
        if (value := getattr(dispatch, key)) is not None:
            out[key] = value
    return out


def navigation_base(request: NavigateRequest) -> dict[str, Any]:
    """What every record of a navigation begins with; its evidence is the window that it leaves."""
    window = request.window
    before = {"id": window.id, "title": window.title, "url": window.url, "document": window.document}
    return {
        "command": request.command,
        "args": navigation_args(request),
        "action": request.action_no,
        "target": request.target,
        "evidence": {"window": before},
    }


def navigation_json(navigation: Navigation) -> dict[str, Any]:
    out: dict[str, Any] = {"end": navigation.end.value, "reached": navigation.committed is not None, "events_sent": []}
    if navigation.committed is not None:
        window = navigation.committed
        out["committed"] = {"id": window.id, "title": window.title, "url": window.url, "document": window.document}
    if navigation.dialog is not None:
        dialog = navigation.dialog
        out["dialog"] = {"id": dialog.id, "type": dialog.type, "text": dialog.text}
    for key in ("status", "error"):
        if (value := getattr(navigation, key)) is not None:
            out[key] = value
    return out


def steps_of(command: str, judgement: Judgement, dispatch: Mapping[str, Any]) -> list[dict[str, str]]:
    """What was tried, in order; `succeeded` only where the whole sequence went out."""
    if dispatch.get("skipped"):
        return [{"label": command, "outcome": StepOutcome.SKIPPED.value}]
    steps = []
    if dispatch.get("preparatory_scroll"):
        steps.append({"label": "scroll_into_view", "outcome": StepOutcome.SUCCEEDED.value})
    outcome = StepOutcome.SUCCEEDED if judgement.ok else StepOutcome.ATTEMPTED
    by_hand = any(str(event).startswith("xtest ") for event in dispatch.get("events_sent", ()))
    physical = by_hand or dispatch.get("physical") is True
    mechanism = "physical_synthetic" if physical else "semantic_api"
    return [*steps, {"label": command, "outcome": outcome.value, "mechanism": mechanism}]
