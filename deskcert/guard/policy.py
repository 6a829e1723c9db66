"""(3) The policy's answer about one action on one element.

Every way to the same effect is asked, not only the element that was named. Elements that one event activates, or that
lend the target their names, are one *group*: any name in it may meet any role in it, because together they are what
a person sees as one control. A default submitter, or the focused element a key goes to, is a control of its own.
Destinations are pooled.

Three-valued throughout: a rule denies when all its matchers hold, and also when none fails and at least one is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from deskcert.adapters.base import Action, WindowState
from deskcert.contract.evidence import (
    ABSENT,
    NAME_SOURCES,
    Destination,
    Evidence,
    Field,
    Known,
    NameSources,
    Unknown,
)
from deskcert.guard.patterns import NO_HIT, Hit, Match, TextPattern
from deskcert.guard.rules import Effect, Policy, Rule, compile_policy, key_of, merge, role_of
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
class Source:
    """What gave the denial: which element (`target`, or why it is on the way), which of its texts, in which form."""

    via: str
    field: str
    form: str

    def as_json(self) -> dict[str, str]:
        return {"via": self.via, "field": self.field, "form": self.form}


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


@dataclass(frozen=True, slots=True)
class Surface:
    """One element that the event reaches, as the policy sees it."""

    via: str
    role: str
    names: NameSources


@dataclass(frozen=True, slots=True)
class Subject:
    """All that a rule may ask about: from evidence by `subject_of`, of a page command by `navigation_subject`."""

    command: str
    actions: frozenset[str]
    """The words of a rule's `action` that mean this action."""
    key: str | None
    groups: tuple[tuple[Surface, ...], ...]
    destinations: tuple[tuple[str, Field[Destination]], ...]
    urls: tuple[str, ...]
    windows: tuple[str, ...]
    value_facts: Mapping[str, Match] = field(default_factory=dict)
    """Rule id → what its `value` matcher says: the value itself is secret, and replay has only this."""
    files: tuple[tuple[str, str], ...] = ()
    """(why, name) of files that this would bring."""


PAGE_COMMANDS: Final = frozenset(
    {"navigate", "back", "forward", "reload", "dialog-accept", "dialog-dismiss", "tab-focus", "tab-close"}
)
"""Commands on the page, which name no element."""

ALLOW_LIST_RULE: Final = "default-deny"
"""Stands as the rule's id where no allow rule matched."""

_ALONE: Final = frozenset({"default_submitter", "focused"})
_LENDS_ONLY: Final = frozenset({"label", "descendant", "access_key", "drop_around"})
_NO_ACTIVATION: Final = frozenset(
    {"set-value", "type", "clear", "focus", "scroll", "scroll-to", "select", "hover", "upload"}
)
_MEANS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("double-click", "triple-click", "check", "uncheck", "toggle", "expand", "collapse"), ("click",)),
    "type": ("set-value",),
    "clear": ("set-value",),
    "select": ("set-value", "click"),
}
"""A rule about clicks means every command that clicks, and one about setting a value every command that changes it."""
_ACTIVATING_KEYS: Final = frozenset({"enter", "space"})
_ARROWS: Final = frozenset({"arrowleft", "arrowright", "arrowup", "arrowdown"})
_ARROWS_MEAN: Final[Mapping[str, tuple[str, ...]]] = {
    "radio": ("click", "check"),
    "combobox": ("select", "set-value", "click"),
    "listbox": ("select", "set-value", "click"),
    "slider": ("set-value",),
    "spinbutton": ("set-value",),
}
"""An arrow key chooses the next of a group, or changes a number."""


def subject_of(
    action: Action, evidence: Evidence, window: WindowState | None, facts: Mapping[str, Match] | None = None
) -> Subject:
    """`facts` comes from `value_facts`; `window` is the window of the snapshot, whose title a rule may name."""
    target = Surface("target", evidence.role, evidence.names)
    paths = [(p, Surface(p.why, p.role, p.names)) for p in evidence.paths]
    group = (target, *(s for p, s in paths if p.why not in _ALONE))
    alone = tuple(tuple(s for p, s in paths if p.why == why) for why in sorted(_ALONE))
    own = ("target", evidence.destination if _activates(action, evidence) else ABSENT)
    return Subject(
        command=action.command,
        actions=_words(action, evidence),
        key=key_of(action.key) if action.key is not None else None,
        groups=(group, *(g for g in alone if g), *_dropped_on(evidence.other)),
        destinations=(own, *((p.why, p.destination) for p, _ in paths)),
        urls=tuple(dict.fromkeys(u for u in (evidence.url, window.url if window else None) if u)),
        windows=(window.title, window.url) if window else (evidence.url,),
        value_facts=facts or {},
        files=tuple(_files([("target", own[1]), *((p.why, p.destination) for p, _ in paths)])),
    )


def _files(destinations: Iterable[tuple[str, Field[Destination]]]) -> Iterator[tuple[str, str]]:
    for why, found in destinations:
        if isinstance(found, Known) and found.value.download is not None:
            yield why, found.value.download


def download_subject(url: str, name: str, window: WindowState | None) -> Subject:
    """A file that begins to come: no element; its address, its name, and the page that it belongs to."""
    return Subject(
        command="download",
        actions=frozenset({"download"}),
        key=None,
        groups=(),
        destinations=(("target", Known(Destination(link=url))),),
        urls=tuple(u for u in (window.url if window else "",) if u),
        windows=(window.title,) if window and window.title else (),
        files=(("target", name),),
    )


def _dropped_on(place: Evidence | None) -> tuple[tuple[Surface, ...], ...]:
    """Where a drag ends is a control of its own; what stands around it hears of the drop as well."""
    if place is None:
        return ()
    around = (Surface("drop_around", p.role, p.names) for p in place.paths)
    return ((Surface("drop", place.role, place.names), *around),)


def navigation_subject(url: str, window: WindowState | None) -> Subject:
    """A page command: no element, the address is both URL and destination, fetched by GET."""
    return Subject(
        command="navigate",
        actions=frozenset({"navigate"}),
        key=None,
        groups=(),
        destinations=(("target", Known(Destination(link=url))),),
        urls=(url,),
        windows=(window.title,) if window else (),
    )


def page_subject(command: str, target: Mapping[str, Any], window: WindowState | None) -> Subject:
    """Of any page command, from the target as it is recorded. A dialog is known by its text and by what opened it;
    dismissing one is the way out of what a name forbids, so only a rule that says so forbids it. To go to another tab
    is a navigation to where it stands; to close one leads nowhere."""
    dialog, tab = target.get("dialog"), target.get("tab")
    if dialog is None:
        subject = replace(
            navigation_subject(target["url"], window), command=command, actions=frozenset({command, "navigate"})
        )
        if tab is not None:
            subject = replace(subject, windows=(tab["title"],))
        return replace(subject, actions=frozenset({command}), destinations=()) if command == "tab-close" else subject
    surfaces = [Surface("target", "dialog", NameSources(accessible=Known(dialog["text"])))]
    if (opener := dialog.get("opener")) is not None:
        surfaces.append(Surface("opener", opener["role"], NameSources(accessible=Known(opener.get("name") or ""))))
    accepts = command == "dialog-accept"
    return Subject(
        command=command,
        actions=frozenset({command, "click"} if accepts else {command}),
        key=None,
        groups=(tuple(surfaces),) if accepts else (),
        destinations=(),
        urls=(target["url"],),
        windows=(window.title,) if window else (),
    )


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


def decide(policy: Policy, subject: Subject) -> Verdict:
    """The first deny rule that matches or cannot be answered decides; then the allow list, where there is one."""
    recorded: list[str] = []
    for rule in policy.deny:
        hit, source = _rule_hit(rule, subject)
        if hit is Match.NO:
            continue
        if rule.effect is Effect.RECORD_ONLY:
            recorded.append(rule.id)
            continue
        return _denial(rule, hit, source)
    if policy.allow_list and not _allowed(policy.allow, subject):
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


type Found = tuple[Match, Source]

_NONE: Final = Source("target", "none", "none")


def _rule_hit(rule: Rule, subject: Subject) -> Found:
    """All matchers of the rule together. The source is the name's, else the destination's, value's, key's, URL's."""
    if rule.actions and not rule.actions & subject.actions:
        return Match.NO, _NONE
    found = [
        _control(rule, subject),
        _destination(rule, subject),
        _value(rule, subject),
        _upload(rule, subject),
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
            for name, method, url in _ways(found.value):
                if pattern.methods and method not in pattern.methods:
                    continue
                hit = Match.YES if pattern.url is None else pattern.url.matches(url)
                if hit is Match.YES:
                    return hit, Source(via, f"destination.{name}", "url")
                if hit is Match.UNKNOWN:
                    best = hit, Source(via, f"destination.{name}", "url")
    return best


def _ways(destination: Destination) -> Iterator[tuple[str, str, str]]:
    if destination.link is not None:
        yield "link", "GET", destination.link
    if destination.form_action is not None:
        yield "form_action", (destination.form_method or "GET").upper(), destination.form_action


def _value(rule: Rule, subject: Subject) -> Found | None:
    if rule.value is None:
        return None
    return subject.value_facts.get(rule.id, Match.NO), Source("target", "typed", rule.value.kind)


def _upload(rule: Rule, subject: Subject) -> Found | None:
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


def _activates(action: Action, evidence: Evidence) -> bool:
    """Typing into a field of a form, or putting the caret there, leads nowhere by itself; Enter in it does."""
    if action.command in _NO_ACTIVATION:
        return False
    return action.command == "press" or evidence.states.get("editable", ABSENT) != Known(True)


def _words(action: Action, evidence: Evidence) -> frozenset[str]:
    """Enter or Space on a control is a click on it, to the application and so to a rule about clicks."""
    words = {action.command, *_MEANS.get(action.command, ())}
    if action.command == "press" and action.key is not None and key_of(action.key) in _ACTIVATING_KEYS:
        typed = evidence.states.get("editable", ABSENT) == Known(True)
        submits = any(p.why in _ALONE for p in evidence.paths)
        if not typed or submits:
            words.add("click")
    if action.command == "press" and action.key is not None and key_of(action.key) in _ARROWS:
        words.update(_ARROWS_MEAN.get(role_of(evidence.role), ()))
    return frozenset(words)


def _allowed(rules: Iterable[Rule], subject: Subject) -> bool:
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
    if rule.url is not None and not all(rule.url.plainly(u) for u in subject.urls):
        return False
    if rule.window is not None and not any(rule.window.plainly(w).match is Match.YES for w in subject.windows):
        return False
    if rule.destination is not None and not _plain_destination(rule, subject):
        return False
    if rule.value is not None and subject.value_facts.get(rule.id) is not Match.YES:
        return False
    if rule.upload is not None and _upload(rule, subject) != (Match.YES, Source("target", "upload", rule.upload.kind)):
        return False
    if rule.download is not None and not _plain_files(rule.download, subject):
        return False
    return not rule.keys or subject.key in rule.keys


def _plain_files(pattern: TextPattern, subject: Subject) -> bool:
    return bool(subject.files) and all(pattern.plainly(name).match is Match.YES for _, name in subject.files)


def _plain_name(pattern: TextPattern, control: Surface) -> bool:
    """Accessible name and visible text, where there is any, must both be allowed: one may lie about the other."""
    texts = (control.names.accessible, control.names.text)
    known = [t.value for t in texts if isinstance(t, Known) and t.value.strip()]
    doubtful = any(isinstance(t, Unknown) for t in texts)
    return bool(known) and not doubtful and all(pattern.plainly(t).match is Match.YES for t in known)


def _plain_destination(rule: Rule, subject: Subject) -> bool:
    assert rule.destination is not None
    if any(isinstance(found, Unknown) for _, found in subject.destinations):
        return False
    ways = [w for _, found in subject.destinations if isinstance(found, Known) for w in _ways(found.value)]
    methods, url = rule.destination.methods, rule.destination.url
    return bool(ways) and all((not methods or m in methods) and (url is None or url.plainly(u)) for _, m, u in ways)
