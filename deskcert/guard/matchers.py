"""(3) Does a rule hit? Each of its matchers answers on its own, three-valued.

A rule denies when all its matchers hold, and also when none fails and at least one is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from deskcert.contract.evidence import NAME_SOURCES, Destination, Field, Known, Unknown
from deskcert.guard.patterns import NO_HIT, Hit, Match, TextPattern
from deskcert.guard.rules import DestinationPattern, Policy, Rule, role_of
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

_NO: Final[Found] = (Match.NO, Source("", "", ""))
"""What does not hit has no source."""


def rule_hit(rule: Rule, subject: Subject) -> Found:
    """All matchers of the rule together. The source is the name's, else the destination's, value's, key's, URL's."""
    if rule.actions and not rule.actions & subject.actions:
        return _NO
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
    if any(hit is Match.NO for hit, _ in told):
        return _NO
    unknown = (f for f in told if f[0] is Match.UNKNOWN)
    return next(unknown, told[0] if told else (Match.YES, Source("target", "action", "exact")))


def _strongest(found: Iterable[Found]) -> Found:
    """The first that hits, else the first that is not known."""
    best = _NO
    for hit, source in found:
        if hit is Match.YES:
            return hit, source
        if hit is Match.UNKNOWN and best is _NO:
            best = hit, source
    return best


def _control(rule: Rule, subject: Subject) -> Found | None:
    """Name and role, of one control: the group's any name with the group's any role, a lone control's own."""
    if rule.name is None and not rule.roles:
        return None
    return _strongest(_controls(rule, subject.groups))


def _controls(rule: Rule, groups: Iterable[Sequence[Surface]]) -> Iterator[Found]:
    for group in groups:
        if rule.roles and not any(role_of(s.role) in rule.roles for s in group):
            continue
        if rule.name is None:
            yield Match.YES, Source(group[0].via, "role", "exact")
        else:
            yield from _names(rule.name, group)


def _names(pattern: TextPattern, group: Iterable[Surface]) -> Iterator[Found]:
    for surface, name, value in _texts(group):
        match value:
            case Known(text):
                hit = pattern.of_name(str(text))
            case Unknown(why):
                hit = Hit(Match.UNKNOWN, "none", why)
            case _:
                hit = NO_HIT
        yield hit.match, Source(surface.via, name, hit.form)


def _texts(group: Iterable[Surface]) -> Iterator[tuple[Surface, str, Field[str]]]:
    for surface in group:
        for name in NAME_SOURCES:
            yield surface, name, getattr(surface.names, name)


def _destination(rule: Rule, subject: Subject) -> Found | None:
    pattern = rule.destination
    if pattern is None:
        return None
    return _strongest(_led_to(pattern, subject.destinations))


def _led_to(pattern: DestinationPattern, destinations: Iterable[tuple[str, Field[Destination]]]) -> Iterator[Found]:
    for via, found in destinations:
        if isinstance(found, Unknown):
            yield Match.UNKNOWN, Source(via, "destination", "none")
        elif isinstance(found, Known):
            for name, method, url in ways_of(found.value):
                if not pattern.methods or method in pattern.methods:
                    hit = Match.YES if pattern.url is None else pattern.url.matches(url)
                    yield hit, Source(via, f"destination.{name}", "url")


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
    hits = [(rule.download.of_name(name), why) for why, name in subject.files]
    return _strongest((hit.match, Source(why, "download", hit.form)) for hit, why in hits)


def _key(rule: Rule, subject: Subject) -> Found | None:
    if not rule.keys:
        return None
    return (Match.YES if subject.key in rule.keys else Match.NO), Source("target", "key", "exact")


def _url(rule: Rule, subject: Subject) -> Found | None:
    if rule.url is None:
        return None
    return _strongest((rule.url.matches(url), Source("window", "url", "url")) for url in subject.urls)


def _window(rule: Rule, subject: Subject) -> Found | None:
    if rule.window is None:
        return None
    hits = map(rule.window.of_name, subject.windows)
    return _strongest((hit.match, Source("window", "title", hit.form)) for hit in hits)


def value_facts(policy: Policy, value: str | None, command: str = "") -> dict[str, Match]:
    """What each rule's `value` matcher says of a typed value, or its `upload` matcher of the paths of an upload.
    Recorded, so that a replay needs no secret."""
    rules = (*policy.deny, *policy.allow)
    if command == "upload":
        paths = [str(file["path"]) for file in json.loads(value or "[]")]
        return {r.id: _any_path(r.upload, paths) for r in rules if r.upload is not None}
    return {r.id: r.value.of_name(value).match if value is not None else Match.NO for r in rules if r.value is not None}


def _any_path(pattern: TextPattern, paths: Iterable[str]) -> Match:
    return _strongest((pattern.of_name(path).match, _NO[1]) for path in paths)[0]
