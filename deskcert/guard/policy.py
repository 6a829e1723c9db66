"""(3) The policy's answer about one action on one element.

Every way to the same effect is asked, not only the element that was named (`subject.py`). The first deny rule that hits
decides (`matchers.py`), then the allow list, where there is one (`allowing.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from deskcert.guard.allowing import allowed
from deskcert.guard.matchers import Source, rule_hit, value_facts
from deskcert.guard.patterns import Match
from deskcert.guard.rules import Effect, Policy, Rule, compile_policy, merge
from deskcert.guard.subject import (
    PAGE_COMMANDS,
    Subject,
    download_subject,
    navigation_subject,
    page_subject,
    subject_of,
)
from deskcert_schema.vocabulary import DetailKind

__all__ = [
    "PAGE_COMMANDS",
    "Allow",
    "Deny",
    "Policy",
    "Source",
    "Subject",
    "Verdict",
    "compile_policy",
    "decide",
    "download_subject",
    "merge",
    "navigation_subject",
    "page_subject",
    "subject_of",
    "value_facts",
]


@dataclass(frozen=True, slots=True)
class Allow:
    record_only: tuple[str, ...]
    """Ids of rules that matched and only ask for a record."""
    rules_evaluated: int

    def as_json(self, digest: str) -> dict[str, Any]:
        verdict: dict[str, Any] = {
            "digest": digest,
            "verdict": "record_only" if self.record_only else "allow",
            "rules_evaluated": self.rules_evaluated,
        }
        return verdict | ({"record_only": list(self.record_only)} if self.record_only else {})


@dataclass(frozen=True, slots=True)
class Deny:
    rule: str
    kind: DetailKind
    reason: str
    source: Source


type Verdict = Allow | Deny

ALLOW_LIST_RULE: Final = "default-deny"
"""Stands as the rule's id where no allow rule matched."""


def decide(policy: Policy, subject: Subject) -> Verdict:
    """The first deny rule that matches or cannot be answered decides; then the allow list, where there is one."""
    recorded: list[str] = []
    for rule in policy.deny:
        hit, source = rule_hit(rule, subject)
        if hit is Match.NO:
            continue
        if rule.effect is Effect.RECORD_ONLY:
            recorded.append(rule.id)
            continue
        return _denial(rule, hit, source)
    if policy.allow_list and not allowed(policy.allow, subject):
        reason = "no allow rule matches every control that this action would activate"
        return Deny(ALLOW_LIST_RULE, DetailKind.NOT_ALLOWED, reason, Source("target", "none", "none"))
    return Allow(tuple(recorded), len(policy.deny) + len(policy.allow))


def _denial(rule: Rule, hit: Match, source: Source) -> Deny:
    if hit is Match.UNKNOWN:
        reason = f"the rule needs the {source.field} of the {source.via}, which is not known"
        return Deny(rule.id, DetailKind.UNKNOWN_EVIDENCE, reason, source)
    if rule.effect is Effect.REQUIRE_CONFIRMATION:
        return Deny(rule.id, DetailKind.CONFIRMATION_REQUIRED, rule.reason, source)
    return Deny(rule.id, _kind(rule), rule.reason, source)


def _kind(rule: Rule) -> DetailKind:
    if rule.name is not None:
        return DetailKind.FORBIDDEN_NAME
    if rule.destination is not None or rule.url is not None:
        return DetailKind.FORBIDDEN_DESTINATION
    if rule.value is not None:
        return DetailKind.FORBIDDEN_VALUE
    if rule.keys:
        return DetailKind.FORBIDDEN_KEY
    return DetailKind.FORBIDDEN_NAME
