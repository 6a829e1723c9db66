"""(3) Does a rule hit? Each of its matchers answers on its own, three-valued.

A rule denies when all its matchers hold, and also when none fails and at least one is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from deskcert.contract.evidence import NAME_SOURCES, Destination, Field, Known, Unknown
from deskcert.guard.patterns import NO_HIT, Hit, Match, TextPattern
from deskcert.guard.rules import Policy, Rule, role_of
from deskcert.guard.subject import Subject, Surface

__all__ = ["Source", "rule_hit", "upload_hit", "value_facts", "ways_of"]


@dataclass(frozen=True, slots=True)
class Source:
    """What gave the denial: which element (`target`, or why it is on the way), which of its texts, in which form."""

    via: str
    field: str
    form: str

    def as_json(self) -> dict[str, str]:
        return {"via": self.via, "field": self.field, "form": self.form}


type Found = tuple[Match, Source]

_NONE: Final = Source("target", "none", "none")


def rule_hit(rule: Rule, subject: Subject) -> Found:
    """All matchers of the rule together. The source is the name's, else the destination's, value's, key's, URL's."""
    if rule.actions and not rule.actions & subject.actions:
        return Match.NO, _NONE
    found = [
        _control(rule, subject),
        _destination(rule, subject),
        _value(rule, subject),
        upload_hit(rule, subject),
        _download(rule, subject),
        _key(rule, subject),
        _url(rule, subject),
        _window(rule, subject),
    ]
    told = [f for f in found if f is not None]
    if any(m is Match.NO for m, _ in told):
        return Match.NO, _NONE
    unknown = [f for f in told if f[0] is Match.UNKNOWN]
    if unknown:
        return unknown[0]
    return told[0] if told else (Match.YES, Source("target", "action", "exact"))


def _control(rule: Rule, subject: Subject) -> Found | None:
    """Name and role, of one control: the group's any name with the group's any role, a lone control's own."""
    if rule.name is None and not rule.roles:
        return None
    best: Found = (Match.NO, _NONE)
    for group in subject.groups:
        if rule.roles and not any(role_of(s.role) in rule.roles for s in group):
            continue
        if rule.name is None:
            return Match.YES, Source(group[0].via, "role", "exact")
        found = _name(rule.name, group)
        if found[0] is Match.YES:
            return found
        best = found if found[0] is Match.UNKNOWN else best
    return best


def _name(pattern: TextPattern, group: Iterable[Surface]) -> Found:
    best: Found = (Match.NO, _NONE)
    for surface, name, value in _texts(group):
        match value:
            case Known(text):
                hit = pattern.of_name(str(text))
            case Unknown(why):
                hit = Hit(Match.UNKNOWN, "none", why)
            case _:
                hit = NO_HIT
        if hit.match is Match.YES:
            return Match.YES, Source(surface.via, name, hit.form)
        if hit.match is Match.UNKNOWN and best[0] is Match.NO:
            best = Match.UNKNOWN, Source(surface.via, name, hit.form)
    return best


def _texts(group: Iterable[Surface]) -> Iterator[tuple[Surface, str, Field[str]]]:
    for surface in group:
        for name in NAME_SOURCES:
            yield surface, name, getattr(surface.names, name)


def _destination(rule: Rule, subject: Subject) -> Found | None:
    pattern = rule.destination
    if pattern is None:
        return None
    best: Found = (Match.NO, _NONE)
    for via, found in subject.destinations:
        if isinstance(found, Unknown):
            best = Match.UNKNOWN, Source(via, "destination", "none")
        elif isinstance(found, Known):
            for name, method, url in ways_of(found.value):
                if pattern.methods and method not in pattern.methods:
                    continue
                hit = Match.YES if pattern.url is None else pattern.url.matches(url)
                if hit is Match.YES:
                    return hit, Source(via, f"destination.{name}", "url")
                if hit is Match.UNKNOWN:
                    best = hit, Source(via, f"destination.{name}", "url")
    return best


def ways_of(destination: Destination) -> Iterator[tuple[str, str, str]]:
    if destination.link is not None:
        yield "link", "GET", destination.link
    if destination.form_action is not None:
        yield "form_action", (destination.form_method or "GET").upper(), destination.form_action


def _value(rule: Rule, subject: Subject) -> Found | None:
    if rule.value is None:
        return None
    return subject.value_facts.get(rule.id, Match.NO), Source("target", "typed", rule.value.kind)


def upload_hit(rule: Rule, subject: Subject) -> Found | None:
    if rule.upload is None:
        return None
    hit = subject.value_facts.get(rule.id, Match.NO) if subject.command == "upload" else Match.NO
    return hit, Source("target", "upload", rule.upload.kind)


def _download(rule: Rule, subject: Subject) -> Found | None:
    if rule.download is None:
        return None
    best: Found = (Match.NO, _NONE)
    for why, name in subject.files:
        hit = rule.download.of_name(name)
        if hit.match is Match.YES:
            return Match.YES, Source(why, "download", hit.form)
        best = (hit.match, Source(why, "download", hit.form)) if hit.match is Match.UNKNOWN else best
    return best


def _key(rule: Rule, subject: Subject) -> Found | None:
    if not rule.keys:
        return None
    return (Match.YES if subject.key in rule.keys else Match.NO), Source("target", "key", "exact")


def _url(rule: Rule, subject: Subject) -> Found | None:
    if rule.url is None:
        return None
    hits = [rule.url.matches(u) for u in subject.urls]
    hit = next((m for m in (Match.YES, Match.UNKNOWN) if m in hits), Match.NO)
    return hit, Source("window", "url", "url")


def _window(rule: Rule, subject: Subject) -> Found | None:
    if rule.window is None:
        return None
    hits = [rule.window.of_name(text) for text in subject.windows]
    hit = next((h for h in hits if h.match is Match.YES), None) or next(
        (h for h in hits if h.match is Match.UNKNOWN), NO_HIT
    )
    return hit.match, Source("window", "title", hit.form or "none")


def value_facts(policy: Policy, value: str | None, command: str = "") -> dict[str, Match]:
    """What each rule's `value` matcher says of a typed value, or its `upload` matcher of the paths of an upload.
    Recorded, so that a replay needs no secret."""
    rules = (*policy.deny, *policy.allow)
    if command == "upload":
        paths = [str(file["path"]) for file in json.loads(value or "[]")]
        return {r.id: _any_path(r.upload, paths) for r in rules if r.upload is not None}
    return {r.id: r.value.of_name(value).match if value is not None else Match.NO for r in rules if r.value is not None}


def _any_path(pattern: TextPattern, paths: Iterable[str]) -> Match:
    hits = [pattern.of_name(path).match for path in paths]
    return next((m for m in (Match.YES, Match.UNKNOWN) if m in hits), Match.NO)
