"""What an agent did in a recorded run, as moves that can be made again: the same commands on the same elements of a
fresh application, at the same pace. Refs are told by the snapshot's number in the run, because ids are random."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from deskcert.contract.refs import parse_ref
from deskcert_ledger import Record
from deskcert_schema.errors import ContractError
from deskcert_schema.vocabulary import RecordKind

__all__ = ["Script", "script_of"]

_LONGEST_MS: Final = 5_000
_STAND_IN: Final = "replayed"
"""Typed where the value of a secure field left no opening."""


@dataclass(slots=True)
class Script:
    moves: list[dict[str, Any]] = field(default_factory=list)
    origin: str = ""
    """Of the recorded application: another port now."""
    notes: list[str] = field(default_factory=list)
    """What cannot be as it was."""

    def as_json(self) -> dict[str, Any]:
        return {"moves": self.moves, "origin": self.origin}


type Trees = Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]]
"""An observation's payload → the nodes that the agent saw; none where they are gone."""


def script_of(records: Iterable[Record], openings: Mapping[str, tuple[str, str]], trees: Trees) -> Script:
    """The moves of one run. An action that took several intents is one move."""
    made = Script()
    snapshots: dict[str, tuple[int, Mapping[str, Any]]] = {}
    actions: dict[int, int] = {}
    intended: set[int] = set()
    last_us = 0
    for record in records:
        data = record.data
        match record.kind:
            case RecordKind.OBSERVATION:
                made.origin = made.origin or _origin(str(data["window"]["url"]))
                snapshots[str(data["snapshot_id"])] = len(snapshots), data
                args = {k: v for k, v in data.get("options", {}).items() if v is not None}
                made.moves.append({"command": "snapshot", "args": args, "after_ms": _pause(record.m, last_us, data)})
            case RecordKind.ACTION_INTENT | RecordKind.ACTION_DENIED | RecordKind.ACTION_REFUSED:
                actions[record.seq] = data["action"] if isinstance(data.get("action"), int) else -1
                if data.get("action") in intended and "target" in data:
                    last_us = record.m  # another pass of the same action: the application changed under the first
                    continue
                intended |= {data["action"]} if record.kind == RecordKind.ACTION_INTENT else set()
                move = _move(made, record, actions, openings) | _target(data, snapshots, trees)
                made.moves.append(move | {"after_ms": _pause(record.m, last_us, data)})
            case RecordKind.CLAIM:
                args = {"outcome": data["outcome"], "message": data.get("message", "")}
                made.moves.append({"command": "finish", "args": args, "after_ms": _pause(record.m, last_us, data)})
            case _:
                if record.kind != RecordKind.ACTION_RESULT:
                    continue
        last_us = record.m
    return made


def _move(
    made: Script, record: Record, actions: Mapping[int, int], openings: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    data = record.data
    args = {k: v for k, v in data.get("args", {}).items() if k not in {"_sd", "repeat_of"}}
    move: dict[str, Any] = {"command": data["command"], "args": args}
    for digest in data.get("args", {}).get("_sd", ()):
        name, value = openings.get(digest, ("value", ""))
        args[name] = value if digest in openings else _STAND_IN
        if digest not in openings:
            made.notes.append(f"record {record.seq}: the typed value has no opening; {_STAND_IN!r} was typed instead")
    named = data.get("args", {}).get("repeat_of")
    if named is not None:
        move["repeat_of_action"] = actions.get(named, actions.get(named - 1, -1))
    return move


def _target(
    data: Mapping[str, Any], snapshots: Mapping[str, tuple[int, Mapping[str, Any]]], trees: Trees
) -> dict[str, Any]:
    """In which snapshot, which number, and the place among those that read the same: numbers shift, that stays."""
    try:
        ref = parse_ref(data.get("args", {}).get("ref"))
    except ContractError:
        return {}
    if ref.snapshot not in snapshots:
        return {}
    number, seen = snapshots[ref.snapshot]
    nodes = {node["ref"]: node for node in trees(seen) if "ref" in node}
    chosen = nodes.get(ref.n, {})
    alike = [n for n, node in nodes.items() if _reads(node) == _reads(chosen)] if chosen else []
    role, name = _reads(chosen)
    place = {"place": alike.index(ref.n), "alike": len(alike)} if alike else {}
    return {"snapshot": number, "n": ref.n, "role": role, "name": name, **place}


def _reads(node: Mapping[str, Any]) -> tuple[Any, Any]:
    return node.get("role"), node.get("name")


def _pause(now_us: int, last_us: int, data: Mapping[str, Any]) -> int:
    """Whole milliseconds between the last answer and this command: what the guard itself took is not the agent's."""
    looks = data.get("looks") or data.get("actionability", {}).get("looks") or ()
    own = (looks[-1].get("t_us", 0) if looks else 0) + data.get("observe_us", 0)
    return max(0, min(_LONGEST_MS, (now_us - last_us - own) // 1_000)) if last_us else 0


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
