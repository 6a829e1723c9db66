"""The guard's pipeline for one ref action, as a generator: it yields what it needs done, and is sent the answer.

(1) parse: the caller has a ref, a command and typed arguments, or there is no request
(2) resolve, strictly      (3) policy, then the retry gate      (4) actionability, a bounded wait of (2)-(4)
(5) lease, and (2)-(4) once more under it      (6) intent, durable      (7) dispatch, once, compared in the act
(8) verify by reading back      (9) the result's record, on every path

`act` does no I/O and reads no clock. Drive it so, carrying out each step:

    steps = act(request)
    step = next(steps)
    while True: step = steps.send(await carry_out(step))        # StopIteration.value is the ActOutcome

A driver that stops waiting throws `Interrupted` and carries out what is still yielded, but first lets a `Record` or a
`TakeLease` that is under way finish, because half of either is worse than waiting. An `AdapterError` thrown in at a
`Look` or a `Perform` counts as the answer. Only `close()` leaves a lease or an open intent behind. Source: guard.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from deskcert.adapters.base import Action, Dispatch, DispatchEnd, Gone, Live, Probed, Unreadable
from deskcert.contract.evidence import Evidence
from deskcert.guard import actionability, identity, payloads, policy, retry_gate, verification
from deskcert.guard.answers import Acted, acted, not_done
from deskcert.guard.delivery import judge_dispatch, nothing_sent
from deskcert.guard.machine import Machine, Open, Steps
from deskcert.guard.outcome import ActOutcome, ActRequest, Interrupted
from deskcert.guard.refusal import Refusal, denied, gate_refused, refused
from deskcert.guard.verification import NO_CLAIM, Verification
from deskcert_schema.disposition import Delivery
from deskcert_schema.vocabulary import Code, DetailKind, PipelinePoint, RecordKind

__all__ = ["act"]

LOOK_EVERY_MS: Final = 100
LOOK_BUDGET_MS: Final = 750
DISPATCH_BUDGET_MS: Final = 2_000
PER_CHARACTER_MS: Final = 25
MOST_PASSES: Final = 12
"""Intents of one action at most: a page that never holds still is not given a ledger full of them."""


def dispatch_budget(action: Action) -> int:
    """Milliseconds. Typing takes its time for every character."""
    return DISPATCH_BUDGET_MS + (PER_CHARACTER_MS * len(action.value or "") if action.command == "type" else 0)


def act(request: ActRequest) -> Steps[ActOutcome]:
    """One action from its request to its outcome."""
    return _Act(request, Machine(request.now_us, request.prev_commit_us)).run()


@dataclass(frozen=True, slots=True)
class Considered:
    """(2)-(4) of one look, when nothing forbids the action."""

    evidence: Evidence
    report: actionability.Report
    allowed: policy.Allow
    gate: retry_gate.GateDecision
    satisfied: bool
    """The asked state already holds."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A wait-class check fails, or the look could not be read."""

    phase: str
    why: str
    code: Code
    kind: DetailKind
    report: actionability.Report | None = None
    evidence: Evidence | None = None


type Seen = Considered | Waiting | ActOutcome


@dataclass(slots=True)
class _Act:
    request: ActRequest
    machine: Machine
    open: Open | None = None
    dispatch: Dispatch | None = None
    """Of the open intent, once it has answered."""
    earlier: list[int] = field(default_factory=list)

    def run(self) -> Steps[ActOutcome]:
        try:
            outcome = yield from self._passes()
        except Interrupted as stop:
            outcome = yield from self._interrupted(stop)
        return self._with_earlier(outcome)

    def _passes(self) -> Steps[ActOutcome]:
        """(2)-(9), again from (2) while the application changes under the dispatch and time remains."""
        while True:
            ready = yield from self._until_ready()
            if isinstance(ready, ActOutcome):
                return ready
            if ready.satisfied:
                return (yield from self._skip(ready))
            locked = yield from self._under_lease()
            if isinstance(locked, ActOutcome):
                return locked
            if isinstance(locked, Waiting):
                continue
            outcome = yield from self._carry_out(locked)
            if not self._again(outcome):
                return outcome

    def _again(self, outcome: ActOutcome) -> bool:
        """Nothing was sent because E had changed, or the target was gone by then: look again while time remains."""
        changed = outcome.kind in (DetailKind.CHANGED_AT_DISPATCH, DetailKind.COMPONENT_LOST)
        if not changed or outcome.disposition.delivery is not Delivery.NOT_DELIVERED:
            return False
        if self.request.timeout_ms == 0 or self._late() or len(self.earlier) + 1 >= MOST_PASSES:
            return False
        assert outcome.seq is not None
        self.earlier.append(outcome.seq)
        return True

    def _with_earlier(self, outcome: ActOutcome) -> ActOutcome:
        if not self.earlier:
            return outcome
        earlier = {"earlier": list(self.earlier)}
        if not outcome.ok:
            return replace(outcome, details={**outcome.details, **earlier})
        return replace(outcome, data={**outcome.data, "details": {**outcome.data.get("details", {}), **earlier}})

    # --- (2)-(4) ------------------------------------------------------------------------------------------------------

    def _until_ready(self) -> Steps[Considered | ActOutcome]:
        """(4) The bounded wait, outside the lease: a look every 100 ms. A late look is discarded, even a good one."""
        began = self.machine.now
        last: Waiting | None = None
        while True:
            seen = yield from self._look()
            if isinstance(seen, ActOutcome):
                return seen
            if isinstance(seen, Considered) and not self._late():
                yield from self.machine.say(PipelinePoint.ACTIONABLE)
                self.machine.count("wait", self.machine.now - began)
                return seen
            if isinstance(seen, Waiting):
                last = seen
            if self.request.timeout_ms == 0 or self._late():
                self.machine.count("wait", self.machine.now - began)
                return (yield from self._timed_out(last))
            left = self.machine.left_ms(self.request.timeout_ms)
            yield from self.machine.sleep(min(LOOK_EVERY_MS, max(1, left)))

    def _look(self) -> Steps[Seen]:
        """One look, and what it means: (2), then (3), then the gate, then (4)."""
        before = self.machine.now
        self.machine.resolves += 1
        looked = yield from self._probe(self._look_budget())
        self.machine.count("resolve", self.machine.now - before)
        match looked:
            case Gone(reason):
                self.machine.note_look({"probe": f"gone: {reason}"})
                return (yield from self._refuse(refused.gone(reason)))
            case Unreadable(why):
                self.machine.note_look({"probe": f"unreadable: {why}"})
                return Waiting("resolve", why, Code.APP_UNRESPONSIVE, DetailKind.OBSERVATION_INCOMPLETE)
            case Live(evidence):
                return (yield from self._consider(evidence))

    def _consider(self, evidence: Evidence) -> Steps[Seen]:
        request = self.request
        # Step (2): the retained object must still be what was saved.
        match identity.compare_saved(payloads.target_of(request), evidence):
            case identity.Changed(which):
                self.machine.note_look({"probe": f"changed: {', '.join(which)}"}, evidence)
                return (yield from self._refuse(refused.changed(which), evidence))
            case identity.Doubtful(which):
                self.machine.note_look({"probe": f"unknown: {', '.join(which)}"}, evidence)
                why = f"the element's {', '.join(which)} could not be read"
                incomplete = DetailKind.OBSERVATION_INCOMPLETE
                return Waiting("resolve", why, Code.APP_UNRESPONSIVE, incomplete, evidence=evidence)
            case identity.Same():
                yield from self.machine.say(PipelinePoint.RESOLVED)
        # Step (3): policy is terminal and immediate, whatever else is wrong with the target.
        began = self.machine.now
        facts = policy.value_facts(request.policy, request.action.value, request.action.command)
        verdict = policy.decide(
            request.policy, policy.subject_of(request.action, evidence, request.saved.window, facts)
        )
        if isinstance(verdict, policy.Deny):
            source = verdict.source.as_json()
            return (yield from self._deny(denied(verdict), verdict.rule, source, evidence, more={}))
        # A state that already holds passes the retry gate, because nothing will be sent.
        satisfied = verification.holds_already(request.action, evidence)
        gate = yield from self._gate(evidence)
        if not gate.passes and not satisfied:
            return (yield from self._deny_retry(gate, evidence))
        self.machine.count("policy", self.machine.now - began)
        # Step (4): can it be done now?
        report = actionability.judge(request.action, evidence, request.mode)
        self.machine.note_look(actionability.facts(report, evidence), evidence)
        considered = Considered(evidence, report, verdict, gate, satisfied)
        if satisfied:
            return considered
        match actionability.verdict_of(report):
            case actionability.Ready():
                return considered
            case actionability.Blocked(check, code):
                return (yield from self._refuse(refused.blocked(check, code), evidence, report))
            case actionability.NotYet(check):
                why = f"{check.check.value}: {check.reason or check.status.value}"
                kind = DetailKind.ACTIONABILITY_TIMEOUT
                return Waiting("actionability", why, Code.TIMEOUT, kind, report, evidence)

    def _gate(self, evidence: Evidence) -> Steps[retry_gate.GateDecision]:
        request = self.request
        mark = retry_gate.fingerprint(request.action, evidence, self._mac())
        previous = request.gate.attempts.get(mark)
        unanswered = False
        if previous is not None:
            unanswered = retry_gate.is_unanswered((yield from self.machine.requests(previous.seq)))
        newest = request.newest_snapshot_seq
        return retry_gate.decide(
            mark, previous, unanswered=unanswered, newest_snapshot=newest, repeat_of=request.repeat_of
        )

    def _mac(self) -> str | None:
        value = self.request.action.value
        return retry_gate.value_mac(self.request.run_key, value) if value is not None else None

    # --- (5) ----------------------------------------------------------------------------------------------------------

    def _under_lease(self) -> Steps[Seen]:
        """(5) The lease, and under it (2)-(4) again: what was true while waiting is not what is true now."""
        timeout = self.request.timeout_ms
        if not (yield from self.machine.take_lease(max(self.machine.left_ms(timeout), LOOK_EVERY_MS))):
            return (yield from self._refuse(refused.no_lease(timeout)))
        yield from self.machine.say(PipelinePoint.LEASED)
        seen = yield from self._look()
        if isinstance(seen, Considered) and not self._late():
            if not seen.satisfied:
                return seen
            yield from self.machine.release()
            return (yield from self._skip(seen))
        yield from self.machine.release()
        if isinstance(seen, ActOutcome):
            return seen
        if timeout == 0 or self._late():
            return (yield from self._timed_out(seen if isinstance(seen, Waiting) else None))
        return seen

    # --- (6)-(9) ------------------------------------------------------------------------------------------------------

    def _carry_out(self, found: Considered) -> Steps[ActOutcome]:
        """(6) to (9) for one intent."""
        opened = yield from self._intend(found)
        if isinstance(opened, ActOutcome):
            return opened
        yield from self.machine.say(PipelinePoint.INTENT_RECORDED)
        # Step (7): once. From here on every path ends with a result.
        began = self.machine.now
        handle, action = self.request.saved.handle, self.request.action
        opened.sent = True
        dispatch = yield from self.machine.perform(
            handle, action, found.evidence, seq=opened.seq, budget_ms=dispatch_budget(action)
        )
        self.dispatch = dispatch
        self.machine.count("dispatch", self.machine.now - began)
        yield from self.machine.release()
        # Step (8): read back.
        began = self.machine.now
        read = yield from self._verify(dispatch, found.evidence)
        self.machine.count("verify", self.machine.now - began)
        yield from self.machine.say(PipelinePoint.VERIFIED)
        return (yield from self._conclude(opened, dispatch, read))

    def _intend(self, found: Considered) -> Steps[Open | ActOutcome]:
        """(6) No acknowledgement, no dispatch."""
        began = self.machine.now
        payload = payloads.intent(
            self.request,
            found.evidence,
            allowed=found.allowed,
            gate=found.gate,
            checks=found.report.as_json(),
            looks=self.machine.looks,
            mac=self._mac(),
            prev_commit_us=self.machine.commit_us,
        )
        payload |= {"satisfied": True} if found.satisfied else {}
        payload |= {"earlier": list(self.earlier)} if self.earlier else {}
        recorded = yield from self.machine.record(RecordKind.ACTION_INTENT, payload)
        self.machine.count("commit", self.machine.now - began)
        if recorded.seq is None:
            yield from self.machine.release()
            return self._not_done(refused.no_ledger(recorded.why), None)
        self.open, self.dispatch = Open(recorded.seq, found.gate.fingerprint), None
        return self.open

    def _verify(self, dispatch: Dispatch, before: Evidence) -> Steps[Verification]:
        """(8) Up to 400 ms, ending at the first satisfied look; never a second delivery. What was cut short, or stands
        behind an open dialog, is not read."""
        if dispatch.end is not DispatchEnd.COMPLETED or dispatch.dialog is not None:
            return NO_CLAIM
        if self.request.action.command == "drag":
            return verification.read_drag(dispatch.events_sent)
        if not verification.has_claim(self.request.action):
            return NO_CLAIM
        until = self.machine.now + verification.SETTLE_MS * 1_000
        while True:
            probed = yield from self._probe(LOOK_BUDGET_MS)
            read = verification.read_back(self.request.action, probed, before)
            if read.settled or isinstance(probed, Gone) or self.machine.now >= until:
                return read
            yield from self.machine.sleep(verification.SETTLE_STEP_MS)

    def _conclude(self, opened: Open, dispatch: Dispatch, read: Verification) -> Steps[ActOutcome]:
        """(9) The result's record, the gate's next state, the answer."""
        judgement = judge_dispatch(dispatch, read)
        facts = payloads.dispatch_json(dispatch)
        steps = payloads.steps_of(self.request.action.command, judgement, facts)
        hit = dispatch.hit.as_json() if dispatch.hit is not None else None
        payload = payloads.result(opened.seq, judgement, read, facts, steps, phases_us=self.machine.phases, hit=hit)
        result_seq, why = yield from self._close(payload)
        pending = judgement.kind is DetailKind.PENDING_DIALOG
        attempt = retry_gate.Attempt(opened.seq, result_seq, judgement.delivery, judgement.ok, pending)
        state = self.request.gate.after(opened.fingerprint, attempt)
        done = Acted(
            self.request.action.command,
            payloads.target_shown(self.request),
            self.request.mode.value,
            judgement,
            read,
            steps,
            facts,
            dispatch.dialog,
            hit,
        )
        if judgement.delivery is not Delivery.NOT_DELIVERED:
            done = replace(done, requests=(yield from self.machine.requests(opened.seq)))
        outcome = acted(done, self.machine, state)
        if result_seq is None:
            outcome = replace(self._not_done(refused.no_result(judgement, why), None), gate=state)
        return replace(outcome, seq=opened.seq, result_seq=result_seq)

    def _skip(self, found: Considered) -> Steps[ActOutcome]:
        """The asked state already holds: an intent and a result, and nothing sent between them."""
        opened = yield from self._intend(found)
        if isinstance(opened, ActOutcome):
            return opened
        judgement, read = nothing_sent(), verification.held_already(self.request.action)
        facts = payloads.dispatch_json(Dispatch(DispatchEnd.NOT_SENT, reached=False)) | {"skipped": True}
        command = self.request.action.command
        steps = payloads.steps_of(command, judgement, facts)
        payload = payloads.result(opened.seq, judgement, read, facts, steps, phases_us=self.machine.phases)
        result_seq, _ = yield from self._close(payload)
        target = payloads.target_shown(self.request)
        done = Acted(command, target, self.request.mode.value, judgement, read, steps, facts)
        return replace(acted(done, self.machine, self.request.gate), seq=opened.seq, result_seq=result_seq)

    def _close(self, payload: Mapping[str, Any]) -> Steps[tuple[int | None, str | None]]:
        recorded = yield from self.machine.record(RecordKind.ACTION_RESULT, payload)
        self.open = None
        yield from self.machine.say(PipelinePoint.RESULT_RECORDED)
        return recorded.seq, recorded.why

    # --- paths that end early -----------------------------------------------------------------------------------------

    def _refuse(
        self, why: Refusal, evidence: Evidence | None = None, report: actionability.Report | None = None
    ) -> Steps[ActOutcome]:
        """`action.refused`, from any phase before the intent."""
        yield from self.machine.release()
        checks = report.as_json() if report is not None else []
        payload = payloads.refused(
            self.request, why, evidence, checks=checks, looks=self.machine.looks, phases_us=self.machine.phases
        )
        recorded = yield from self.machine.record(RecordKind.ACTION_REFUSED, payload)
        return self._not_done(why, recorded.seq)

    def _deny_retry(self, gate: retry_gate.GateDecision, evidence: Evidence) -> Steps[ActOutcome]:
        source = {"via": "target", "field": "fingerprint", "form": "exact"}
        more: dict[str, Any] = {"gate": {"fingerprint": gate.fingerprint} | gate.as_json()}
        if (mac := self._mac()) is not None:
            more["value_mac"] = mac
        return (yield from self._deny(gate_refused(gate), retry_gate.GATE_RULE, source, evidence, more=more))

    def _deny(
        self, why: Refusal, rule: str, source: Mapping[str, str], evidence: Evidence, *, more: Mapping[str, Any]
    ) -> Steps[ActOutcome]:
        """`action.denied`: terminal, immediate, nothing was sent."""
        yield from self.machine.release()
        if self.machine.looks:
            self.machine.note_look({"probe": f"denied: {rule}"}, evidence)
            looks = payloads.looks_of(self.machine.looks, evidence)
            more = {**more, "looks": looks, "mode": self.request.mode.value}
        payload = payloads.denied(self.request, why, rule, source, evidence, phases_us=self.machine.phases)
        recorded = yield from self.machine.record(RecordKind.ACTION_DENIED, payload | dict(more))
        return self._not_done(why, recorded.seq)

    def _timed_out(self, last: Waiting | None) -> Steps[ActOutcome]:
        """The time-out carries the last report: which check, why, what covers the target."""
        if last is None:
            why = "the look that would have satisfied came too late"
            last = Waiting("actionability", why, Code.TIMEOUT, DetailKind.ACTIONABILITY_TIMEOUT)
        times = (self.request.timeout_ms, self.machine.elapsed_ms())
        report = last.report.as_json() if last.report is not None else None
        refusal = refused.timed_out(last.code, last.kind, last.phase, last.why, times_ms=times, report=report)
        return (yield from self._refuse(refusal, last.evidence, last.report))

    def _interrupted(self, stop: Interrupted) -> Steps[ActOutcome]:
        """The driver gave up. What is due is still done: the lease is returned, an open intent gets its result."""
        yield from self.machine.release()
        opened = self.open
        if opened is None:
            return (yield from self._refuse(refused.interrupted(stop.reason)))
        dispatch = self.dispatch
        if dispatch is None:
            end = DispatchEnd.NO_ANSWER if opened.sent else DispatchEnd.NOT_SENT
            dispatch = Dispatch(end, reached=opened.sent and stop.reached, error=stop.reason)
        return (yield from self._conclude(opened, dispatch, NO_CLAIM))

    # --- shorthands ---------------------------------------------------------------------------------------------------

    def _probe(self, budget_ms: int) -> Steps[Probed]:
        return self.machine.probe(self.request.saved.handle, self.request.action, budget_ms)

    def _not_done(self, why: Refusal, seq: int | None) -> ActOutcome:
        return not_done(why, self.machine, self.request.gate, seq)

    def _late(self) -> bool:
        return self.machine.late(self.request.timeout_ms)

    def _look_budget(self) -> int:
        if self.request.timeout_ms == 0:
            return LOOK_BUDGET_MS
        return max(LOOK_EVERY_MS, min(LOOK_BUDGET_MS, self.machine.left_ms(self.request.timeout_ms)))
