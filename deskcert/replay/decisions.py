"""Recompute every decision of a run from its ledger and blobs alone: no browser, no clock, no secret.

For each record the recorded inputs go through the guard's own pure functions, and what comes out is compared with what
was recorded. A difference means that the record is not complete, that the guard has changed since, or that the record
was not written by it. Where an input was secret the recorded derived fact stands in for it: a rule's answer about a
typed value, the value's MAC, equal or not. What the network did (`gate.unanswered`) is an input, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deskcert.adapters.base import Action, Dialog, Dispatch, DispatchEnd, Navigation, WindowState
from deskcert.contract.evidence import Evidence
from deskcert.guard import actionability, identity, policy, retry_gate
from deskcert.guard.delivery import judge_dispatch, judge_navigation, nothing_sent
from deskcert.guard.desktop_subject import (
    DESKTOP_COMMANDS,
    WITHOUT_ELEMENT,
    desktop_fingerprint,
    desktop_subject,
)
from deskcert.guard.patterns import Match
from deskcert.guard.verification import Verification
from deskcert.replay.looks import decide_looks
from deskcert_ledger import Record, expand, read_records
from deskcert_ledger.blob import is_reference
from deskcert_schema.disposition import Delivery, Disposition
from deskcert_schema.errors import DeskcertError
from deskcert_schema.vocabulary import Code, DetailKind, Mode, RecordKind, VerificationScope

__all__ = ["Difference", "Recomputed", "expanded", "recompute", "recompute_records"]


@dataclass(frozen=True, slots=True)
class Difference:
    seq: int
    what: str
    """`policy.verdict`, `identity`, `checks`, …: which decision came out otherwise."""
    recorded: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"record {self.seq}: {self.what}: recorded {self.recorded!r}, recomputed {self.recomputed!r}"


@dataclass(frozen=True, slots=True)
class Recomputed:
    decisions: int
    """How many records were decided again: none recomputed is no proof."""
    differences: tuple[Difference, ...]
    looks: int = 0
    """Looks of waits that were decided again, too."""
    looks_without_evidence: int = 0
    """Looks of which only the statuses could be used: a ledger of an earlier version."""


def recompute(folder: Path) -> list[Difference]:
    """Every difference in one run. Raises the ledger's errors for a folder that cannot be read."""
    return list(recompute_records(expanded(folder)).differences)


def expanded(folder: Path) -> Iterator[Record]:
    """The records with their blobs put back, but for trees, which no decision reads."""
    for record in read_records(folder):
        data = {k: _whole(folder, v) for k, v in record.data.items() if k != "tree"}
        yield Record(record.seq, record.kind, record.w, record.t, record.m, data, record.line)


def _whole(folder: Path, value: Any) -> Any:
    """Long members lie in blobs one by one, at any depth."""
    if isinstance(value, dict):
        return expand(folder, value) if is_reference(value) else {k: _whole(folder, v) for k, v in value.items()}
    return [_whole(folder, v) for v in value] if isinstance(value, list) else value


def recompute_records(records: Iterator[Record]) -> Recomputed:
    """The records of one run, in order, blobs put back."""
    run = _Run()
    for record in records:
        try:
            run.take(record)
        except (KeyError, TypeError, ValueError, DeskcertError) as exc:
            run.differences.append(Difference(record.seq, "record", "complete", f"cannot be decided again: {exc!r}"))
    return Recomputed(run.decisions, tuple(run.differences), run.looks, run.looks_without_evidence)


@dataclass(slots=True)
class _Run:
    """What the records so far say: the same state that the session kept."""

    rules: policy.Policy | None = None
    windows: dict[int, WindowState] = field(default_factory=dict)
    """Observation's sequence number → its window."""
    gate: retry_gate.GateState = field(default_factory=retry_gate.GateState)
    intents: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """Those whose result has not come yet."""
    tries: dict[int, int] = field(default_factory=dict)
    """Number of an acting command → intents that it has led to."""
    newest: int = 0
    """Sequence number of the newest observation."""
    decisions: int = 0
    looks: int = 0
    looks_without_evidence: int = 0
    differences: list[Difference] = field(default_factory=list)

    def take(self, record: Record) -> None:
        data = record.data
        match record.kind:
            case RecordKind.RUN_START:
                start = data["policy"]
                self.rules = policy.compile_policy(start["content"], digest=start["digest"])
            case RecordKind.OBSERVATION:
                self.windows[record.seq] = _window(data["window"])
                if not data.get("options", {}).get("root"):  # a look into a part is none at the whole
                    self.newest = record.seq
            case RecordKind.ACTION_DENIED:
                self.decisions += 1
                self._denied(record.seq, data)
                self._looks(record.seq, data)
            case RecordKind.ACTION_REFUSED if "evidence" in data and "target" in data:
                self.decisions += 1
                self._refused(record.seq, data)
                self._looks(record.seq, data)
            case RecordKind.ACTION_REFUSED if "target" in data and "snapshot_seq" in data:
                self._looks(record.seq, data)
            case RecordKind.ACTION_INTENT:
                self.decisions += 1
                self._intent(record.seq, data)
                self.tries[data["action"]] = self.tries.get(data["action"], 0) + 1
                self._looks(record.seq, data)
                self.intents[record.seq] = data
            case RecordKind.ACTION_RESULT:
                self.decisions += 1
                self._result(record.seq, data)
            case RecordKind.DOWNLOAD if data["event"] == "begun":
                self.decisions += 1
                self._download(record.seq, data)
            case _:
                pass

    def _same(self, seq: int, what: str, recorded: Any, recomputed: Any) -> None:
        if recorded != recomputed:
            self.differences.append(Difference(seq, what, recorded, recomputed))

    # --- one record kind each -----------------------------------------------------------------------------------------

    def _denied(self, seq: int, data: Mapping[str, Any]) -> None:
        self._identity(seq, data, "same")
        verdict = self._policy(data)
        kind = data["detail_kind"]
        if data["rule"] == retry_gate.GATE_RULE:
            self._same(seq, "policy.verdict", "allow", "allow" if isinstance(verdict, policy.Allow) else verdict.rule)
            self._same(seq, "kind", kind, DetailKind.UNSAFE_RETRY.value)
            self._gate(seq, data, data["gate"]["fingerprint"], passes=False)
            return
        if isinstance(verdict, policy.Allow):
            self.differences.append(Difference(seq, "policy.verdict", data["rule"], "allow"))
            return
        self._same(seq, "rule", data["rule"], verdict.rule)
        self._same(seq, "kind", kind, verdict.kind.value)
        self._same(seq, "source", dict(data["source"]), verdict.source.as_json())

    def _refused(self, seq: int, data: Mapping[str, Any]) -> None:
        """Whatever evidence the refusal rests on; one without, such as a target that is gone, has nothing to decide.
        Nor has a command without an element: it waited for the lease in vain."""
        if data["command"] in WITHOUT_ELEMENT:
            return
        found = self._identity_of(data)
        if data["phase"] == "resolve":
            changed = data.get("details", {}).get("changed")
            if changed is not None:
                self._same(
                    seq, "identity", list(changed), list(found.which) if isinstance(found, identity.Changed) else "same"
                )
            else:
                self._same(seq, "identity", "unknown", _identity_word(found))
            return
        if data["phase"] != "actionability" or not data["actionability"]["checks"]:
            return
        self._identity(seq, data, "same")
        verdict = self._policy(data)
        self._same(seq, "policy.verdict", "allow", "allow" if isinstance(verdict, policy.Allow) else verdict.rule)
        report = self._checks(seq, data)
        match actionability.verdict_of(report):
            case actionability.Ready():
                self.differences.append(Difference(seq, "actionability", data["code"], "ready"))
            case actionability.NotYet():
                self._same(seq, "actionability", data.get("detail_kind"), DetailKind.ACTIONABILITY_TIMEOUT.value)
            case actionability.Blocked(_, code):
                self._same(seq, "actionability", data["code"], code.value)

    def _intent(self, seq: int, data: Mapping[str, Any]) -> None:
        self._identity(seq, data, "same")
        verdict = self._policy(data)
        if isinstance(verdict, policy.Allow):
            recorded = {k: v for k, v in data["policy"].items() if k != "value_rules"}
            self._same(seq, "policy", recorded, verdict.as_json(data["policy"]["digest"]))
        else:
            self.differences.append(Difference(seq, "policy.verdict", data["policy"]["verdict"], verdict.rule))
        satisfied = data.get("satisfied") is True
        if data["command"] not in WITHOUT_ELEMENT:
            report = self._checks(seq, data)
            ready = isinstance(actionability.verdict_of(report), actionability.Ready)
            self._same(seq, "actionability", True, ready or satisfied)
        self._gate(seq, data, data["fingerprint"], passes=data["gate"]["verdict"] == "pass")
        if not satisfied:
            self._same(seq, "gate.verdict", data["gate"]["verdict"], "pass")

    def _result(self, seq: int, data: Mapping[str, Any]) -> None:
        intent = self.intents.pop(data["of"], None)
        if intent is None:
            self.differences.append(Difference(seq, "of", data["of"], "no open intent"))
            return
        delivery = Delivery(data["delivery"])
        self._same(seq, "retry", data["retry"], Disposition(delivery).retry.value)
        pending = data.get("detail_kind") == DetailKind.PENDING_DIALOG
        attempt = retry_gate.Attempt(data["of"], seq, delivery, data["ok"], pending)
        self.gate = self.gate.after(intent["fingerprint"], attempt)
        if "cause" in data:  # written by a recovery, which knows of no dispatch
            self._same(seq, "delivery", data["delivery"], Delivery.UNKNOWN.value)
            return
        judgement = _judge(intent["command"], data)
        again = {
            "ok": judgement.ok,
            "code": judgement.code.value if judgement.code else None,
            "kind": judgement.kind.value if judgement.kind else None,
            "delivery": judgement.delivery.value,
        }
        if data.get("code") == Code.INTERNAL:  # the guard itself failed: only what was delivered follows from the facts
            del again["code"], again["kind"]
        recorded = {k: data.get(k) for k in ("ok", "code", "delivery")} | {"kind": data.get("detail_kind")}
        for what, value in again.items():
            self._same(seq, what, recorded[what], value)

    def _download(self, seq: int, data: Mapping[str, Any]) -> None:
        """A file that began to come: the same verdict on its address and its name; what was denied is not kept."""
        assert self.rules is not None
        target, window = data["target"], _window(data["evidence"]["window"])
        verdict = policy.decide(self.rules, policy.download_subject(target["url"], target["file"], window))
        if isinstance(verdict, policy.Allow):
            self._same(seq, "policy", data["policy"], verdict.as_json(data["policy"]["digest"]))
            return
        again = (verdict.rule, verdict.kind.value, verdict.source.as_json())
        self._same(seq, "policy", (data.get("rule"), data.get("detail_kind"), dict(data.get("source", {}))), again)
        self._same(seq, "kept", data["kept"], recomputed=False)

    def _looks(self, seq: int, data: Mapping[str, Any]) -> None:
        if data["command"] in WITHOUT_ELEMENT:
            return

        def say(what: str, recorded: Any, recomputed: Any) -> None:
            self._same(seq, what, recorded, recomputed)

        missing = decide_looks(
            data, lambda seen: self._policy_on(data, seen), say, intents=self.tries.get(data["action"], 0)
        )
        self.looks += len(data.get("looks") or data.get("actionability", {}).get("looks", ()))
        self.looks_without_evidence += missing

    # --- the decisions ------------------------------------------------------------------------------------------------

    def _identity(self, seq: int, data: Mapping[str, Any], expected: str) -> None:
        if data["command"] not in WITHOUT_ELEMENT:
            self._same(seq, "identity", expected, _identity_word(self._identity_of(data)))

    def _identity_of(self, data: Mapping[str, Any]) -> identity.Identity:
        return identity.compare_saved(data["target"], Evidence.from_json(data["evidence"]))

    def _policy(self, data: Mapping[str, Any]) -> policy.Verdict:
        assert self.rules is not None
        if data["command"] in policy.PAGE_COMMANDS:
            subject = policy.page_subject(data["command"], data["target"], _window(data["evidence"]["window"]))
            return policy.decide(self.rules, subject)
        if data["command"] in DESKTOP_COMMANDS:
            return policy.decide(self.rules, desktop_subject(data["command"], data["target"], _facts(data)))
        return self._policy_on(data, Evidence.from_json(data["evidence"]))

    def _policy_on(self, data: Mapping[str, Any], evidence: Evidence) -> policy.Verdict:
        assert self.rules is not None
        window = self.windows[data["snapshot_seq"]]
        return policy.decide(self.rules, policy.subject_of(_action(data), evidence, window, _facts(data)))

    def _checks(self, seq: int, data: Mapping[str, Any]) -> actionability.Report:
        report = actionability.judge(_action(data), Evidence.from_json(data["evidence"]), Mode(data["mode"]))
        self._same(seq, "checks", list(data["actionability"]["checks"]), report.as_json())
        return report

    def _gate(self, seq: int, data: Mapping[str, Any], mark: str, *, passes: bool) -> None:
        """The fingerprint from its parts; the attempt before and the newer snapshot from the records; the verdict."""
        if data["command"] in policy.PAGE_COMMANDS:
            again = retry_gate.page_fingerprint(data["command"], data["target"])
        elif data["command"] in DESKTOP_COMMANDS:
            again = desktop_fingerprint(data["command"], data["target"], data.get("value_mac"))
        else:
            again = retry_gate.fingerprint(_action(data), Evidence.from_json(data["evidence"]), data.get("value_mac"))
        self._same(seq, "fingerprint", mark, again)
        gate = data["gate"]
        previous = self.gate.attempts.get(mark)
        decision = retry_gate.decide(
            mark,
            previous,
            unanswered=gate["unanswered"],
            newest_snapshot=self.newest,
            repeat_of=gate.get("repeat_of"),
        )
        recorded = {k: v for k, v in gate.items() if k != "fingerprint"}
        self._same(seq, "gate", recorded, decision.as_json())
        self._same(seq, "gate.passes", passes, decision.passes)


def _judge(command: str, data: Mapping[str, Any]) -> Any:
    facts, told = data["dispatch"], data["verification"]
    read = Verification(
        VerificationScope(told["scope"]),
        told.get("claim"),
        told.get("satisfied"),
        told.get("observed"),
        told.get("reason"),
    )
    if facts.get("skipped"):
        return nothing_sent()
    end = DispatchEnd(facts["end"])
    dialog = Dialog(**facts["dialog"]) if "dialog" in facts else None
    if command in policy.PAGE_COMMANDS:
        committed = _window(facts["committed"]) if "committed" in facts else None
        return judge_navigation(Navigation(end, committed, facts.get("status"), facts.get("error"), dialog), read)
    dispatch = Dispatch(
        end,
        facts["reached"],
        tuple(facts["events_sent"]),
        facts.get("stopped_before"),
        dialog=dialog,
        error=facts.get("error"),
        unsupported=facts.get("unsupported", False),
        late=facts.get("late", False),
    )
    return judge_dispatch(dispatch, read)


def _facts(data: Mapping[str, Any]) -> dict[str, Match]:
    """What each rule about a value said of the secret one."""
    return {k: Match(v) for k, v in data.get("policy", {}).get("value_rules", {}).items()}


def _identity_word(found: identity.Identity) -> str:
    match found:
        case identity.Same():
            return "same"
        case identity.Changed():
            return "changed"
        case identity.Doubtful():
            return "unknown"


def _action(data: Mapping[str, Any]) -> Action:
    return Action(data["command"], key=data["args"].get("key"))


def _window(raw: Mapping[str, Any]) -> WindowState:
    return WindowState(raw["id"], raw["title"], raw["url"], raw["document"])
