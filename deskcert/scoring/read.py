"""Reading fields of records that somebody else wrote: a missing or ill-typed field reads as nothing, never as an error.

A record is a plain dict: `v seq t m w kind` and the payload's keys, all at top level (see `ledger.md`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

__all__ = [
    "GONE",
    "Record",
    "boolean",
    "detail_kind",
    "items",
    "kind_of",
    "number",
    "part",
    "ref_of",
    "seq_of",
    "shortened",
    "target_key",
    "text",
    "words_for",
]

type Record = Mapping[str, Any]

GONE: Final = "$gone"
"""Under it stand the names of fields that a rule may want to read and nobody can any more: redacted blobs."""
_NOTHING: Final[Mapping[str, Any]] = {}
_NAME_LIMIT: Final = 80
"""Characters of a page-supplied name that a finding's sentence quotes."""


def _dig(record: Record, path: Sequence[str]) -> Any:
    value: Any = record
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def text(record: Record, *path: str) -> str:
    """The string at `path`; empty when there is none."""
    value = _dig(record, path)
    return value if isinstance(value, str) else ""


def number(record: Record, *path: str) -> int | None:
    value = _dig(record, path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def boolean(record: Record, *path: str) -> bool | None:
    value = _dig(record, path)
    return value if isinstance(value, bool) else None


def part(record: Record, *path: str) -> Record:
    """The object at `path`; an empty one when there is none."""
    value = _dig(record, path)
    return value if isinstance(value, Mapping) else _NOTHING


def items(record: Record, *path: str) -> Sequence[Any]:
    value = _dig(record, path)
    return value if isinstance(value, list | tuple) else ()


def seq_of(record: Record) -> int:
    seq = number(record, "seq")
    return -1 if seq is None else seq


def kind_of(record: Record) -> str:
    return text(record, "kind")


def detail_kind(record: Record) -> str:
    """The sub-code (`unsafe_retry`, …): the payload's `kind`, which a line calls `detail_kind`."""
    return text(record, "detail_kind")


def ref_of(record: Record) -> str:
    """The ref that the agent named, in whatever part of the record it stands."""
    return text(record, "args", "ref") or text(record, "target", "ref")


def target_key(record: Record) -> str:
    """What an action aimed at, independent of snapshot and node: role, name and context, or a page's address.

    Falls back to the ref where the target was never resolved.
    """
    target = part(record, "target")
    facts = [target.get("role"), target.get("name"), target.get("context"), _place(text(target, "url"))]
    if any(facts):
        return json.dumps(facts, sort_keys=True, default=str)
    return ref_of(record) or _place(text(record, "args", "url"))


def words_for(record: Record) -> str:
    """What was attempted, for a sentence: `click on button “Approve” in “Order 1001”`."""
    command = text(record, "command") or "action"
    target = part(record, "target")
    role, name = text(target, "role"), text(target, "name")
    url = text(target, "url") or text(record, "args", "url")
    if not role and not name:
        if url:
            return f"{command} to {shortened(_place(url))}"
        return f"{command} on a ref" if ref_of(record) else command
    inner = [str(pair[1]) for pair in items(target, "context") if isinstance(pair, list | tuple) and len(pair) == 2]
    where = f" in “{shortened(inner[-1])}”" if inner else ""
    quoted = f" “{shortened(name)}”" if name else " without a name"
    return f"{command} on {role or 'element'}{quoted}{where}"


def _place(url: str) -> str:
    """An address without the port of an application on this machine, which is another one in every run."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if parts.hostname not in {"127.0.0.1", "::1", "localhost"}:
        return url
    return parts._replace(scheme="", netloc="").geturl() or "/"


def shortened(words: str) -> str:
    """At most as much of a foreign text as a sentence can carry."""
    return words if len(words) <= _NAME_LIMIT else words[: _NAME_LIMIT - 1] + "…"
