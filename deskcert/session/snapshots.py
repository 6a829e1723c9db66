"""Snapshots of a session: which nodes get refs, what is saved for each, how long it is kept, and what is recorded.

Numbers go depth-first from 1 over the nodes that can be acted on (contract.md, "Refs"). How a snapshot is shown never
changes what is stored for a ref: that is `presentation`'s business alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deskcert.adapters.base import Handle, RawNode, RawObservation, WindowState
from deskcert.contract.refs import Ref
from deskcert_ledger import Blob, Secret

__all__ = [
    "INTERACTIVE_ROLES",
    "KEPT",
    "Saved",
    "Snapshot",
    "SnapshotStore",
    "is_secure",
    "numbered",
    "observation_payload",
]

KEPT: Final = 128
"""Snapshots of one session; the oldest goes first."""

INTERACTIVE_ROLES: Final = frozenset(
    (
        *("button", "checkbox", "colorwell", "combobox", "dockitem", "incrementor", "link", "listbox", "menubutton"),
        *("menuitem", "menuitemcheckbox", "menuitemradio", "option", "radio", "radiobutton", "searchbox", "slider"),
        *("spinbutton", "switch", "tab", "textbox", "textfield", "treeitem"),
    )
)


@dataclass(frozen=True, slots=True)
class Saved:
    """What a ref stands for: the node as it was seen, and where."""

    ref: Ref
    node: RawNode
    handle: Handle
    window: WindowState
    snapshot_seq: int
    """Sequence number of the observation record."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    id: str
    seq: int
    window: WindowState
    nodes: tuple[RawNode, ...]
    """In pre-order, as observed; those with a ref carry its number under `ref`."""
    ref_count: int
    complete: bool
    whole: bool = True
    """Of the page, not of a part of it."""

    def saved(self, n: int) -> Saved | None:
        """The node with number `n`, or None."""
        for node in self.nodes:
            if node.get("ref") == n:
                handle = Handle(str(node.get("document", self.window.document)), str(node["node"]))
                return Saved(Ref(self.id, n), node, handle, self.window, self.seq)
        return None


class SnapshotStore:
    def __init__(self, kept: int = KEPT) -> None:
        self._kept, self._by_id = kept, OrderedDict[str, Snapshot]()
        self._newest: Snapshot | None = None

    def add(self, snapshot: Snapshot) -> None:
        self._by_id[snapshot.id] = snapshot
        self._newest = snapshot if snapshot.whole else self._newest
        while len(self._by_id) > self._kept:
            self._by_id.popitem(last=False)

    def find(self, snapshot_id: str) -> Snapshot | None:
        return self._by_id.get(snapshot_id)

    @property
    def newest(self) -> Snapshot | None:
        """The newest look at the whole page: a look into a part shows nothing of what else an action did."""
        return self._newest


def numbered(nodes: Sequence[RawNode], *, skeleton: int | None = None) -> tuple[tuple[RawNode, ...], int]:
    """The same nodes, those that get a ref with its number under `ref`; and how many that are. `skeleton`: the depth at
    which the page is shown cut off. What is cut there and can be acted on in no way gets a ref too, to look into; these
    numbers come after all others, so that no display changes what another ref means."""
    count, out = 0, list[RawNode]()
    for node in nodes:
        if _gets_ref(node):
            count += 1
            out.append({**node, "ref": count})
        else:
            out.append(node)
    if skeleton is not None:
        for at, node in enumerate(out):
            if _is_anchor(out, at, skeleton):
                count += 1
                out[at] = {**node, "ref": count, "anchor": True}
    return tuple(out), count


def _is_anchor(nodes: Sequence[RawNode], at: int, depth: int) -> bool:
    node = nodes[at]
    if node["d"] - nodes[0]["d"] != depth or "ref" in node or not isinstance(node.get("node"), str):
        return False
    after = nodes[at + 1] if at + 1 < len(nodes) else node
    return bool(after["d"] > node["d"])


def _gets_ref(node: RawNode) -> bool:
    """An interactive role, or a capability other than focus; and a retained identity, without which a ref is a wish."""
    if not isinstance(node.get("node"), str) or node.get("opaque") is True:
        return False
    capable = any(a != "focus" for a in node.get("actions", ()))
    return capable or node.get("interactive") is True or node.get("role") in INTERACTIVE_ROLES


def observation_payload(
    snapshot_id: str,
    raw: RawObservation,
    nodes: Sequence[RawNode],
    options: Mapping[str, Any],
    bait: Sequence[str] = (),
) -> dict[str, Any]:
    """The `observation` record. Values of editable fields are commitments in it; a secure field's is left out."""
    window = raw.window
    payload: dict[str, Any] = {
        "snapshot_id": snapshot_id,
        "complete": raw.complete,
        "nodes": len(nodes),
        "window": {"id": window.id, "title": window.title, "url": window.url, "document": window.document},
        "options": dict(options),
        "tree": Blob({"nodes": _recorded(nodes)}),
        "observe_us": raw.observe_us,
    }
    if raw.reasons:
        payload["reasons"] = list(raw.reasons)
    if seen := [b for b in bait if any(b in text for node in nodes for text in _texts(node))]:
        payload["bait_seen"] = seen
    return payload


def _recorded(nodes: Sequence[RawNode]) -> list[dict[str, Any]]:
    """Every node with what a user may have typed replaced: in a field's value, and in the text inside an editable."""
    out: list[dict[str, Any]] = []
    inside: int | None = None  # depth of the editable node that we are in
    for node in nodes:
        depth = node["d"]
        if inside is not None and depth <= inside:
            inside = None
        secret = _SECRET_KEYS if inside is not None else _VALUE_ONLY
        out.append(_without_secrets(node, secret if _is_editable(node) or inside is not None else ()))
        if inside is None and "editable" in node.get("states", ()):
            inside = depth
    return out


_VALUE_ONLY: Final = ("value",)
_SECRET_KEYS: Final = ("value", "text", "name")
_EDITABLE_ROLES: Final = frozenset(
    ("textbox", "textfield", "searchbox", "combobox", "spinbutton", "incrementor", "slider")
)


def is_secure(node: RawNode) -> bool:
    return "secure" in node.get("states", ())


def _is_editable(node: RawNode) -> bool:
    return (
        node.get("role") in _EDITABLE_ROLES
        or "editable" in node.get("states", ())
        or "set-value" in node.get("actions", ())
        or is_secure(node)
    )


def _without_secrets(node: RawNode, keys: Sequence[str]) -> dict[str, Any]:
    out = dict(node)
    for key in keys:
        value = out.get(key)
        if is_secure(node) and key == "value":
            out.pop(key, None)
        elif isinstance(value, str):
            out[key] = Secret(value)
    return out


def _texts(node: RawNode) -> list[str]:
    return [t for t in (node.get("name"), node.get("text"), node.get("description")) if isinstance(t, str)]
