"""Reads what one accessible object says: which calls that takes, and in which order they can go out together."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from deskcert.adapters.linux import words
from deskcert.adapters.linux.bus import AccessBus, Deadline, ObjectRef
from deskcert.adapters.linux.facts import Box, Facts, Toolkit
from deskcert.adapters.linux.words import State
from deskcert.contract.evidence import ABSENT, Absent, Field, Known, Unknown

__all__ = ["LONGEST_NAME", "NULL_PATH", "ROOT_PATH", "Reader", "box_of", "refs_of"]

NULL_PATH: Final = "/org/a11y/atspi/null"
ROOT_PATH: Final = "/org/a11y/atspi/accessible/root"
_LONGEST_TEXT: Final = 100_000
LONGEST_NAME: Final = 4_000
"""Of what is acted on, and of whatever lends it a name: all of it is compared with the policy, in every form that a
person might read, which takes a while for each character."""
_TABLE_CELL: Final = "org.a11y.atspi.TableCell"
_SCREEN: Final = 0
_BELOW_DEPTH: Final = 3
_BELOW_MOST: Final = 24


class Reader:
    """For one application."""

    def __init__(self, bus: AccessBus, toolkit: Toolkit, *, longest: int = _LONGEST_TEXT) -> None:
        """`longest`: characters of a name; a longer one is unknown."""
        self._bus, self.toolkit, self._longest = bus, toolkit, longest

    async def core(self, ref: ObjectRef, deadline: Deadline, *, children: bool, parent: bool = False) -> Facts:
        """Name, role, states, and whichever of children and parent is asked for. Raises `ProcessGone`."""
        facts = Facts(ref)
        wanted = [self._properties(facts, deadline, parent=parent), self._role(facts, deadline)]
        wanted.append(self._states(facts, deadline))
        if children:
            wanted.append(self._children(facts, deadline))
        await asyncio.gather(*wanted)
        return facts

    async def details(self, facts: Facts, deadline: Deadline) -> None:
        """What its role makes worth asking: place, actions, value, label. Raises `ProcessGone`."""
        word, wanted = facts.word, []
        if word == "unknown" or facts.gone:
            return
        if word in words.INTERACTIVE or word == "statictext" or word in words.WINDOWS:
            wanted.append(self._box(facts, deadline))
        if word in words.INTERACTIVE:
            wanted += [self._actions(facts, deadline), self._description(facts, deadline)]
            if _blank(facts.name):
                wanted.append(self._label(facts, deadline))
        if word in words.FIELDS and not facts.secure:
            wanted.append(self._text(facts, deadline))
        if word in ("slider", "spinbutton", "scrollbar", "progressbar"):
            wanted.append(self._number(facts, deadline))
        if word in ("cell", "option", "treeitem"):
            wanted.append(self._cell(facts, deadline))
        if word == "link":
            wanted.append(self._link(facts, deadline))
        if wanted:
            await asyncio.gather(*wanted)

    async def whole(self, ref: ObjectRef, deadline: Deadline) -> Facts:
        """One element, with everything that evidence needs. Raises `ProcessGone`."""
        facts = await self.core(ref, deadline, children=True, parent=True)
        await asyncio.gather(self.details(facts, deadline), self._native(facts, deadline))
        if facts.word in words.INTERACTIVE - {"listbox", "combobox"}:
            facts.below = await self._below(facts, deadline)
        return facts

    async def _below(self, facts: Facts, deadline: Deadline) -> list[Facts]:
        """Descendants that lend their names; other controls, and what is below them, do not."""
        found: list[Facts] = []
        level = [facts]
        for _ in range(_BELOW_DEPTH):
            refs = [r for f in level if isinstance(f.children, Known) for r in f.children.value]
            if not refs:
                break
            if len(refs) + len(found) > _BELOW_MOST:
                found.append(Facts(refs[0], name=Unknown("it holds more than can be read"), role=Known(0)))
                break
            read = await asyncio.gather(*(self.core(r, deadline, children=True) for r in refs))
            level = [f for f in read if f.word not in words.INTERACTIVE and f.word not in ("menu", "listbox")]
            found += level
        return found

    def _texts(self, found: Field[Any]) -> Field[str]:
        if isinstance(found, Known) and len(found.value) > self._longest:
            return Unknown(f"a name or description is longer than {self._longest} characters")
        return Known(str(found.value)) if isinstance(found, Known) else found

    # --- single facts -------------------------------------------------------------------------------------------------

    async def _properties(self, facts: Facts, deadline: Deadline, *, parent: bool) -> None:
        if not self.toolkit.all_at_once:
            wanted: list[Any] = [self._bus.get(facts.ref, words.ACCESSIBLE, "Name", deadline)]
            if parent:
                wanted.append(self._bus.get(facts.ref, words.ACCESSIBLE, "Parent", deadline))
            found = await asyncio.gather(*wanted)
            facts.name = self._texts(found[0])
            if parent:
                facts.parent = _ref(found[1])
            return
        everything = await self._bus.get_all(facts.ref, words.ACCESSIBLE, deadline)
        if not isinstance(everything, Known):
            facts.name = everything if isinstance(everything, Unknown) else ABSENT
            facts.parent = facts.name
            return
        values = everything.value
        facts.name = self._texts(_in(values, "Name"))
        facts.description = self._texts(_in(values, "Description"))
        facts.native = self._texts(_in(values, "AccessibleId"))
        facts.child_count = _in(values, "ChildCount")
        facts.parent = _ref(_in(values, "Parent"))

    async def _description(self, facts: Facts, deadline: Deadline) -> None:
        if isinstance(facts.description, Absent) and not self.toolkit.all_at_once:
            facts.description = self._texts(await self._bus.get(facts.ref, words.ACCESSIBLE, "Description", deadline))

    async def _native(self, facts: Facts, deadline: Deadline) -> None:
        if isinstance(facts.native, Absent) and not self.toolkit.all_at_once:
            facts.native = self._texts(await self._bus.get(facts.ref, words.ACCESSIBLE, "AccessibleId", deadline))

    async def _role(self, facts: Facts, deadline: Deadline) -> None:
        facts.role = await self._bus.ask(facts.ref, words.ACCESSIBLE, "GetRole", deadline)

    async def _states(self, facts: Facts, deadline: Deadline) -> None:
        found = await self._bus.ask(facts.ref, words.ACCESSIBLE, "GetState", deadline)
        facts.states = Known(state_bits(found.value)) if isinstance(found, Known) else found

    async def _children(self, facts: Facts, deadline: Deadline) -> None:
        found = await self._bus.ask(facts.ref, words.ACCESSIBLE, "GetChildren", deadline)
        facts.children = Known(refs_of(found.value)) if isinstance(found, Known) else found

    async def _box(self, facts: Facts, deadline: Deadline) -> None:
        found = await self._bus.ask(facts.ref, words.COMPONENT, "GetExtents", deadline, signature="u", body=[_SCREEN])
        facts.box = box_of(found)

    async def _actions(self, facts: Facts, deadline: Deadline) -> None:
        found = await self._bus.ask(facts.ref, words.ACTION, "GetActions", deadline)
        if isinstance(found, Known):
            offered = [(str(name), str(binding)) for name, _, binding in found.value]
            facts.actions = Known(tuple(await self._named(facts.ref, offered, deadline)))
        else:
            facts.actions = found

    async def _named(self, ref: ObjectRef, offered: list[tuple[str, str]], deadline: Deadline) -> list[tuple[str, str]]:
        """`GetActions` tells localised names, of which Chromium has none: then each is asked for its own."""
        if all(name for name, _ in offered):
            return offered
        names = await asyncio.gather(
            *(
                self._bus.ask(ref, words.ACTION, "GetName", deadline, signature="i", body=[i])
                for i in range(len(offered))
            )
        )
        return [
            (str(own.value) if isinstance(own, Known) else name, binding)
            for own, (name, binding) in zip(names, offered, strict=True)
        ]

    async def _label(self, facts: Facts, deadline: Deadline) -> None:
        found = await self._bus.ask(facts.ref, words.ACCESSIBLE, "GetRelationSet", deadline)
        if not isinstance(found, Known):
            facts.label = found
            return
        refs = [ObjectRef(*r) for kind, targets in found.value if kind == words.LABELLED_BY for r in targets]
        found_names = await asyncio.gather(
            *(self._bus.get(r, words.ACCESSIBLE, "Name", deadline) for r in dict.fromkeys(refs) if r != facts.ref)
        )
        names = [self._texts(n) for n in found_names]
        unread = next((n for n in names if isinstance(n, Unknown)), None)
        known = [n.value.strip() for n in names if isinstance(n, Known) and n.value.strip()]
        facts.label = unread or (Known(" ".join(known)) if known else ABSENT)

    async def _text(self, facts: Facts, deadline: Deadline) -> None:
        found = await self._bus.ask(facts.ref, words.TEXT, "GetText", deadline, signature="ii", body=[0, -1])
        if isinstance(found, Known) and len(found.value) > _LONGEST_TEXT:
            found = Unknown(f"it is longer than {_LONGEST_TEXT} characters")
        facts.text = found

    async def _number(self, facts: Facts, deadline: Deadline) -> None:
        facts.number = await self._bus.get(facts.ref, words.VALUE, "CurrentValue", deadline)

    async def _cell(self, facts: Facts, deadline: Deadline) -> None:
        found = await self._bus.get(facts.ref, _TABLE_CELL, "Position", deadline)
        facts.cell = Known((int(found.value[0]), int(found.value[1]))) if isinstance(found, Known) else ABSENT

    async def _link(self, facts: Facts, deadline: Deadline) -> None:
        facts.link = await self._bus.ask(
            facts.ref, "org.a11y.atspi.Hyperlink", "GetURI", deadline, signature="i", body=[0]
        )


def state_bits(raw: Any) -> int:
    """Two 32-bit words, low first."""
    return sum(int(part) << (32 * i) for i, part in enumerate(raw))


def refs_of(raw: Any) -> tuple[ObjectRef, ...]:
    return tuple(ObjectRef(str(bus), str(path)) for bus, path in raw if str(path) != NULL_PATH)


def box_of(found: Field[Any]) -> Field[Box]:
    """GTK 3 answers a place far outside for what is not on the screen, and -1 for what it does not know."""
    if not isinstance(found, Known):
        return found
    x, y, width, height = (int(v) for v in found.value)
    if x <= -(2**31) or y <= -(2**31) or width < 0 or height < 0:
        return Known((0, 0, 0, 0))
    return Known((x, y, width, height))


def bounds_showing(facts: Facts, toolkit: Toolkit) -> Field[bool]:
    """On the screen by its own word. GTK 4 sets `showing` on windows only."""
    if not toolkit.tells_showing and facts.word not in words.WINDOWS:
        return facts.has(State.VISIBLE)
    return facts.has(State.SHOWING)


def _in(values: dict[str, Any], name: str) -> Field[Any]:
    return Known(values[name]) if name in values else ABSENT


def _ref(found: Field[Any]) -> Field[ObjectRef]:
    return Known(ObjectRef(str(found.value[0]), str(found.value[1]))) if isinstance(found, Known) else found


def _blank(name: Field[str]) -> bool:
    return not (isinstance(name, Known) and name.value.strip())
