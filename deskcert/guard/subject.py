"""(3) What a rule may ask about: everything that one action, page command or download would do.

Elements that one event activates, or that lend the target their names, are one *group*: any name in it may meet any
role in it, because together they are what a person sees as one control. A default submitter, or the focused element a
key goes to, is a control of its own. Destinations are pooled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from deskcert.adapters.base import Action, WindowState
from deskcert.contract.evidence import ABSENT, Destination, Evidence, Field, Known, NameSources
from deskcert.guard.patterns import Match
from deskcert.guard.rules import key_of, role_of

__all__ = [
    "PAGE_COMMANDS",
    "Subject",
    "Surface",
    "download_subject",
    "navigation_subject",
    "page_subject",
    "subject_of",
]


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

_ALONE: Final = frozenset({"default_submitter", "focused"})
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


def _dropped_on(place: Evidence | None) -> tuple[tuple[Surface, ...], ...]:
    """Where a drag ends is a control of its own; what stands around it hears of the drop as well."""
    if place is None:
        return ()
    around = (Surface("drop_around", p.role, p.names) for p in place.paths)
    return ((Surface("drop", place.role, place.names), *around),)


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
