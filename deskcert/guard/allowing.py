"""(3) `default: deny`: is everything that the action would activate allowed, plainly and on known evidence only?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from deskcert.contract.evidence import Known, Unknown
from deskcert.guard.matchers import upload_hit, ways_of
from deskcert.guard.patterns import Match, TextPattern
from deskcert.guard.rules import Rule, role_of
from deskcert.guard.subject import Subject, Surface

__all__ = ["allowed"]

_LENDS_ONLY: Final = frozenset({"label", "descendant", "access_key", "drop_around"})


def allowed(rules: Iterable[Rule], subject: Subject) -> bool:
    """The target and everything else that would be activated must each be allowed by some rule."""
    reached = (s for group in subject.groups for s in group if s.via not in _LENDS_ONLY)
    controls: list[Surface | None] = [*reached] or [None]
    return all(any(_lets_through(rule, subject, control) for rule in rules) for control in controls)


def _lets_through(rule: Rule, subject: Subject, control: Surface | None) -> bool:
    """Plainly, and on known evidence only: whatever is doubtful is not allowed."""
    if rule.actions and subject.command not in rule.actions:
        return False
    if rule.name is not None and not (control is not None and _plain_name(rule.name, control)):
        return False
    if rule.roles and not (control is not None and role_of(control.role) in rule.roles):
        return False
    if rule.url is not None and not (subject.urls and all(map(rule.url.plainly, subject.urls))):
        return False
    if rule.window is not None and not any(map(rule.window.plainly, subject.windows)):
        return False
    if rule.destination is not None and not _plain_destination(rule, subject):
        return False
    if rule.value is not None and subject.value_facts.get(rule.id) is not Match.YES:
        return False
    if (upload := upload_hit(rule, subject)) is not None and upload[0] is not Match.YES:
        return False
    if rule.download is not None and not _plain_files(rule.download, subject):
        return False
    return not rule.keys or subject.key in rule.keys


def _plain_files(pattern: TextPattern, subject: Subject) -> bool:
    return bool(subject.files) and all(pattern.plainly(name) for _, name in subject.files)


def _plain_name(pattern: TextPattern, control: Surface) -> bool:
    """Accessible name and visible text, where there is any, must both be allowed: one may lie about the other."""
    texts = (control.names.accessible, control.names.text)
    known = [t.value for t in texts if isinstance(t, Known) and t.value.strip()]
    doubtful = any(isinstance(t, Unknown) for t in texts)
    return bool(known) and not doubtful and all(pattern.plainly(t) for t in known)


def _plain_destination(rule: Rule, subject: Subject) -> bool:
    assert rule.destination is not None
    if any(isinstance(found, Unknown) for _, found in subject.destinations):
        return False
    ways = [w for _, found in subject.destinations if isinstance(found, Known) for w in ways_of(found.value)]
    methods, url = rule.destination.methods, rule.destination.url
    return bool(ways) and all((not methods or m in methods) and (url is None or url.plainly(u)) for _, m, u in ways)
