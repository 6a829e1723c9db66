"""What a key would set off besides the element it is sent to: the default button of the window, or an access key."""

from __future__ import annotations

from collections.abc import Iterator

from deskcert.adapters.base import Action, ObserveOptions
from deskcert.adapters.linux.application import Application
from deskcert.adapters.linux.bus import AccessBus, Deadline, ObjectRef
from deskcert.adapters.linux.facts import Facts
from deskcert.adapters.linux.walk import Branch, Walk
from deskcert.adapters.linux.words import State
from deskcert.contract.evidence import ActivationPath, Known, NameSources, Unknown

__all__ = ["key_paths"]

_MODIFIERS = {"ctrl": ("<primary>", "<control>", "ctrl+"), "alt": ("<alt>", "alt+"), "shift": ("<shift>", "shift+")}


async def key_paths(
    bus: AccessBus, app: Application, window: ObjectRef, action: Action, deadline: Deadline
) -> tuple[ActivationPath, ...]:
    """Empty where the key can do nothing beyond its target. What could not be read is an unknown control.

    Raises `ProcessGone`.
    """
    if action.command != "press" or action.key is None or action.key == "Space":
        return ()
    enter = action.key == "Enter"
    if not enter and not _may_be_bound(action.key):
        return ()
    walk = Walk(bus, app, ObserveOptions(), deadline)
    found = [f for f in _all(await walk.below(window)) if _meant(f, action.key, enter=enter)]
    why = "default_submitter" if enter else "access_key"
    paths = tuple(ActivationPath(why, f.word, NameSources(accessible=f.accessible_name())) for f in found)
    if walk.reasons:
        unread = NameSources(accessible=Unknown("not every control of the window could be read"))
        return (*paths, ActivationPath(why, "unknown", unread))
    return paths


def _may_be_bound(key: str) -> bool:
    """With Shift alone a letter is typed, as without it."""
    *held, name = key.split("+")
    return bool(held) and not (held == ["shift"] and len(name) == 1)


def _meant(facts: Facts, key: str, *, enter: bool) -> bool:
    if enter:
        return facts.is_(State.IS_DEFAULT) and facts.is_(State.SHOWING)
    bindings = facts.actions.value if isinstance(facts.actions, Known) else ()
    return any(_same_keys(part, key) for _, binding in bindings for part in binding.split(";"))


def _same_keys(binding: str, key: str) -> bool:
    """`<Primary>s` or `Ctrl+S` against `ctrl+s`. A binding within a menu (`<Alt>f:s`) needs the menu first."""
    *held, name = key.split("+")
    text = binding.casefold()
    for modifier in held:
        spelt = next((s for s in _MODIFIERS.get(modifier, ()) if s in text), None)
        if spelt is None:
            return False
        text = text.replace(spelt, "", 1)
    return text == name.casefold()


def _all(branch: Branch) -> Iterator[Facts]:
    yield branch.facts
    for child in branch.children:
        yield from _all(child)
