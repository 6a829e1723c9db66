"""Walks an application's whole tree through `GetChildren`, many objects at once.

The application's cache is a fast path only: it is asked once, spares the calls for what it holds, and is never taken
for complete (GTK 3 leaves rows out, Qt answers an empty one).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from deskcert.adapters.base import ObserveOptions
from deskcert.adapters.linux import words
from deskcert.adapters.linux.application import Application
from deskcert.adapters.linux.bus import AccessBus, Deadline, ObjectRef
from deskcert.adapters.linux.facts import Facts
from deskcert.adapters.linux.reading import Reader, refs_of, state_bits
from deskcert.adapters.linux.words import State
from deskcert.contract.evidence import ABSENT, Field, Known, Unknown

__all__ = ["Branch", "Walk"]

_CACHE: Final = "org.a11y.atspi.Cache"
_OBJECTS_AT_ONCE: Final = 32
"""Each has a few calls in flight; more would only wait, and cost memory meanwhile."""
_CACHE_PATH: Final = "/org/a11y/atspi/cache"
_LONGEST_CACHED: Final = 4_000
"""Name and description; longer ones are left to the walk, which bounds them."""


@dataclass(slots=True)
class Branch:
    facts: Facts
    children: list[Branch] = field(default_factory=list)
    cut: bool = False
    """Something below it was not read."""
    _labels: list[Facts] | None = None
    _firsts: dict[int, Facts] | None = None

    def labels(self) -> list[Facts]:
        """Its children that are plain labels; found once."""
        if self._labels is None:
            self._labels = [c.facts for c in self.children if c.facts.word == "statictext"]
        return self._labels

    def first_cell(self, row: int) -> Facts | None:
        if self._firsts is None:
            cells = [(c.facts.cell.value, c.facts) for c in self.children if isinstance(c.facts.cell, Known)]
            self._firsts = {at[0]: facts for at, facts in cells if at[1] == 0}
        return self._firsts.get(row)


class Walk:
    """One observation. `reasons` says why it is not complete."""

    def __init__(self, bus: AccessBus, app: Application, options: ObserveOptions, deadline: Deadline) -> None:
        self._bus, self._app, self._options, self._deadline = bus, app, options, deadline
        self._reader = Reader(bus, app.toolkit)
        self._seen: set[ObjectRef] = set()
        self._cached: dict[ObjectRef, tuple[Any, ...]] = {}
        self._why: dict[str, None] = {}
        self._at_once = asyncio.Semaphore(_OBJECTS_AT_ONCE)

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(self._why)

    async def run(self) -> Branch:
        """Raises `ProcessGone`."""
        if self._app.toolkit.all_at_once:
            await self._fill_cache()
        return await self.below(self._app.root)

    async def below(self, ref: ObjectRef) -> Branch:
        """The same from one object on, without the cache. Raises `ProcessGone`."""
        self._seen.add(ref)
        return await self._branch(ref, 0)

    async def _fill_cache(self) -> None:
        source = ObjectRef(self._app.root.bus, _CACHE_PATH)
        found = await self._bus.ask(source, _CACHE, "GetItems", self._deadline)
        if isinstance(found, Known):
            self._cached = {ObjectRef(*item[0]): tuple(item) for item in found.value if _usable(item)}

    async def _branch(self, ref: ObjectRef, depth: int) -> Branch:
        async with self._at_once:
            facts = await self._core(ref)
            await self._reader.details(facts, self._deadline)
        branch = Branch(facts)
        if facts.unread() is not None:
            self._note(f"an object could not be read: {facts.unread()}", branch)
        await asyncio.gather(*(self._child(branch, i, r, depth) for i, r in self._below(branch, depth)))
        branch.children = [c for c in branch.children if not c.facts.gone]
        return branch

    async def _child(self, branch: Branch, index: int, ref: ObjectRef, depth: int) -> None:
        branch.children[index] = await self._branch(ref, depth + 1)

    def _below(self, branch: Branch, depth: int) -> list[tuple[int, ObjectRef]]:
        facts = branch.facts
        if not isinstance(facts.children, Known):
            if isinstance(facts.children, Unknown):
                self._note(f"what is inside an object could not be read: {facts.children.why}", branch)
            return []
        refs = [r for r in facts.children.value if r not in self._seen]
        if refs and depth >= self._options.max_depth:
            self._note(f"it is deeper than {self._options.max_depth} levels", branch)
            return []
        room = self._options.max_nodes - len(self._seen)
        if len(refs) > room:
            self._note(f"it has more than {self._options.max_nodes} objects", branch)
            refs = refs[: max(0, room)]
        self._mark_partial(branch)
        self._seen.update(refs)
        branch.children = [Branch(Facts(r)) for r in refs]
        return list(enumerate(refs))

    def _mark_partial(self, branch: Branch) -> None:
        """A list that manages its own rows says how many there are, and may show fewer."""
        facts = branch.facts
        if not facts.is_(State.MANAGES_DESCENDANTS) or not isinstance(facts.children, Known):
            return
        if isinstance(facts.child_count, Known) and facts.child_count.value > len(facts.children.value):
            count, shown = facts.child_count.value, len(facts.children.value)
            self._note(f"a list shows {shown} of {count} entries", branch)

    def _note(self, why: str, branch: Branch) -> None:
        branch.cut = True
        self._why[why] = None

    async def _core(self, ref: ObjectRef) -> Facts:
        item = self._cached.get(ref)
        if item is None or len(item[6]) + len(item[8]) > _LONGEST_CACHED:
            return await self._reader.core(ref, self._deadline, children=True)
        children: Field[Any] = await self._bus.ask(ref, words.ACCESSIBLE, "GetChildren", self._deadline)
        return Facts(
            ref,
            name=Known(str(item[6])),
            description=Known(str(item[8])),
            role=Known(int(item[7])),
            states=Known(state_bits(item[9])),
            child_count=Known(int(item[4])) if isinstance(item[4], int) else ABSENT,
            parent=Known(ObjectRef(*item[2])),
            interfaces=Known(frozenset(item[5])),
            children=Known(refs_of(children.value)) if isinstance(children, Known) else children,
        )


def _usable(item: Any) -> bool:
    """Of the present form `((so)(so)(so)iiassusau)`; an older one is left to the walk."""
    return len(item) == 10 and isinstance(item[3], int)
