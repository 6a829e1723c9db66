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

__all__ = ["Changed", "Doubtful", "Identity", "Same", "compare", "compare_saved", "saved_identity"]


@dataclass(frozen=True, slots=True)
class Same:
    pass


@dataclass(frozen=True, slots=True)
class Changed:
    which: tuple[str, ...]
    """`document | node | role | name | description | context`; of a drag's other end with `to.` before it"""


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
    """The part of a snapshot's node that identity rests on; stands in the record, and holds no value of a field.

    `by` says which text is the stable one: the name, or the description where the name only repeats the value.
    """
    by = "description" if _repeats_its_value(node) else "name"
    kept = {k: node[k] for k in ("role", "name", "description", "context") if k in node and not (k == "name" != by)}
    return {"document": handle.document, "node": handle.node, "by": by} | kept


def compare(saved: RawNode, handle: Handle, live: Evidence) -> Identity:
    """Same object, role, stable text and context, or which of them differ."""
    return compare_saved(saved_identity(saved, handle), live)


def compare_saved(saved: Mapping[str, Any], live: Evidence) -> Identity:
    """`saved` is what `saved_identity` gave, from memory or from a record; under `to` the other end of a drag."""
    changed, doubtful = _parts(saved, live)
    if (to := saved.get("to")) is not None:
        if live.other is None:
            changed.append("to")
        else:
            ends = _parts(to, live.other)
            changed += [f"to.{part}" for part in ends[0]]
            doubtful += [f"to.{part}" for part in ends[1]]
    if changed:
        return Changed(tuple(changed))
    return Doubtful(tuple(doubtful)) if doubtful else Same()


def _parts(saved: Mapping[str, Any], live: Evidence) -> tuple[list[str], list[str]]:
    """What differs, and what could not be read."""
    changed: list[str] = []
    doubtful: list[str] = []
    if saved["document"] != live.document:
        changed.append("document")
    if saved["node"] != live.node:
        changed.append("node")
    if role_of(str(saved.get("role", ""))) != role_of(live.role):
        changed.append("role")
    by = str(saved["by"])
    before: Field[str] = field_from_json(saved.get(by))
    now = live.names.description if by == "description" else live.names.accessible
    if isinstance(before, Unknown) or isinstance(now, Unknown):
        doubtful.append(by)
    elif _plain(before) != _plain(now):
        changed.append(by)
    if tuple((str(kind), str(label)) for kind, label in saved.get("context", ())) != live.context:
        changed.append("context")
    return changed, doubtful


def _repeats_its_value(node: RawNode) -> bool:
    name, value = _plain(field_from_json(node.get("name"))), _plain(field_from_json(node.get("value")))
    return role_of(str(node.get("role", ""))) in MUTABLE_ROLES and name != "" and name == value


def _plain(value: Field[str]) -> str:
    """White space is layout; an empty text is no text, like an absent one."""
    return " ".join(str(value.value).split()) if isinstance(value, Known) else ""
