"""How a snapshot is shown to an agent: a nested tree, and one line a node with the same numbers.

Pure: from the numbered nodes and the display options. Nothing here decides what a ref means.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from deskcert.adapters.base import RawNode
from deskcert.contract.shown import shown_json
from deskcert.session.snapshots import Snapshot, is_secure

try:
    import orjson
except ImportError:  # the extra `fast`
    orjson = None  # type: ignore[assignment]

__all__ = ["Display", "nested", "shown_node", "shown_within", "text_form"]


@dataclass(frozen=True, slots=True)
class Display:
    interactive_only: bool = False
    """Only branches that hold a ref."""
    compact: bool = False
    """Without groups that say nothing, and without text that its parent's name repeats."""
    max_depth: int | None = None
    include_bounds: bool = False
    """In CSS pixels."""
    surface: frozenset[str] = frozenset()
    """Only what stands under nodes of these roles; empty: everything."""


@dataclass(slots=True)
class _Branch:
    node: RawNode
    children: list[_Branch] = field(default_factory=list)
    cut: int = 0
    """Children that the depth limit left out."""


def nested(snapshot: Snapshot, display: Display) -> dict[str, Any]:
    """The tree of a snapshot answer. Several roots stand under one node for the window."""
    return _tree(_branches(snapshot.nodes, display), snapshot, display)


def _tree(branches: list[_Branch], snapshot: Snapshot, display: Display) -> dict[str, Any]:
    shown = [_shown(b, snapshot.id, display) for b in branches]
    if len(shown) == 1:
        return shown[0]
    return _node("window", snapshot.window.title, shown)


def text_form(snapshot: Snapshot, display: Display) -> str:
    """One line a node, always compact: role, name, states, value, ref. `e8` stands for `@<snapshot id>:e8`."""
    compact = replace(display, compact=True)
    lines = [f"@{snapshot.id} {_quoted(snapshot.window.title)} {'complete' if snapshot.complete else 'INCOMPLETE'}"]
    for depth, branch in _walk(_branches(snapshot.nodes, compact), 0):
        lines.append("  " * depth + _line(branch))
    return "\n".join(lines)


MAX_BYTES: Final = 900_000
"""Of the tree and the text together, encoded: an answer is one line of at most 1 MiB."""


def shown_within(snapshot: Snapshot, display: Display, limit: int = MAX_BYTES) -> tuple[dict[str, Any], str, bool]:
    """Tree, text, and whether a part had to be left out of this answer (never out of the record) to fit a line."""
    text = text_form(snapshot, display)
    of_text = _size(text)
    for attempt in (display, replace(display, interactive_only=True, compact=True)):
        branches, cut = _branches(snapshot.nodes, attempt), attempt is not display
        small = len(snapshot.nodes) < 500
        if not small and _least(branches) + of_text > limit:
            continue  # without writing out what nobody will read
        tree = _tree(branches, snapshot, attempt)
        if small or _size(tree) + of_text <= limit:
            return (_truncated(tree) if cut else tree), text, cut
    stub = _truncated(_node("window", snapshot.window.title, []))
    if of_text > limit - 10_000:
        # Escapes may double a character, so half of the room always fits.
        text = text.encode("utf-8", "replace")[: limit // 2].decode(errors="ignore") + "\n… cut here: ask for less"
    return stub, text, True


def _truncated(tree: dict[str, Any]) -> dict[str, Any]:
    return {**tree, "subtree_truncated": True}


def _node(role: str, name: str, children: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": role, "name": name, "states": [], "available_actions": [], "children": children}


def _size(shown: object) -> int:
    if orjson is not None:
        with suppress(TypeError):  # half of a surrogate pair, which only the standard library writes
            return len(orjson.dumps(shown))
    return len(json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


_EMPTY_NODE: Final = len('{"role":"","states":[],"available_actions":[],"children":[]}')
_EMPTY_REF: Final = len('"ref_id":"@s:e1",')


def _least(branches: list[_Branch]) -> int:
    """Bytes that the tree will have at least: escapes and some of its properties come on top."""
    total = 0
    for branch in branches:
        node = branch.node
        total += _EMPTY_NODE + len(node.get("role", "")) + _least(branch.children)
        total += sum(map(len, node.get("states", ()))) + sum(map(len, node.get("actions", ())))
        if isinstance(name := node.get("name"), str):
            total += len(name)
        if "ref" in node:
            total += _EMPTY_REF
            for kind, label in node.get("context", ()):
                total += len(kind) + len(label)
    return total


def _branches(nodes: Sequence[RawNode], display: Display) -> list[_Branch]:
    roots: list[_Branch] = []
    path: list[_Branch] = []
    for node in nodes:
        while path and path[-1].node["d"] >= node["d"]:
            path.pop()
        branch = _Branch(node)
        (path[-1].children if path else roots).append(branch)
        path.append(branch)
    if display.surface:
        roots = [b for root in roots for b in _of_roles(root, display.surface)]
    if display.max_depth is not None:
        _clamp(roots, display.max_depth)
    if display.interactive_only:
        roots = _with_refs(roots)
    if display.compact:
        roots = [c for b in roots for c in _compacted(b, None)]
    return roots


def _of_roles(branch: _Branch, roles: frozenset[str]) -> list[_Branch]:
    """The outermost of these roles."""
    if branch.node.get("role") in roles:
        return [branch]
    return [b for child in branch.children for b in _of_roles(child, roles)]


def _clamp(branches: list[_Branch], depth: int) -> None:
    for branch in branches:
        if depth <= 0 and branch.children:
            branch.cut, branch.children = len(branch.children), []
        _clamp(branch.children, depth - 1)


def _with_refs(branches: list[_Branch]) -> list[_Branch]:
    kept = []
    for branch in branches:
        branch.children = _with_refs(branch.children)
        if branch.children or branch.cut or "ref" in branch.node or branch.node.get("truncated") is True:
            kept.append(branch)
    return kept


def _compacted(branch: _Branch, parent: RawNode | None) -> list[_Branch]:
    node = branch.node
    if node.get("role") == "statictext" and parent is not None and _name(node) == parent.get("name"):
        return []
    empty = node.get("role") in _PLAIN_ROLES and not any(node.get(k) for k in _SAYS_SOMETHING)
    branch.children = [c for b in branch.children for c in _compacted(b, parent if empty else node)]
    return branch.children if empty and not branch.cut and branch.children else [branch]


_PLAIN_ROLES: Final = frozenset(("group", "generic", "none", "presentation"))
_SAYS_SOMETHING: Final = ("name", "value", "description", "text", "states", "ref", "truncated", "opaque", "size")


def _shown(branch: _Branch, snapshot_id: str, display: Display) -> dict[str, Any]:
    node, out = branch.node, dict[str, Any]()
    if "ref" in node:
        out["ref_id"] = f"@{snapshot_id}:e{node['ref']}"
    out["role"] = node.get("role", "unknown")
    texts = (("name", _name(node)), ("value", node.get("value")), ("description", node.get("description")))
    unknown = []
    for key, text in texts:
        if not text or (key == "value" and is_secure(node)):
            continue
        if isinstance(text, str):
            out[key] = text
        elif isinstance(text, Mapping):
            unknown.append(key)
    if unknown:
        out["unknown"] = unknown
    for key in ("native_id", "size", "url", "opaque"):
        if node.get(key) is not None:
            out[key] = node[key]
    out["states"] = list(node.get("states", ()))
    out["available_actions"] = list(node.get("actions", ()))
    if node.get("context") and "ref" in node:
        out["context"] = [list(pair) for pair in node["context"]]
    if display.include_bounds and (box := node.get("box")) is not None:
        out["bounds"] = {k: _pixels(v) for k, v in zip(("x", "y", "width", "height"), box, strict=True)}
    if branch.cut:
        out["children_count"] = branch.cut
    elif node.get("children_count") is not None:
        out["children_count"] = node["children_count"]
    if branch.cut or node.get("truncated") is True:
        out["subtree_truncated"] = True
    out["children"] = [_shown(c, snapshot_id, display) for c in branch.children]
    return out


def shown_node(node: RawNode, snapshot_id: str) -> dict[str, Any]:
    """One node by itself, as it stands in a tree, without its children."""
    shown = _shown(_Branch(node), snapshot_id, Display())
    del shown["children"]
    return shown


def _walk(branches: list[_Branch], depth: int) -> Iterator[tuple[int, _Branch]]:
    for branch in branches:
        yield depth, branch
        yield from _walk(branch.children, depth + 1)


def _line(branch: _Branch) -> str:
    node = branch.node
    role, name = node.get("role", "unknown"), _name(node)
    parts = [] if role == "statictext" and isinstance(name, str) else [str(role)]
    if name not in (None, ""):
        parts.append(_quoted(name))
    if states := [s for s in node.get("states", ()) if s not in _UNREMARKABLE]:
        parts.append(f"[{' '.join(states)}]")
    value = node.get("value")
    if value not in (None, "") and not is_secure(node):
        parts.append(f"= {_quoted(value)}")
    if "ref" in node:
        parts.append(f"e{node['ref']}")
    if branch.cut or node.get("truncated") is True or node.get("opaque") is True:
        parts.append("… not read further")
    return " ".join(parts)


_UNREMARKABLE: Final = frozenset(("editable", "offscreen"))


def _quoted(value: object) -> str:
    return shown_json(value) if isinstance(value, str) else "(unknown)"


def _name(node: RawNode) -> Any:
    name = node.get("name")
    return node.get("text") if name in (None, "") and node.get("role") == "statictext" else name


def _pixels(thousandths: int) -> float | int:
    whole, rest = divmod(thousandths, 1000)
    return whole if rest == 0 else thousandths / 1000
