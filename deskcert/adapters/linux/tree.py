"""From what was read to the contract's flat tree, and to what is kept of each element for finding it again. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deskcert.adapters.base import RawNode
from deskcert.adapters.linux import words
from deskcert.adapters.linux.application import Application
from deskcert.adapters.linux.bus import ObjectRef
from deskcert.adapters.linux.facts import Box, Facts, Toolkit, capabilities
from deskcert.adapters.linux.reading import bounds_showing
from deskcert.adapters.linux.walk import Branch
from deskcert.adapters.linux.words import State
from deskcert.contract.evidence import ABSENT, Field, Known, Unknown, field_to_json

__all__ = ["Place", "Tree", "Visibility", "context_of", "flat", "node_id", "ref_of", "visibility"]

_THOUSANDTHS: Final = 1_000
_TOKENS: Final = (
    ("focused", State.FOCUSED),
    ("readonly", State.READ_ONLY),
    ("required", State.REQUIRED),
    ("indeterminate", State.INDETERMINATE),
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an element was seen: what a later look compares with."""

    ref: ObjectRef
    chain: tuple[ObjectRef, ...]
    """Its ancestors, parent first, up to and with the window."""
    told: tuple[Field[ObjectRef], ...]
    """What the element and each of the chain answered as its parent; what did not answer is taken from the walk."""
    index: int
    """Among its parent's children."""
    row: ObjectRef | None
    """What gave the label of its row."""


@dataclass(frozen=True, slots=True)
class Tree:
    nodes: tuple[RawNode, ...]
    places: Mapping[str, Place]
    windows: tuple[Facts, ...]


@dataclass(frozen=True, slots=True)
class Visibility:
    visible: Field[bool]
    offscreen: bool = False
    """Shown by its container, but scrolled out of sight."""


def node_id(ref: ObjectRef, app: Application) -> str:
    return ref.path if ref.bus == app.root.bus else f"{ref.bus}{ref.path}"


def ref_of(node: str, app: Application) -> ObjectRef:
    bus, slash, path = node.partition("/")
    return ObjectRef(bus or app.root.bus, slash + path)


def visibility(facts: Facts, above: Field[bool], toolkit: Toolkit, *, to_scroll: bool = False) -> Visibility:
    """`above`: whether its parent is to be seen. A closed dialog, a closed menu, a tab that is not in front: hidden,
    although the toolkit would still carry out an action there. `to_scroll`: only to be brought into sight, which a
    page's elements can be that are further down."""
    own = bounds_showing(facts, toolkit)
    if above != Known(True):
        return Visibility(above)
    if to_scroll and toolkit.hides_by_state and own == Known(False) and facts.is_(State.VISIBLE):
        return Visibility(Known(True), offscreen=True)
    if own == Known(False) and facts.word in words.ITEMS and isinstance(facts.box, Known) and facts.box.value[3] > 0:
        return Visibility(Known(True), offscreen=True)
    return Visibility(own if isinstance(own, Known | Unknown) else Known(False))


def context_of(chain: list[Facts], row: str | None) -> tuple[tuple[str, str], ...]:
    """`chain`: parent first. Outermost first in the answer: labels by which a person tells twins apart."""
    found = [pair for facts in reversed(chain) if (pair := _lends(facts)) is not None]
    return (*found, ("row", row)) if row else tuple(found)


def _lends(facts: Facts) -> tuple[str, str] | None:
    if not isinstance(facts.name, Known) or not facts.name.value.strip():
        return None
    match facts.word:
        case "dialog" | "alert":
            kind = "dialog"
        case "window" if facts.is_(State.MODAL):
            kind = "dialog"
        case "option" | "treeitem":
            kind = "listitem"
        case "row":
            kind = "row"
        case "group" | "menuitem" | "tab":
            kind = "group"
        case "generic" if facts.role == Known(39):
            kind = "group"
        case "region" | "form":
            kind = "region"
        case _:
            return None
    return kind, " ".join(facts.name.value.split())


def flat(root: Branch, app: Application, *, headed: bool) -> Tree:
    """The whole tree, in pre-order."""
    return _Flat(app, headed).tree(root)


class _Flat:
    def __init__(self, app: Application, headed: bool) -> None:
        self._app, self._headed = app, headed
        self._nodes: list[RawNode] = []
        self._places: dict[str, Place] = {}

    def tree(self, root: Branch) -> Tree:
        name = root.facts.accessible_name()
        self._nodes.append({"d": 0, "role": "application", "name": field_to_json(name), "path": "0"})
        for i, window in enumerate(root.children):
            self._add(window, [], Known(True), None, (1, f"0.{i}", i))
        if root.cut:
            self._nodes[0] = {**self._nodes[0], "truncated": True}
        return Tree(tuple(self._nodes), self._places, tuple(b.facts for b in root.children))

    def _add(
        self, branch: Branch, chain: list[Facts], above: Field[bool], parent: Branch | None, at: tuple[int, str, int]
    ) -> None:
        depth, path, index = at
        facts = branch.facts
        seen = visibility(facts, above, self._app.toolkit)
        row = row_of(facts, parent)
        node = self._node(branch, chain, seen, row)
        self._nodes.append({"d": depth, "path": path, **node})
        self._places[node_id(facts.ref, self._app)] = self._place(facts, chain, index, row)
        inner = Known(True) if seen.offscreen else seen.visible
        for i, child in enumerate(branch.children):
            self._add(child, [facts, *chain], inner, branch, (depth + 1, f"{path}.{i}", i))

    def _place(self, facts: Facts, chain: list[Facts], index: int, row: Facts | None) -> Place:
        line = [facts, *chain]
        above = [*(f.ref for f in chain), self._app.root]
        told = tuple(
            f.parent if isinstance(f.parent, Known) else Known(walked) for f, walked in zip(line, above, strict=True)
        )
        return Place(facts.ref, tuple(f.ref for f in chain), told, index, row.ref if row is not None else None)

    def _node(self, branch: Branch, chain: list[Facts], seen: Visibility, row: Facts | None) -> dict[str, Any]:
        facts = branch.facts
        selectable = holder_of(facts, chain) is not None
        offered = capabilities(facts, self._app.toolkit, headed=self._headed, in_selection=selectable)
        interactive = facts.word in words.INTERACTIVE and bool(offered)
        name = facts.accessible_name()
        node: dict[str, Any] = {
            "node": node_id(facts.ref, self._app),
            "role": facts.word,
            "name": field_to_json(name),
            "value": field_to_json(facts.value()) if facts.word in words.INTERACTIVE else None,
            "description": filled(facts.description),
            "native_id": _native(facts),
            "states": tokens(facts, seen),
            "actions": list(offered),
            "box": scaled(facts.box.value) if isinstance(facts.box, Known) else None,
            "context": [list(pair) for pair in context_of(chain, label_of(row))] if interactive else None,
            "interactive": True if interactive else None,
            "truncated": True if branch.cut else None,
            "text": name.value if facts.word == "statictext" and isinstance(name, Known) else None,
            "opaque": True if facts.unread() is not None else None,
        }
        return {k: v for k, v in node.items() if v is not None}


def _native(facts: Facts) -> dict[str, str] | None:
    value = filled(facts.native)
    return {"kind": "accessible_id", "value": value} if value is not None else None


def filled(text: Field[str]) -> str | None:
    """A blank text is no text."""
    return text.value if isinstance(text, Known) and text.value.strip() else None


def scaled(box: Box) -> list[int]:
    return [v * _THOUSANDTHS for v in box]


def tokens(facts: Facts, seen: Visibility) -> list[str]:
    out = [token for token, state in _TOKENS if facts.is_(state)]
    pairs = (
        ("disabled", facts.word in words.INTERACTIVE and facts.enabled() == Known(False)),
        ("checked", facts.checked() == Known(True)),
        ("expanded", facts.expanded() == Known(True)),
        ("collapsed", facts.expanded() == Known(False)),
        ("selected", facts.is_(State.SELECTED)),
        ("secure", facts.secure),
        ("hidden", seen.visible == Known(False)),
        ("offscreen", seen.offscreen),
        ("editable", facts.editable() == Known(True)),
    )
    return sorted([*out, *(token for token, on in pairs if on)])


def offers_selection(facts: Facts) -> bool:
    """Known from its interfaces where they were read; else by role: every toolkit's lists, tables and tabs have it."""
    if isinstance(facts.interfaces, Known):
        return words.SELECTION in facts.interfaces.value
    return facts.word in ("listbox", "table", "tree", "tablist", "combobox", "menu")


def holder_of(target: Facts, chain: Sequence[Facts]) -> tuple[Facts, Facts] | None:
    """What the element is chosen in, and which child of that it is part of (GTK 3 puts cells into cells)."""
    child = target
    for facts in chain:
        if offers_selection(facts):
            return facts, child
        if facts.word != "cell":
            return None
        child = facts
    return None


def label_of(row: Facts | None) -> str | None:
    name = row.name if row is not None else ABSENT
    return (" ".join(name.value.split()) or None) if isinstance(name, Known) else None


def row_of(facts: Facts, parent: Branch | None) -> Facts | None:
    """What labels its row: the first cell of a table's row, or in a plain box the leftmost label on the same line."""
    if parent is None or facts.word not in words.INTERACTIVE:
        return None
    if isinstance(facts.cell, Known):
        row, column = facts.cell.value
        return parent.first_cell(row) if column > 0 else None
    if parent.facts.word != "generic":
        return None
    return leftmost(facts, parent.labels())


def leftmost(facts: Facts, labels: list[Facts]) -> Facts | None:
    own = facts.accessible_name()
    beside = [f for f in labels if label_of(f) and f.name != own and on_same_line(f.box, facts.box)]
    return min(beside, key=lambda f: f.box.value[0] if isinstance(f.box, Known) else 0, default=None)


def on_same_line(label: Field[Box], target: Field[Box]) -> bool:
    """The label stands left of the target, and the target's middle line goes through it."""
    if not isinstance(label, Known) or not isinstance(target, Known):
        return False
    (x, y, width, height), (left, top, _, tall) = label.value, target.value
    middle = top + tall // 2
    return y <= middle < y + height and x + width <= left + 2
