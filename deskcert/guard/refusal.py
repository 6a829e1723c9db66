"""Why an action was not carried out, or failed: code, kind, the sentence a person reads, and what to do about it.

`denied` and `gate_refused` are denials: terminal, `retryable: false`, no recovery. Everything else stands in `refused`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deskcert.guard.actionability import CheckResult
from deskcert.guard.delivery import Judgement
from deskcert.guard.outcome import recovery_for
from deskcert.guard.policy import Deny
from deskcert.guard.retry_gate import GateDecision
from deskcert_schema.disposition import Delivery, Disposition
from deskcert_schema.vocabulary import Code, DetailKind

__all__ = ["Refusal", "denied", "gate_refused", "refused"]


@dataclass(frozen=True, slots=True)
class Refusal:
    code: Code
    kind: DetailKind | None
    phase: str
    message: str
    suggestion: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    delivery: Delivery = Delivery.NOT_DELIVERED

    @property
    def disposition(self) -> Disposition:
        return Disposition(self.delivery)

    @property
    def recovery(self) -> Mapping[str, Any] | None:
        return None if self.details.get("retryable") is False else recovery_for(self.code, self.delivery)


def denied(verdict: Deny) -> Refusal:
    details = {
        "rule": verdict.rule,
        "reason": verdict.reason,
        "source": verdict.source.as_json(),
        "retryable": False,
    }
    unknown = verdict.kind is DetailKind.UNKNOWN_EVIDENCE
    message = (
        f"the rule {verdict.rule!r} "
        + ("cannot be answered: " if unknown else "denies this")
        + (verdict.reason if unknown else (f": {verdict.reason}" if verdict.reason else ""))
    )
    suggestion = "do not try another way to the same effect; finish with outcome refused if the task needs it"
    return Refusal(Code.POLICY_DENIED, verdict.kind, "policy", message, suggestion, details)


def gate_refused(gate: GateDecision) -> Refusal:
    previous = gate.previous
    assert previous is not None
    details = {
        "retryable": False,
        "original": {"seq": previous.seq, "disposition": Disposition(previous.delivery).as_json()},
        "newer_snapshot": gate.newer_snapshot,
    }
    message = f"this repeats the action of record {previous.seq}, which was {previous.delivery.value.replace('_', ' ')}"
    suggestion = "take a new snapshot and look whether it had its effect"
    if not previous.settled or gate.unanswered:
        suggestion += f"; if it must be repeated all the same, name it with repeat_of {previous.seq}"
    return Refusal(Code.POLICY_DENIED, DetailKind.UNSAFE_RETRY, "gate", message, suggestion, details)


class refused:  # noqa: N801  -- reads as `refused.gone(…)`
    """One constructor a situation."""

    @staticmethod
    def gone(reason: str) -> Refusal:
        kind = {
            "navigated": DetailKind.RESOLUTION_DOCUMENT_CHANGED,
            "process_changed": DetailKind.PROCESS_CHANGED,
        }.get(reason, DetailKind.RESOLUTION_COMPLETE_ABSENCE)
        what = {
            "navigated": "its page was left or reloaded",
            "process_changed": "its application was restarted",
        }.get(reason, "it is no longer on the page")
        return Refusal(Code.STALE_REF, kind, "resolve", f"the element is gone: {what}", "take a new snapshot")

    @staticmethod
    def changed(which: Sequence[str]) -> Refusal:
        kind = DetailKind.RESOLUTION_DOCUMENT_CHANGED if "document" in which else DetailKind.RESOLUTION_IDENTITY_CHANGED
        message = f"the element is not what the snapshot showed: {', '.join(which)} changed"
        return Refusal(Code.STALE_REF, kind, "resolve", message, "take a new snapshot", {"changed": list(which)})

    @staticmethod
    def blocked(check: CheckResult, code: Code) -> Refusal:
        message = f"{check.check.value}: {check.reason}"
        return Refusal(
            code, None, "actionability", message, "choose another element or command", {"check": check.as_json()}
        )

    @staticmethod
    def timed_out(
        code: Code,
        kind: DetailKind,
        phase: str,
        why: str,
        *,
        times_ms: tuple[int, int],
        report: list[dict[str, Any]] | None,
    ) -> Refusal:
        """`times_ms`: what was allowed, and what went by."""
        timeout_ms, elapsed_ms = times_ms
        last: dict[str, Any] = {"phase": phase, "why": why} | ({"checks": report} if report else {})
        details = {"timeout_ms": timeout_ms, "elapsed_ms": elapsed_ms, "last_report": last}
        message = f"not possible within {timeout_ms} ms: {why}"
        return Refusal(code, kind, phase, message, "take a new snapshot and look what is in the way", details)

    @staticmethod
    def no_lease(timeout_ms: int) -> Refusal:
        message = f"another action held the input for {timeout_ms} ms"
        return Refusal(Code.TIMEOUT, DetailKind.LEASE_TIMEOUT, "lease", message, "try again")

    @staticmethod
    def no_ledger(why: str | None) -> Refusal:
        message = f"nothing was dispatched, because it could not be recorded: {why or 'the ledger does not answer'}"
        return Refusal(Code.LEDGER_UNAVAILABLE, None, "ledger", message, "stop: no action of this run can be recorded")

    @staticmethod
    def no_result(judgement: Judgement, why: str | None) -> Refusal:
        message = f"the action was carried out, but its result could not be recorded: {why or 'no answer'}"
        stop = "stop: no action of this run can be recorded"
        return Refusal(Code.LEDGER_UNAVAILABLE, None, "ledger", message, stop, {}, judgement.delivery)

    @staticmethod
    def interrupted(reason: str) -> Refusal:
        return Refusal(Code.INTERNAL, None, "gate", f"interrupted before anything was dispatched: {reason}")

    @staticmethod
    def after_dispatch(judgement: Judgement, dispatch: Mapping[str, Any], data: Mapping[str, Any]) -> Refusal:
        """`dispatch` as recorded."""
        assert judgement.code is not None
        told = ("preparatory_scroll", "differences", "stopped_before", "error")
        details = {"after_action": dict(data)} | {k: dispatch[k] for k in told if dispatch.get(k)}
        message, suggestion = _after(judgement)
        if judgement.kind is DetailKind.INTERCEPTOR_LATE:
            message = f"physical input cannot be held back here: {dispatch.get('error')}"
            suggestion = "reload the page, or navigate to it again; then it is loaded under the guard"
        elif judgement.code is Code.ACTION_NOT_SUPPORTED:
            message = f"this cannot be done to the element here: {dispatch.get('error', 'the platform has no way')}"
            suggestion = "do it another way; pointer and keys need a session with --headed"
        return Refusal(judgement.code, judgement.kind, "dispatch", message, suggestion, details, judgement.delivery)


def _after(judgement: Judgement) -> tuple[str, str]:
    look = "take a new snapshot and look whether it had its effect before anything is repeated"
    match judgement.kind:
        case DetailKind.CHANGED_AT_DISPATCH:
            return "the element changed in the moment of the dispatch; nothing was sent", "take a new snapshot"
        case DetailKind.COMPONENT_LOST:
            return "the dispatch could not be made; nothing was sent", "take a new snapshot"
        case DetailKind.STOPPED_MIDWAY:
            return "the element changed while the events went out; the rest was not sent", look
        case DetailKind.POST_ACTION_VERIFICATION:
            return "it was delivered, but reading back shows something else", look
        case DetailKind.NAVIGATION_FAILED if judgement.delivery is Delivery.NOT_DELIVERED:
            return "the navigation was not started", "check the address"
        case DetailKind.NAVIGATION_FAILED:
            return "no document was committed", "check the address, then take a new snapshot"
        case _:
            return "no answer to the dispatch within its time; it may have had its effect", look
