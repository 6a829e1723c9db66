"""The pipeline of the page commands, which have no element and no same-task form: navigation, history, dialogs.

What guards them (adapters.md): the policy on the address, or on the dialog and what opened it, before; after it the
committed document, or that the dialog is closed. The numbers are those of `pipeline`; (2) and (4) have nothing to ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from deskcert.adapters.base import Dialog, DispatchEnd, Navigation, PageAction
from deskcert.guard import payloads, policy, retry_gate, verification
from deskcert.guard.answers import Acted, acted, not_done
from deskcert.guard.delivery import judge_navigation
from deskcert.guard.machine import Machine, Open, Steps
from deskcert.guard.outcome import ActOutcome, Interrupted, NavigateRequest
from deskcert.guard.refusal import Refusal, denied, gate_refused, refused
from deskcert_schema.vocabulary import PipelinePoint, RecordKind

__all__ = ["navigate"]


def navigate(request: NavigateRequest) -> Steps[ActOutcome]:
    """Driven like `pipeline.act`."""
    return _Navigate(request, Machine(request.now_us, request.prev_commit_us)).run()


@dataclass(slots=True)
class _Navigate:
    request: NavigateRequest
    machine: Machine
    open: Open | None = None
    navigation: Navigation | None = None

    def run(self) -> Steps[ActOutcome]:
        try:
            return (yield from self._steps())
        except Interrupted as stop:
            return (yield from self._interrupted(stop))

    def _steps(self) -> Steps[ActOutcome]:
        request = self.request
        # Step (3): the address, before anything is dispatched; then the retry gate.
        subject = policy.page_subject(request.command, request.target, request.window)
        verdict = policy.decide(request.policy, subject)
        if isinstance(verdict, policy.Deny):
            return (yield from self._deny(denied(verdict), verdict.rule, verdict.source.as_json(), {}))
        gate = yield from self._gate()
        if not gate.passes:
            source = {"via": "target", "field": "fingerprint", "form": "exact"}
            more = {"gate": {"fingerprint": gate.fingerprint} | gate.as_json()}
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
        # Step (7): once.
        began = self.machine.now
        opened.sent = True
        action = self._page_action()
        navigation = yield from self.machine.go_to(
            request.url, seq=opened.seq, budget_ms=request.timeout_ms, action=action
        )
        self.navigation = navigation
        self.machine.count("dispatch", self.machine.now - began)
        yield from self.machine.release()
        yield from self.machine.say(PipelinePoint.VERIFIED)
        return (yield from self._conclude(opened, navigation))

    def _page_action(self) -> PageAction | None:
        request, dialog = self.request, self.request.dialog
        if request.command == "navigate":
            return None
        asked = Dialog(dialog["id"], dialog["type"], dialog["text"]) if dialog is not None else None
        return PageAction(request.command, request.url, asked, request.text)

    def _gate(self) -> Steps[retry_gate.GateDecision]:
        request = self.request
        mark = retry_gate.page_fingerprint(request.command, request.target)
        previous = request.gate.attempts.get(mark)
        unanswered = False
        if previous is not None:
            unanswered = retry_gate.is_unanswered((yield from self.machine.requests(previous.seq)))
        newest = request.newest_snapshot_seq
        return retry_gate.decide(
            mark, previous, unanswered=unanswered, newest_snapshot=newest, repeat_of=request.repeat_of
        )

    def _intend(self, allowed: policy.Allow, gate: retry_gate.GateDecision) -> Steps[Open | ActOutcome]:
        began = self.machine.now
        request = self.request
        payload = payloads.navigation_base(request) | {
            "policy": allowed.as_json(request.policy.digest),
            "actionability": {"checks": [], "looks": []},
            "mode": request.mode.value,
            "deadline_ms": request.timeout_ms,
            "fingerprint": gate.fingerprint,
            "gate": gate.as_json(),
            "prev_commit_us": self.machine.commit_us,
        }
        payload |= {"repeat_of": request.repeat_of} if request.repeat_of is not None else {}
        recorded = yield from self.machine.record(RecordKind.ACTION_INTENT, payload)
        self.machine.count("commit", self.machine.now - began)
        if recorded.seq is None:
            yield from self.machine.release()
            return self._not_done(refused.no_ledger(recorded.why), None)
        self.open = Open(recorded.seq, gate.fingerprint)
        return self.open

    def _conclude(self, opened: Open, navigation: Navigation) -> Steps[ActOutcome]:
        """Steps (8) and (9): the committed document is the read-back; the result's record."""
        request = self.request
        read = verification.read_page(request.command, navigation, request.window.document, request.url)
        judgement = judge_navigation(navigation, read)
        facts = payloads.navigation_json(navigation)
        steps = payloads.steps_of(request.command, judgement, facts)
        payload = payloads.result(opened.seq, judgement, read, facts, steps, phases_us=self.machine.phases)
        recorded = yield from self.machine.record(RecordKind.ACTION_RESULT, payload)
        self.open = None
        yield from self.machine.say(PipelinePoint.RESULT_RECORDED)
        pending = navigation.dialog is not None and judgement.ok
        attempt = retry_gate.Attempt(opened.seq, recorded.seq, judgement.delivery, judgement.ok, pending)
        state = request.gate.after(opened.fingerprint, attempt)
        done = Acted(
            request.command,
            request.target,
            request.mode.value,
            judgement,
            read,
            steps,
            facts,
            navigation.dialog,
        )
        outcome = acted(done, self.machine, state)
        if recorded.seq is None:
            outcome = replace(self._not_done(refused.no_result(judgement, recorded.why), None), gate=state)
        return replace(outcome, seq=opened.seq, result_seq=recorded.seq)

    def _interrupted(self, stop: Interrupted) -> Steps[ActOutcome]:
        yield from self.machine.release()
        if self.open is None:
            return (yield from self._refuse(refused.interrupted(stop.reason)))
        end = DispatchEnd.NO_ANSWER if self.open.sent else DispatchEnd.NOT_SENT
        return (yield from self._conclude(self.open, self.navigation or Navigation(end, error=stop.reason)))

    def _deny(self, why: Refusal, rule: str, source: Mapping[str, str], more: Mapping[str, Any]) -> Steps[ActOutcome]:
        assert why.kind is not None
        payload = payloads.navigation_base(self.request) | {
            "rule": rule,
            "kind": why.kind.value,
            "reason": str(why.details.get("reason") or why.message),
            "source": dict(source),
            "policy": {"digest": self.request.policy.digest},
            "phases_us": dict(self.machine.phases),
        }
        recorded = yield from self.machine.record(RecordKind.ACTION_DENIED, payload | dict(more))
        return self._not_done(why, recorded.seq)

    def _refuse(self, why: Refusal) -> Steps[ActOutcome]:
        payload = payloads.navigation_base(self.request) | {
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
