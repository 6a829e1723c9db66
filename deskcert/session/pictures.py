"""Pictures for whoever reads a run: what the window showed at an action, the target outlined, editable fields masked.

A picture is a record of its own, after the record that it belongs to (`of`), and a salted blob. It decides nothing, and
where none can be taken the record says why. Nothing is dispatched while it is taken; the comparison in the act comes
after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from deskcert.adapters.base import Adapter, ObserveOptions, PageAdapter, RawNode
from deskcert.session.records import Ledger, Records
from deskcert_ledger import Blob, Receipt
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import RecordKind

__all__ = ["PicturedRecords", "Take", "fields_of"]

type Box = tuple[int, int, int, int]
type Target = tuple[Box | None, str]

_BUDGET_MS: Final = 2_000
_FIELDS: Final = frozenset({"textbox", "searchbox", "spinbutton", "combobox"})
_STATES: Final = frozenset({"editable", "secure"})
_FRAMES: Final = frozenset({"iframe", "frame"})


class Take(StrEnum):
    """`evidence.screenshots` of deskcert.yaml."""

    OFF = "off"
    FINDINGS = "findings"
    """Of what findings are made of: what was denied or refused, and what did not end verified."""
    ALL = "all"
    """Also before each dispatch."""


class PicturedRecords(Records):
    """Writes a picture after each record that `take` names."""

    def __init__(self, ledger: Ledger, adapter: Adapter, take: Take) -> None:
        super().__init__(ledger)
        self._adapter, self._take = adapter, take
        self._target: Target = (None, "")
        """Of the newest intent."""

    async def write(self, kind: RecordKind, payload: Mapping[str, Any], *, durable: bool = True) -> Receipt:
        receipt = await super().write(kind, payload, durable=durable)
        if self._wanted(kind, payload):
            target = self._target if kind is RecordKind.ACTION_RESULT else _target_of(payload)
            if kind is RecordKind.ACTION_INTENT:
                self._target = target
            told = await self._picture(*target)
            await super().write(RecordKind.PICTURE, {"of": receipt.seq, **told}, durable=False)
        return receipt

    def _wanted(self, kind: RecordKind, payload: Mapping[str, Any]) -> bool:
        match kind:
            case RecordKind.ACTION_DENIED | RecordKind.ACTION_REFUSED:
                return self._take is not Take.OFF
            case RecordKind.ACTION_INTENT:
                self._target = _target_of(payload)
                return self._take is Take.ALL
            case RecordKind.ACTION_RESULT:
                return self._take is not Take.OFF and payload.get("delivery") != "delivered_verified"
            case _:
                return False

    async def _picture(self, box: Box | None, node: str) -> dict[str, Any]:
        if not isinstance(self._adapter, PageAdapter):
            return {"missing": "no picture can be taken here"}
        try:
            options = ObserveOptions(budget_ms=_BUDGET_MS, interactive_only=True, include_bounds=True)
            seen = await self._adapter.observe(options)
            if not seen.complete:
                return {"missing": "which fields to mask is not known: the page could not be read to its end"}
            masks = tuple(fields_of(seen.nodes))
            data = await self._adapter.picture(box, node=node, budget_ms=_BUDGET_MS, masks=masks)
        except AdapterError as exc:
            return {"missing": str(exc)[:300]}
        return {"image": Blob({"format": "png", "data": data}), "outlined": box is not None, "masked": len(masks)}


def _target_of(payload: Mapping[str, Any]) -> Target:
    evidence = payload.get("evidence")
    if not isinstance(evidence, Mapping):
        return None, ""
    box = evidence.get("box")
    if isinstance(box, Sequence) and len(box) == 4 and all(isinstance(n, int) for n in box):
        return (box[0], box[1], box[2], box[3]), str(evidence.get("node", ""))
    return None, ""


def fields_of(nodes: Sequence[RawNode]) -> Iterator[Box]:
    """Where something can be typed. Places inside a frame are the frame's own, so the whole frame is masked."""
    frame: tuple[int, Box | None, bool] | None = None
    for node in nodes:
        depth = int(node["d"])
        if frame is not None and depth <= frame[0]:
            frame = None
        if node.get("role") in _FRAMES and frame is None:
            frame = (depth, _place(node), False)
        elif _is_field(node):
            if frame is None:
                place = _place(node)
            elif frame[2]:
                continue
            else:
                place, frame = frame[1], (frame[0], frame[1], True)
            if place is None:
                raise AdapterError("which part of the page to mask is not known")
            yield place


def _is_field(node: RawNode) -> bool:
    states = node.get("states")
    unknown = isinstance(states, Mapping)
    told = _STATES.intersection(states) if isinstance(states, list | tuple) else ()
    return unknown or node.get("role") in _FIELDS or bool(told)


def _place(node: RawNode) -> Box | None:
    box = node.get("box")
    return (box[0], box[1], box[2], box[3]) if isinstance(box, list | tuple) and len(box) == 4 else None
