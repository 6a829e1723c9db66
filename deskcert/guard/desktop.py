"""The pipeline of the commands on the desktop, which have no element: programs, windows, the clipboard.

What guards them: the policy on the program, the window's title or the text, before; that it is still that very process
and title, in the act; after it the exit that was seen, the place or state read back, the clipboard read back by another
client. The numbers are those of `pipeline`; (2) is the session's, which found the target, and (4) has nothing to ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from deskcert.adapters.base import Dispatch, DispatchEnd
from deskcert.adapters.desktop import Operated, Operation
from deskcert.guard import payloads, policy, retry_gate
from deskcert.guard.answers import Acted, acted, not_done
from deskcert.guard.delivery import judge_dispatch
from deskcert.guard.desktop_subject import desktop_fingerprint, desktop_subject
from deskcert.guard.machine import Machine, Open, Steps
from deskcert.guard.outcome import ActOutcome, Interrupted, SecretFactory
from deskcert.guard.refusal import Refusal, denied, gate_refused, refused
from deskcert.guard.verification import NO_CLAIM, Verification
from deskcert_schema.vocabulary import Mode, PipelinePoint, RecordKind, VerificationScope

__all__ = ["DesktopRequest", "operate", "read_operation"]

_LEAST_BUDGET_MS: Final = 500
_CLAIMS: Final[Mapping[str, tuple[VerificationScope, str]]] = {
    "launch": (VerificationScope.ELEMENT_STATE, "the program runs and shows its tree"),
    "close-app": (VerificationScope.ELEMENT_STATE, "the process has ended"),
    "focus-window": (VerificationScope.ELEMENT_STATE, "the window has the keyboard"),
    "move-window": (VerificationScope.WINDOW_GEOMETRY, "the window is where it was asked to be"),
    "resize-window": (VerificationScope.WINDOW_GEOMETRY, "the window has the asked size"),
    "minimize": (VerificationScope.ELEMENT_STATE, "the window is minimized"),
    "maximize": (VerificationScope.ELEMENT_STATE, "the window is maximized"),
    "restore": (VerificationScope.ELEMENT_STATE, "the window is neither minimized nor maximized"),
    "clipboard-set": (VerificationScope.ELEMENT_VALUE, "the clipboard holds the asked text"),
}


@dataclass(frozen=True, slots=True)
class DesktopRequest:
    """`target` as it is recorded, from `desktop_subject`; `args` what the agent gave, without the clipboard's text."""

    action_no: int
    operation: Operation
    target: Mapping[str, Any]
    args: Mapping[str, Any]
    newest_snapshot_seq: int
    policy: policy.Policy
    gate: retry_gate.GateState
    run_key: bytes = field(repr=False)
    now_us: int
    secret: SecretFactory
    repeat_of: int | None = None
    timeout_ms: int = 10_000
    mode: Mode = Mode.HEADLESS
    prev_commit_us: int = 0

    @property
    def command(self) -> str:
        return self.operation.command

    @property
    def mac(self) -> str | None:
        text = self.operation.text
        return retry_gate.value_mac(self.run_key, text) if text is not None else None


def operate(request: DesktopRequest) -> Steps[ActOutcome]:
    """Driven like `pipeline.act`."""
    return _Operate(request, Machine(request.now_us, request.prev_commit_us)).run()


def read_operation(command: str, operated: Operated) -> Verification:
    """The adapter's read-back as the claim of this command."""
    read = operated.read
    if read is None:
        return NO_CLAIM
    scope, claim = _CLAIMS[command]
    return Verification(scope, claim, read.satisfied, read.observed, read.reason, read.tolerance, read.unit)


@dataclass(slots=True)
class _Operate:
    request: DesktopRequest
    machine: Machine
    open: Open | None = None
    operated: Operated | None = None

    def run(self) -> Steps[ActOutcome]:
        try:
            return (yield from self._steps())
        except Interrupted as stop:
            return (yield from self._interrupted(stop))

    def _steps(self) -> Steps[ActOutcome]:
        request = self.request
        # Step (3): the program, the window or the text, before anything is dispatched; then the retry gate.
        facts = policy.value_facts(request.policy, request.operation.text, request.command)
        verdict = policy.decide(request.policy, desktop_subject(request.command, request.target, facts))
        if isinstance(verdict, policy.Deny):
            return (yield from self._deny(denied(verdict), verdict.rule, verdict.source.as_json(), {}))
        gate = self._gate()
        if not gate.passes:
            source = {"via": "target", "field": "fingerprint", "form": "exact"}
            more = {"gate": {"fingerprint": gate.fingerprint} | gate.as_json()} | self._mac()
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
        # Step (7): once, compared in the act by the adapter; and step (8), its read-back.
        began = self.machine.now
        opened.sent = True
        budget = max(_LEAST_BUDGET_MS, request.timeout_ms)
        self.operated = yield from self.machine.operate(request.operation, seq=opened.seq, budget_ms=budget)
        self.machine.count("dispatch", self.machine.now - began)
        yield from self.machine.release()
        yield from self.machine.say(PipelinePoint.VERIFIED)
        return (yield from self._conclude(opened, self.operated))

    def _gate(self) -> retry_gate.GateDecision:
        """There are no requests of a desktop application to be unanswered."""
        request = self.request
        mark = desktop_fingerprint(request.command, request.target, request.mac)
        return retry_gate.decide(
            mark,
            request.gate.attempts.get(mark),
            unanswered=False,
            newest_snapshot=request.newest_snapshot_seq,
            repeat_of=request.repeat_of,
        )

    def _intend(self, allowed: policy.Allow, gate: retry_gate.GateDecision) -> Steps[Open | ActOutcome]:
        began = self.machine.now
        request = self.request
        payload = self._base() | {
            "policy": allowed.as_json(request.policy.digest) | self._value_rules(),
            "actionability": {"checks": [], "looks": []},
            "mode": request.mode.value,
            "deadline_ms": request.timeout_ms,
            "fingerprint": gate.fingerprint,
            "gate": gate.as_json(),
            "prev_commit_us": self.machine.commit_us,
        }
        payload |= self._mac()
        payload |= {"repeat_of": request.repeat_of} if request.repeat_of is not None else {}
        recorded = yield from self.machine.record(RecordKind.ACTION_INTENT, payload)
        self.machine.count("commit", self.machine.now - began)
        if recorded.seq is None:
            yield from self.machine.release()
            return self._not_done(refused.no_ledger(recorded.why), None)
        self.open = Open(recorded.seq, gate.fingerprint)
        return self.open

    def _conclude(self, opened: Open, operated: Operated) -> Steps[ActOutcome]:
        """Steps (8) and (9): the read-back; the result's record."""
        request = self.request
        read = read_operation(request.command, operated)
        judgement = judge_dispatch(operated.dispatch, read)
        facts = payloads.dispatch_json(operated.dispatch)
        steps = payloads.steps_of(request.command, judgement, facts)
        payload = payloads.result(opened.seq, judgement, read, facts, steps, phases_us=self.machine.phases)
        recorded = yield from self.machine.record(RecordKind.ACTION_RESULT, payload)
        self.open = None
        yield from self.machine.say(PipelinePoint.RESULT_RECORDED)
        attempt = retry_gate.Attempt(opened.seq, recorded.seq, judgement.delivery, judgement.ok)
        state = request.gate.after(opened.fingerprint, attempt)
        done = Acted(request.command, request.target, request.mode.value, judgement, read, steps, facts)
        outcome = acted(done, self.machine, state)
        if recorded.seq is None:
            outcome = replace(self._not_done(refused.no_result(judgement, recorded.why), None), gate=state)
        return replace(outcome, seq=opened.seq, result_seq=recorded.seq)

    def _interrupted(self, stop: Interrupted) -> Steps[ActOutcome]:
        yield from self.machine.release()
        if self.open is None:
            return (yield from self._refuse(refused.interrupted(stop.reason)))
        end = DispatchEnd.NO_ANSWER if self.open.sent else DispatchEnd.NOT_SENT
        lost = Operated(Dispatch(end, reached=stop.reached, error=stop.reason))
        return (yield from self._conclude(self.open, self.operated or lost))

    def _base(self) -> dict[str, Any]:
        request = self.request
        args: dict[str, Any] = {"timeout_ms": request.timeout_ms} | dict(request.args)
        if request.operation.text is not None:
            args["value"] = request.secret(request.operation.text, True)
        if request.repeat_of is not None:
            args["repeat_of"] = request.repeat_of
        window = request.operation.window
        seen = {"box": list(window.box), "states": sorted(window.states)} if window is not None else {}
        return {
            "command": request.command,
            "args": args,
            "action": request.action_no,
            "target": dict(request.target),
            "evidence": {"desktop": seen},
        }

    def _value_rules(self) -> dict[str, Any]:
        request = self.request
        facts = policy.value_facts(request.policy, request.operation.text, request.command)
        return {"value_rules": {k: v.value for k, v in facts.items()}} if facts else {}

    def _mac(self) -> dict[str, Any]:
        mac = self.request.mac
        return {"value_mac": mac} if mac is not None else {}

    def _deny(self, why: Refusal, rule: str, source: Mapping[str, str], more: Mapping[str, Any]) -> Steps[ActOutcome]:
        assert why.kind is not None
        payload = self._base() | {
            "rule": rule,
            "kind": why.kind.value,
            "reason": str(why.details.get("reason") or why.message),
            "source": dict(source),
            "policy": {"digest": self.request.policy.digest} | self._value_rules(),
            "phases_us": dict(self.machine.phases),
        }
        recorded = yield from self.machine.record(RecordKind.ACTION_DENIED, payload | dict(more))
        return self._not_done(why, recorded.seq)

    def _refuse(self, why: Refusal) -> Steps[ActOutcome]:
        payload = self._base() | {
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
