"""One record, with everything that belongs to it: its blobs, the openings of its secrets, its intent or result."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deskcert.audit.story import read_whole
from deskcert.report.visible import visible
from deskcert_ledger import Record, load_blob, openings
from deskcert_schema.errors import LedgerError, UsageError

__all__ = ["Found", "look_up", "shown_lines"]

_LONGEST: Final = 400


@dataclass(frozen=True, slots=True)
class Found:
    record: Record
    partner: Record | None
    """The result of an intent, the intent of a result."""
    tree: Any
    missing: str
    """What can no longer be shown, and why."""
    opened: Mapping[str, tuple[str, str]]
    """Digest → (name, value), of this record's commitments only."""
    folder: Path

    def as_json(self, *, tree: bool) -> dict[str, Any]:
        told: dict[str, Any] = {**_whole(self.record), "opened": dict(self.opened.values())}
        if tree and self.tree is not None:
            told["tree"] = self.tree
        if self.partner is not None:
            told["belongs_to"] = _whole(self.partner)
        return told | ({"missing": self.missing} if self.missing else {})


def _whole(record: Record) -> dict[str, Any]:
    return {"seq": record.seq, "kind": record.kind, "w": record.w, "t": record.t, "m": record.m, **record.data}


def look_up(folder: Path, seq: int) -> Found:
    """Raises `UsageError` when there is no such record."""
    found = partner = None
    size = 0
    for record in read_whole(folder):
        size = record.seq + 1
        if record.seq == seq:
            found = record
            if record.kind == "action.result":
                partner = next((r for r in read_whole(folder) if r.seq == record.data.get("of")), None)
            if record.kind != "action.intent":
                break
        elif found is not None and record.kind == "action.result" and record.data.get("of") == seq:
            partner = record
            break
    if found is None:
        raise UsageError(f"{folder} has no record {seq}: it has {size}, the first is 0.")
    tree, missing = _tree(folder, found)
    return Found(found, partner, tree, missing, _opened(folder, found.data), folder)


def _tree(folder: Path, record: Record) -> tuple[Any, str]:
    if "tree" not in record.data:
        return None, ""
    try:
        return load_blob(folder, record.data["tree"]), ""
    except LedgerError as exc:
        return None, f"what the agent saw can no longer be shown: {exc}"


def _opened(folder: Path, data: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    wanted = set(_commitments(data))
    try:
        return {d: v for d, v in openings(folder).items() if d in wanted} if wanted else {}
    except LedgerError:
        return {}


def _commitments(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (d for d in value.get("_sd", ()) if isinstance(d, str))
        for inner in value.values():
            yield from _commitments(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _commitments(inner)


def shown_lines(found: Found, *, tree: bool) -> Iterator[str]:
    """Plain lines, every foreign text harmless."""
    record = found.record
    yield f"record {record.seq}  {record.kind}  {record.t}  written by {visible(record.w)}"
    yield from _fields(record.data)
    for digest in _commitments(record.data):
        name, value = found.opened.get(digest, ("", ""))
        told = f"{name} = {_short(value)}" if name else "no opening: nobody can show the value any more, or ever could"
        yield f"  secret {visible(digest[:12])}…  {visible(told)}"
    if found.partner is not None:
        yield ""
        yield f"  {'result' if found.partner.kind == 'action.result' else 'intent'}: record {found.partner.seq}"
        yield from _fields(found.partner.data)
    if found.missing:
        yield f"  {visible(found.missing)}"
    if tree and found.tree is not None:
        yield ""
        yield from _tree_lines(found.tree)
    yield ""
    yield f"  its proof: deskcert ledger prove {visible(str(found.folder))} {record.seq}"


def _fields(data: Mapping[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        match key, value:
            case "tree" | "plan" | "key_intro", _:
                continue
            case "actionability", {"checks": checks}:
                for number, check in enumerate(checks, 1):
                    why = f"  {check['reason']}" if "reason" in check else ""
                    by = f" ({_short(check['occluder'])})" if check.get("occluder") else ""
                    yield visible(f"  check {number}  {check.get('check')}: {check.get('status')}{why}{by}")
                looks = value.get("looks", ())
                if len(looks) > 1:
                    yield f"  looks  {len(looks)}, the last after {looks[-1].get('t_us', 0) // 1000} ms"
            case "evidence" | "gate" | "policy" | "target" | "dispatch" | "verification" | "window", {}:
                for inner, told in value.items():
                    yield visible(f"  {key}.{inner}  {_short(told)}")
            case _:
                yield visible(f"  {key}  {_short(value)}")


def _short(value: Any) -> str:
    told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return told if len(told) <= _LONGEST else f"{told[:_LONGEST]}… ({len(told)} characters)"


def _tree_lines(tree: Any) -> Iterator[str]:
    for node in tree.get("nodes", ()) if isinstance(tree, dict) else ():
        ref = f"  [e{node['ref']}]" if "ref" in node else ""
        name = node.get("name")
        named = f" “{name}”" if isinstance(name, str) and name else ""
        yield visible("  " * (int(node.get("d", 0)) + 1) + str(node.get("role", "")) + named + ref)
