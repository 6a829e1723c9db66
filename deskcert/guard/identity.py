"""(2) Is the retained element still what the agent saw?

Only for retained objects: the object itself is the first and the last word, and this asks whether it is still the same
thing. A row that a list re-used for other content is another element, although its node is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deskcert.adapters.base import Handle, RawNode
from deskcert.contract.evidence import Evidence, Field, Known, Unknown, field_from_json
from deskcert.guard.rules import role_of

__all__ = ["Changed", "Doubtful", "Identity", "Same", "compare", "saved_identity"]


@dataclass(frozen=True, slots=True)
class Same:
    pass


@dataclass(frozen=True, slots=True)
class Changed:
    which: tuple[str, ...]
    """`document | node | role | name | description | context`"""


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A part that identity rests on could not be read: neither the same nor another."""

    which: tuple[str, ...]


type Identity = Same | Changed | Doubtful

MUTABLE_ROLES: Final = frozenset(
    "combobox checkbox spinbutton listbox radio slider switch textbox searchbox scrollbar".split()  # noqa: SIM905
)
"""Their value changes in use; a name that only repeats the value is no identity (reference 3.1)."""


def saved_identity(node: RawNode, handle: Handle) -> dict[str, Any]:
    """The part of a snapshot's node that identity rests on; stands in the record."""
    keys = ("role", "name", "value", "description", "context")
    return {"document": handle.document, "node": handle.node} | {k: node[k] for k in keys if k in node}


def compare(saved: RawNode, handle: Handle, live: Evidence) -> Identity:
    """Same object, role, stable text and context, or which of them differ."""
    changed: list[str] = []
    doubtful: list[str] = []
    if live.document != handle.document:
        changed.append("document")
    if live.node != handle.node:
        changed.append("node")
    if role_of(str(saved.get("role", ""))) != role_of(live.role):
        changed.append("role")
    for which, before, now in _stable_texts(saved, live):
        if isinstance(before, Unknown) or isinstance(now, Unknown):
            doubtful.append(which)
        elif _plain(before) != _plain(now):
            changed.append(which)
    if _context(saved) != live.context:
        changed.append("context")
    if changed:
        return Changed(tuple(changed))
    return Doubtful(tuple(doubtful)) if doubtful else Same()


def _stable_texts(saved: RawNode, live: Evidence) -> list[tuple[str, Field[str], Field[str]]]:
    name = field_from_json(saved.get("name"))
    value = field_from_json(saved.get("value"))
    repeats_value = isinstance(name, Known) and isinstance(value, Known) and _plain(name) == _plain(value)
    if role_of(str(saved.get("role", ""))) in MUTABLE_ROLES and repeats_value and _plain(name):
        return [("description", field_from_json(saved.get("description")), live.names.description)]
    return [("name", name, live.names.accessible)]


def _plain(value: Field[str]) -> str:
    """White space is layout; an empty text is no text, like an absent one."""
    return " ".join(str(value.value).split()) if isinstance(value, Known) else ""


def _context(saved: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(kind), str(label)) for kind, label in saved.get("context", ()))
