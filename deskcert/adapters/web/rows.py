"""What a walk sends: one JSON text, with a short row of values for each node (`HAS` in walker.js)."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

try:
    import orjson
except ImportError:  # the extra `fast`; without it the standard library does the same, slower
    orjson = None  # type: ignore[assignment]

__all__ = ["decoded", "unpacked"]


def decoded(text: str) -> dict[str, Any]:
    with _many_objects():
        if orjson is not None:
            try:
                return orjson.loads(text)  # type: ignore[no-any-return]
            except orjson.JSONDecodeError:
                pass  # half of a surrogate pair, which pages can contain and only the standard library reads
        return json.loads(text)  # type: ignore[no-any-return]


@contextmanager
def _many_objects() -> Iterator[None]:
    """A page is tens of thousands of objects and none is garbage: to look for it takes as long as to read them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


_KEYS: Final = (
    (1, ("name",)),
    (2, ("native_id",)),
    (4, ("value",)),
    (8, ("description",)),
    (16, ("box",)),
    (32, ("states", "actions", "context")),
    (64, ("frame",)),
    (128, ("name",)),
    (256, ("children_count",)),
    (512, ("size",)),
    (1024, ("truncated",)),
)
"""Bits of a row's mask, in the order in which the values follow (`HAS` in walker.js)."""
_INTERACTIVE: Final = 32
_TEXT: Final = 2048
_CONTROL: Final = 1 | 16 | _INTERACTIVE
_NAMED: Final = frozenset((1, 128))
_GROUP: Final = 256


def unpacked(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The nodes of one walk, which come as rows: depth, id, role, then whatever the mask at the end says. The rows are
    used up."""
    with _many_objects():
        return _unpacked(raw)


def _unpacked(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    tables = raw["tables"]
    roles, states, actions, contexts = (tables[k] for k in ("role", "states", "actions", "context"))
    shapes: dict[int, tuple[dict[str, Any], int]] = {}
    nodes: list[dict[str, Any]] = []
    for row in raw["rows"]:
        mask = row[-1]
        # Four shapes make up most of a page; written out, they take a third of the time that the general way takes.
        if mask == _CONTROL:
            d, node, role, name, box, state, action, context, _ = row
            nodes.append(
                {
                    "d": d,
                    "node": node,
                    "role": roles[role],
                    "name": name,
                    "box": box,
                    "states": states[state],
                    "actions": actions[action],
                    "context": contexts[context],
                    "interactive": True,
                }
            )
        elif mask == _TEXT:
            nodes.append({"d": row[0], "role": "statictext", "text": row[1]})
        elif mask in _NAMED:
            nodes.append({"d": row[0], "node": row[1], "role": roles[row[2]], "name": row[3]})
        elif mask == _GROUP:
            nodes.append({"d": row[0], "node": row[1], "role": roles[row[2]], "children_count": row[3]})
        else:
            shape = shapes.get(mask)
            if shape is None:
                shapes[mask] = shape = _shape(mask)
            blank, at = shape
            row[2] = roles[row[2]]
            if at:
                row[at : at + 3] = states[row[at]], actions[row[at + 1]], contexts[row[at + 2]]
                row[-1] = True
            general = blank.copy()  # of the right size from the beginning
            general.update(zip(blank, row, strict=False))
            nodes.append(general)
    return nodes


def _shape(mask: int) -> tuple[dict[str, Any], int]:
    """The keys of a row with this mask, and where its states stand; 0 where it has none. The mask itself stands last:
    for what is interactive in the place of that word."""
    keys = ["d", "node", "role", *(k for bit, names in _KEYS if mask & bit for k in names)]
    if not mask & _INTERACTIVE:
        return dict.fromkeys(keys), 0
    return dict.fromkeys((*keys, "interactive")), keys.index("states")
