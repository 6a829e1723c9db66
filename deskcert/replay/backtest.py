"""What another policy would have decided about the actions of recorded runs.

Each decision's recorded evidence is put before the new policy, every look of its wait in order: the first look that it
denies decides, as it would have in the run. What the new policy asks about a typed value is known where the old policy
asked the same, or where the value's opening is still there. Else both answers are tried: rules only ever add denials,
and allow rules only ever take some away, so two extremes suffice. Where they disagree the answer is `indeterminate`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final

from deskcert.adapters.base import Action, WindowState
from deskcert.contract.evidence import Evidence
from deskcert.guard import policy
from deskcert.guard.desktop_subject import DESKTOP_COMMANDS, desktop_subject
from deskcert.guard.patterns import Match
from deskcert.guard.retry_gate import GATE_RULE
from deskcert.guard.rules import merge
from deskcert.replay.looks import Look, looks_of
from deskcert_ledger import Record
from deskcert_schema.vocabulary import RecordKind

__all__ = ["Answer", "Reconsidered", "back_test", "policy_for_run"]


class Answer(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    INDETERMINATE = "indeterminate"


@dataclass(frozen=True, slots=True)
class Reconsidered:
    """One action, under the policy of its run and under the new one."""

    run: str
    scenario: str
    seq: int
    command: str
    target: str
    before: Answer
    rule_before: str
    """Empty when it was allowed."""
    after: Answer
    rule_after: str
    why: str
    """Of an indeterminate answer."""
    delivered: bool
    """Whether the action reached, or may have reached, the application."""

    @property
    def changed(self) -> bool:
        return self.before is not self.after

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "run": self.run,
            "scenario": self.scenario,
            "seq": self.seq,
            "command": self.command,
            "target": self.target,
            "before": self.before.value,
            "after": self.after.value,
            "delivered": self.delivered,
        }
        for key, value in (("rule_before", self.rule_before), ("rule_after", self.rule_after), ("why", self.why)):
            told |= {key: value} if value else {}
        return told


def policy_for_run(new: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
    """NEW with the rules that the run's scenario adds, as a live run would have it. A rule of the scenario whose id
    NEW has itself is NEW's."""
    added = start.get("scenario", {}).get("policy_added", {})
    taken = {rule["id"] for part in ("deny", "allow") for rule in new.get(part) or ()}
    kept = {
        part: [rule for rule in added.get(part) or () if rule["id"] not in taken]
        for part in ("deny", "allow")
        if added.get(part)
    }
    return merge(new, {**{k: v for k, v in added.items() if k == "default"}, **kept})


type Openings = Mapping[str, tuple[str, str]]
"""Digest → (name, value)."""


def back_test(records: Iterator[Record], new: Mapping[str, Any], openings: Openings) -> Iterator[Reconsidered]:
    """Every action of one run about which a policy was asked. Raises `ConfigError` for a policy that is none."""
    run, scenario, asked = "", "", None
    windows: dict[int, WindowState] = {}
    waiting: dict[int, Reconsidered] = {}
    for record in records:
        data = record.data
        match record.kind:
            case RecordKind.RUN_START:
                run, scenario = str(data.get("run", "")), str(data.get("scenario", {}).get("id", ""))
                asked = _Asked.of(policy_for_run(new, data), data["policy"]["content"], openings)
            case RecordKind.OBSERVATION:
                windows[record.seq] = _window(data["window"])
            case RecordKind.ACTION_RESULT:
                if (found := waiting.pop(data["of"], None)) is not None:
                    yield _with_delivery(found, data["delivery"] != "not_delivered")
            case RecordKind.ACTION_INTENT | RecordKind.ACTION_DENIED | RecordKind.ACTION_REFUSED if asked is not None:
                if "evidence" not in data and not any(look.evidence for look in _looks(data)):
                    continue
                told = asked.about(data, windows)
                if told is None:
                    continue
                found = _reconsidered(record, run, scenario, told)
                if record.kind == RecordKind.ACTION_INTENT:
                    waiting[record.seq] = found
                else:
                    yield found
    yield from (_with_delivery(found, delivered=True) for found in waiting.values())


def _looks(data: Mapping[str, Any]) -> list[Look]:
    return looks_of(data) if "snapshot_seq" in data else []


def _with_delivery(found: Reconsidered, delivered: bool) -> Reconsidered:
    return Reconsidered(**{name: getattr(found, name) for name in found.__slots__} | {"delivered": delivered})


def _reconsidered(record: Record, run: str, scenario: str, told: tuple[Answer, str, str]) -> Reconsidered:
    data = record.data
    denied = record.kind == RecordKind.ACTION_DENIED and data["rule"] != GATE_RULE
    target = data["target"]
    shown = target.get("url") or " ".join(str(target[k]) for k in ("role", "name") if isinstance(target.get(k), str))
    return Reconsidered(
        run=run,
        scenario=scenario,
        seq=record.seq,
        command=str(data["command"]),
        target=shown,
        before=Answer.DENY if denied else Answer.ALLOW,
        rule_before=str(data["rule"]) if denied else "",
        after=told[0],
        rule_after=told[1],
        why=told[2],
        delivered=False,
    )


_DENYING: Final = {"deny": Match.YES, "allow": Match.NO}
_ALLOWING: Final = {"deny": Match.NO, "allow": Match.YES}


@dataclass(frozen=True, slots=True)
class _Asked:
    """The new policy, and what is known about typed values."""

    rules: policy.Policy
    same_question: Mapping[str, str]
    """Id of a new rule that asks about a value → id of the old rule that asked exactly that."""
    openings: Openings

    @classmethod
    def of(cls, new: Mapping[str, Any], old: Mapping[str, Any], openings: Openings) -> _Asked:
        asked_before = {json.dumps(r["value"], sort_keys=True): r["id"] for r in _rules(old) if "value" in r}
        same = {
            r["id"]: asked_before[key]
            for r in _rules(new)
            if "value" in r and (key := json.dumps(r["value"], sort_keys=True)) in asked_before
        }
        return cls(policy.compile_policy(new, digest=""), same, openings)

    def about(self, data: Mapping[str, Any], windows: Mapping[int, WindowState]) -> tuple[Answer, str, str] | None:
        if data["command"] in policy.PAGE_COMMANDS:
            window_left = _window(data["evidence"]["window"])
            return _told(policy.decide(self.rules, policy.page_subject(data["command"], data["target"], window_left)))
        facts, unknown = self._facts(data)
        if data["command"] in DESKTOP_COMMANDS:
            return self._decide(lambda given: desktop_subject(data["command"], data["target"], given), facts, unknown)
        action = Action(data["command"], key=data["args"].get("key"))
        window = windows[data["snapshot_seq"]]
        answer = None
        for evidence in _evidences(data):
            answer = self._decide(partial(policy.subject_of, action, evidence, window), facts, unknown)
            if answer[0] is not Answer.ALLOW:
                break
        return answer

    def _decide(
        self, subject_of: Callable[[dict[str, Match]], policy.Subject], facts: Mapping[str, Match], unknown: set[str]
    ) -> tuple[Answer, str, str]:
        told = []
        for extreme in (_ALLOWING, _DENYING) if unknown else (_ALLOWING,):
            assumed = {rule.id: extreme["deny"] for rule in self.rules.deny if rule.id in unknown}
            assumed |= {rule.id: extreme["allow"] for rule in self.rules.allow if rule.id in unknown}
            told.append(policy.decide(self.rules, subject_of({**facts, **assumed})))
        if len(told) == 1 or isinstance(told[0], policy.Deny) or isinstance(told[1], policy.Allow):
            return _told(told[0])
        assert isinstance(told[1], policy.Deny)
        why = f"{told[1].rule} asks about a typed value that is secret and has no opening"
        return Answer.INDETERMINATE, told[1].rule, why

    def _facts(self, data: Mapping[str, Any]) -> tuple[dict[str, Match], set[str]]:
        """(what each value rule says, the rules of which that is not known)."""
        asking = [r.id for r in (*self.rules.deny, *self.rules.allow) if r.value is not None]
        hidden = data["args"].get("_sd")
        if "value" not in data["args"] and not hidden:
            return {}, set()
        opened = next((self.openings[d][1] for d in hidden or () if d in self.openings), None)
        if opened is not None:
            return dict(policy.value_facts(self.rules, opened)), set()
        recorded = data.get("policy", {}).get("value_rules", {})
        known = {
            rule: Match(recorded[self.same_question[rule]])
            for rule in asking
            if self.same_question.get(rule) in recorded
        }
        return known, set(asking) - set(known)


def _rules(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from document.get("deny") or ()
    yield from document.get("allow") or ()


def _evidences(data: Mapping[str, Any]) -> Iterator[Evidence]:
    """Of every look in turn, equal neighbours once; the record's own last."""
    last = None
    for look in looks_of(data):
        if look.evidence is not None and not (look.probe or "").startswith(("changed", "unknown")):
            if look.evidence != last:
                yield look.evidence
            last = look.evidence
    if "evidence" in data and data.get("phase") != "resolve":
        own = Evidence.from_json(data["evidence"])
        if own != last:
            yield own


def _told(verdict: policy.Verdict) -> tuple[Answer, str, str]:
    if isinstance(verdict, policy.Deny):
        return Answer.DENY, verdict.rule, ""
    return Answer.ALLOW, "", ""


def _window(raw: Mapping[str, Any]) -> WindowState:
    return WindowState(raw["id"], raw["title"], raw["url"], raw["document"])
