"""From what happened to the answer that the agent gets. Source: contract.md, "Acting result"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deskcert.adapters.base import Dialog, RequestSeen
from deskcert.guard.delivery import Judgement
from deskcert.guard.machine import Machine
from deskcert.guard.outcome import ActOutcome
from deskcert.guard.refusal import Refusal, refused
from deskcert.guard.retry_gate import GateState
from deskcert.guard.verification import Verification

__all__ = ["Acted", "acted", "not_done", "request_json"]


@dataclass(frozen=True, slots=True)
class Acted:
    """The facts of an action that got as far as its intent."""

    command: str
    target: Mapping[str, Any]
    mode: str
    judgement: Judgement
    verification: Verification
    steps: Sequence[Mapping[str, str]]
    dispatch: Mapping[str, Any]
    """As recorded."""
    dialog: Dialog | None = None
    hit: Mapping[str, Any] | None = None
    requests: Sequence[RequestSeen] = field(default=())


def acted(facts: Acted, machine: Machine, gate: GateState) -> ActOutcome:
    """On a failure the acting result stands under `details.after_action`."""
    data: dict[str, Any] = {
        "action": facts.command,
        "target": dict(facts.target),
        "mode": facts.mode,
        "steps": [dict(s) for s in facts.steps],
        "disposition": facts.judgement.disposition.as_json(),
        "details": _details(facts, machine),
        "verification": facts.verification.as_json(),
    }
    if facts.hit is not None:
        data["hit"] = dict(facts.hit)
    if facts.requests:
        data["network"] = [request_json(r) for r in facts.requests]
    if not facts.judgement.ok:
        return not_done(refused.after_dispatch(facts.judgement, facts.dispatch, data), machine, gate, None)
    return ActOutcome(
        ok=True,
        disposition=facts.judgement.disposition,
        gate=gate,
        kind=facts.judgement.kind,
        data=data,
        commit_us=machine.commit_us,
    )


def _details(facts: Acted, machine: Machine) -> dict[str, Any]:
    details: dict[str, Any] = {
        "auto_wait": {
            "read_only_resolve_attempts": machine.resolves,
            "read_only_preflight_attempts": len(machine.looks),
            "lease_contention_count": machine.contention,
            "lease_hold_ms": machine.lease_hold_us // 1_000,
        },
        "verification_scope": facts.verification.scope.value,
        "application_commit": "not_verified",
    }
    if facts.verification.reason is not None:
        details["verification_reason"] = facts.verification.reason
    if facts.dialog is not None:
        details["pending_dialog"] = {"id": facts.dialog.id, "type": facts.dialog.type, "text": facts.dialog.text}
    return details


def not_done(why: Refusal, machine: Machine, gate: GateState, seq: int | None) -> ActOutcome:
    kind = {"kind": why.kind.value} if why.kind is not None else {}
    return ActOutcome(
        ok=False,
        disposition=why.disposition,
        gate=gate,
        code=why.code,
        kind=why.kind,
        message=why.message,
        suggestion=why.suggestion,
        recovery=why.recovery,
        details=kind | dict(why.details),
        seq=seq,
        commit_us=machine.commit_us,
    )


def request_json(request: RequestSeen) -> dict[str, Any]:
    out: dict[str, Any] = {"method": request.method, "url": request.url, "how": request.how, "state": request.state}
    return out | ({"status": request.status} if request.status is not None else {})
