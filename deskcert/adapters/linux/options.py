"""The entries of a list or combo box that `select` is asked for: found by their names, counted, never guessed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deskcert.adapters.base import Action
from deskcert.adapters.linux import words
from deskcert.adapters.linux.bus import Deadline, ObjectRef
from deskcert.adapters.linux.facts import Facts
from deskcert.adapters.linux.reading import Reader
from deskcert.adapters.linux.words import State
from deskcert.contract.evidence import ActivationPath, Field, Known, NameSources, Unknown

__all__ = ["Choice", "read_choice"]

_DEEPEST: Final = 4
_MOST: Final = 2_000


@dataclass(frozen=True, slots=True)
class Choice:
    holder: ObjectRef
    """What has the Selection interface over the entries."""
    chosen: tuple[tuple[int, Facts], ...]
    """The asked entries with their numbers in the holder, where each names exactly one."""
    counts: tuple[int, ...] | None
    """How many entries that can be chosen each asked text names; None where that could not be read."""
    paths: tuple[ActivationPath, ...]
    shown: Field[str] | None
    """What is chosen now, in the list's order; None: as the control itself says."""


async def read_choice(reader: Reader, target: Facts, action: Action, deadline: Deadline) -> Choice | None:
    """None where the action is no `select`. Raises `ProcessGone`."""
    if action.command != "select" or target.word not in ("combobox", "listbox"):
        return None
    asked = (action.value or "").split("\n")
    holder, entries = await _entries(reader, target, deadline)
    if entries is None:
        return Choice(holder, (), None, (), None)
    found = [[(i, e) for i, e in entries if _named(e, text)] for text in asked]
    paths = tuple(
        ActivationPath("descendant", "option", NameSources(accessible=Known(e.name.value.strip())))
        for hits in found
        for _, e in hits
        if isinstance(e.name, Known)
    )
    chosen = tuple(hits[0] for hits in found if len(hits) == 1)
    return Choice(holder, chosen, tuple(len(hits) for hits in found), paths, _shown(target, entries))


async def _entries(
    reader: Reader, target: Facts, deadline: Deadline
) -> tuple[ObjectRef, list[tuple[int, Facts]] | None]:
    """The nearest descendant that holds entries, and those. A combo box has them in a list or menu inside."""
    level: Sequence[Facts] = [target]
    for _ in range(_DEEPEST):
        for holder in level:
            if not isinstance(holder.children, Known) or len(holder.children.value) > _MOST:
                return holder.ref, None
            read = await asyncio.gather(*(reader.core(r, deadline, children=True) for r in holder.children.value))
            if any(isinstance(f.unread(), str) for f in read):
                return holder.ref, None
            if any(f.word in words.ITEMS or f.word == "menuitem" for f in read):
                return holder.ref, [(i, f) for i, f in enumerate(read) if f.word in words.ITEMS | {"menuitem"}]
            if read:
                level = read
                break
        else:
            break
    return target.ref, []


def _named(entry: Facts, text: str) -> bool:
    name = entry.name.value if isinstance(entry.name, Known) else ""
    return " ".join(name.split()) == " ".join(text.split()) and entry.is_(State.SENSITIVE)


def _shown(target: Facts, entries: Sequence[tuple[int, Facts]]) -> Field[str] | None:
    if target.word == "combobox":
        return None
    if any(isinstance(e.states, Unknown) for _, e in entries):
        return Unknown("not every entry could be read")
    return Known(
        ", ".join(e.name.value.strip() for _, e in entries if e.is_(State.SELECTED) and isinstance(e.name, Known))
    )
