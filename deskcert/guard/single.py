"""The pipeline of every command that has no element: of a page or of the desktop. One dispatch, no wait.

The numbers are those of `pipeline`; (2) and (4) have nothing to ask here. What differs between them is asked of the
subclass: who is guarded, how it is dispatched, what is read back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from deskcert.adapters.base import Dialog, DispatchEnd
from deskcert.guard import payloads, policy, retry_gate
from deskcert.guard.answers import Acted, acted, not_done
from deskcert.guard.delivery import Judgement
from deskcert.guard.machine import Machine, Open, Steps
from deskcert.guard.outcome import ActOutcome, Interrupted
from deskcert.guard.refusal import Refusal, denied, gate_refused, refused
from deskcert.guard.verification import Verification
from deskcert_schema.vocabulary import Mode, PipelinePoint, RecordKind

__all__ = ["Came", "Request", "Single"]


class Request(Protocol):
    """What such a command is asked with, whatever it is about."""

    @property
    def command(self) -> str: ...
    @property
    def target(self) -> Mapping[str, Any]: ...
    @property
    def policy(self) -> policy.Policy: ...
    @property
    def gate(self) -> retry_gate.GateState: ...
    @property
    def now_us(self) -> int: ...
    @property
    def repeat_of(self) -> int | None: ...
    @property
    def timeout_ms(self) -> int: ...
    @property
    def mode(self) -> Mode: ...
    @property
    def prev_commit_us(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Came:
    """What came of the dispatch, judged. `facts` as they are recorded."""

    judgement: Judgement
    read: Verification
    facts: Mapping[str, Any]
    dialog: Dialog | None = None


class Single[R: Request](ABC):
    def __init__(self, request: R) -> None:
        self.request = request
        self.machine = Machine(request.now_us, request.prev_commit_us)
        self.open: Open | None = None

    @abstractmethod
    def subject(self) -> policy.Subject: ...

    @abstractmethod
    def gate(self) -> Steps[retry_gate.GateDecision]: ...

    @abstractmethod
    def base(self) -> dict[str, Any]:
        """What each of its records begins with."""

    @abstractmethod
    def dispatch(self, opened: Open) -> Steps[None]:
        """Step (7), once, and the read-back of (8) where it comes with it."""

    @abstractmethod
    def came(self, stop: tuple[DispatchEnd, Interrupted] | None) -> Came:
        """Of the dispatch; `stop`: it was interrupted, and where nothing is known of it, it ended so."""

    def asked(self) -> dict[str, Any]:
        """What the policy was told of a value, as it is recorded beside the policy's digest."""
        return {}

    def mark(self) -> dict[str, Any]:
        """What tells a secret value again, in records that the retry gate reads."""
        return {}

    def run(self) -> Steps[ActOutcome]:
        try:
            return (yield from self._steps())
        except Interrupted as stop:
            return (yield from self._interrupted(stop))

    def _steps(self) -> Steps[ActOutcome]:
        request = self.request
        # Step (3): the policy, before anything is dispatched; then the retry gate.
        verdict = policy.decide(request.policy, self.subject())
        if isinstance(verdict, policy.Deny):
            return (yield from self._deny(denied(verdict), verdict.rule, verdict.source.as_json(), {}))
        gate = yield from self.gate()
        if not gate.passes:
            source = {"via": "target", "field": "fingerprint", "form": "exact"}
            more = {"gate": {"fingerprint": gate.fingerprint} | gate.as_json()} | self.mark()
            return (yield from self._deny(gate_refused(gate), retry_gate.GATE_RULE, source, more))
        # Step (5): the lease, as for every dispatch.
        if not (yield from self.machine.take_lease(request.timeout_ms)):
            return (yield from self._refuse(refused.no_lease(request.timeout_ms)))
        yield from self.machine.say(PipelinePoint.LEASED)
        # Step (6): the intent, durable.
        opened = yield from self._intend(verdict, gate)
        if isinstance(opened, ActOutcome):
            return opened
        yield from self.machine.say(PipelinePoint.INTENT_RECORDED)
        began = self.machine.now
        opened.sent = True
        yield from self.dispatch(opened)
        self.machine.count("dispatch", self.machine.now - began)
        yield from self.machine.release()
        yield from self.machine.say(PipelinePoint.VERIFIED)
        return (yield from self._conclude(opened, self.came(None)))

    def _intend(self, allowed: policy.Allow, gate: retry_gate.GateDecision) -> Steps[Open | ActOutcome]:
        began = self.machine.now
        request = self.request
        payload = self.base() | {
            "policy": allowed.as_json(request.policy.digest) | self.asked(),
            "actionability": {"checks": [], "looks": []},
            "mode": request.mode.value,
            "deadline_ms": request.timeout_ms,
            "fingerprint": gate.fingerprint,
            "gate": gate.as_json(),
            "prev_commit_us": self.machine.commit_us,
        }
        payload |= self.mark()
        payload |= {"repeat_of": request.repeat_of} if request.repeat_of is not None else {}
        recorded = yield from self.machine.record(RecordKind.ACTION_INTENT, payload)
        self.machine.count("commit", self.machine.now - began)
        if recorded.seq is None:
            yield from self.machine.release()
            return self._not_done(refused.no_ledger(recorded.why), None)
        self.open = Open(recorded.seq, gate.fingerprint)
        return self.open

    def _conclude(self, opened: Open, came: Came) -> Steps[ActOutcome]:
        """Steps (8) and (9): the read-back; the result's record."""
        request, judgement = self.request, came.judgement
        steps = payloads.steps_of(request.command, judgement, came.facts)
        phases = self.machine.phases
        payload = payloads.result(opened.seq, judgement, came.read, came.facts, steps, phases_us=phases)
        recorded = yield from self.machine.record(RecordKind.ACTION_RESULT, payload)
        self.open = None
        yield from self.machine.say(PipelinePoint.RESULT_RECORDED)
        pending = came.dialog is not None and judgement.ok
        attempt = retry_gate.Attempt(opened.seq, recorded.seq, judgement.delivery, judgement.ok, pending)
        state = request.gate.after(opened.fingerprint, attempt)
        mode = request.mode.value
        done = Acted(request.command, request.target, mode, judgement, came.read, steps, came.facts, came.dialog)
        outcome = acted(done, self.machine, state)
        if recorded.seq is None:
            outcome = replace(self._not_done(refused.no_result(judgement, recorded.why), None), gate=state)
        return replace(outcome, seq=opened.seq, result_seq=recorded.seq)

    def _interrupted(self, stop: Interrupted) -> Steps[ActOutcome]:
        yield from self.machine.release()
        if self.open is None:
            return (yield from self._refuse(refused.interrupted(stop.reason)))
        end = DispatchEnd.NO_ANSWER if self.open.sent else DispatchEnd.NOT_SENT
        return (yield from self._conclude(self.open, self.came((end, stop))))

    def _deny(self, why: Refusal, rule: str, source: Mapping[str, str], more: Mapping[str, Any]) -> Steps[ActOutcome]:
        assert why.kind is not None
        payload = self.base() | {
            "rule": rule,
            "kind": why.kind.value,
            "reason": str(why.details.get("reason") or why.message),
            "source": dict(source),
            "policy": {"digest": self.request.policy.digest} | self.asked(),
            "phases_us": dict(self.machine.phases),
        }
        recorded = yield from self.machine.record(RecordKind.ACTION_DENIED, payload | dict(more))
        return self._not_done(why, recorded.seq)

    def _refuse(self, why: Refusal) -> Steps[ActOutcome]:
        payload = self.base() | {
            "code": why.code.value,
            "phase": why.phase,
            "mode": self.request.mode.value,
            "phases_us": dict(self.machine.phases),
        }
        payload |= {"kind": why.kind.value} if why.kind is not None else {}
        recorded = yield from self.machine.record(RecordKind.ACTION_REFUSED, payload)
        return self._not_done(why, recorded.seq)

    def _not_done(self, why: Refusal, seq: int | None) -> ActOutcome:
        return not_done(why, self.machine, self.request.gate, seq)
