"""From a payload to bytes: secrets become commitments, blobs become files, long fields become blobs.

All of this happens in the caller's thread when a record is submitted; only header and number are added when the
sequencer persists it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from deskcert_ledger.blob import MAX_BLOB_BYTES, Blob, BlobFile, is_reference, make_blob
from deskcert_ledger.disclosure import SD, Secret, commit
from deskcert_ledger.line import MARK_UTF8, MAX_LINE_BYTES, Json, dumps, dumps_strict, is_plain, plain
from deskcert_schema.errors import ContractError

__all__ = ["DETAIL_KIND", "HEADER", "MAX_FIELD_BYTES", "Prepared", "make_line", "prepare"]

HEADER = ("v", "seq", "t", "m", "w", "kind")
DETAIL_KIND = "detail_kind"
"""How the payload field `kind` (an error's sub-code) stands on the line: `kind` itself is the record's kind."""
FORMAT_VERSION = 1
MAX_FIELD_BYTES = 4096
_BODY_LIMIT = MAX_LINE_BYTES - 512  # room for the header


class Prepared(NamedTuple):
    body: bytes
    """The payload's members as JSON, without braces; may be empty."""
    blobs: tuple[BlobFile, ...]
    sidecar: bytes
    """Lines for `disclosures.jsonl`."""


@dataclass(slots=True)
class _Swap:
    """Puts commitments and blob references in the place of secrets and blobs."""

    rng: Callable[[int], bytes]
    blobs: list[BlobFile] = field(default_factory=list)
    sidecar: list[bytes] = field(default_factory=list)
    within: bool = False

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            if not self.within and is_reference(dict(value) if len(value) == 2 else None):
                return self._blob(value)  # foreign data that looks like a reference: keep it apart from real ones
            if any(isinstance(item, Secret) for item in value.values()):
                return self._hide(value)
            return value
        if isinstance(value, Blob):
            if self.within:
                raise ContractError("a blob's content cannot hold another blob")
            return self._blob(value.content)
        if isinstance(value, Secret):
            raise ContractError("a secret stands as a value in an object, nowhere else")
        return value

    def _blob(self, content: Any) -> dict[str, str | int]:
        self.within = True
        try:
            return self.store(plain(content, 0, self))
        finally:
            self.within = False

    def store(self, content: Json) -> dict[str, str | int]:
        raw = dumps(content)
        if len(raw) > MAX_BLOB_BYTES - 16:
            raise ContractError(f"a blob of {len(raw)} bytes: at most {MAX_BLOB_BYTES} are written")
        made = make_blob(raw, self.rng)
        self.blobs.append(made)
        return made.reference()

    def _hide(self, value: Mapping[str, Any]) -> dict[str, Any]:
        if SD in value:
            raise ContractError(f"an object with secrets cannot have a field {SD!r} of its own")
        digests: list[str] = []
        kept: dict[str, Any] = {}
        for name, item in value.items():
            if isinstance(item, Secret):
                made = commit(name, item, self.rng)
                digests.append(made.digest)
                self.sidecar.append(made.sidecar)
            else:
                kept[name] = item
        kept[SD] = sorted(digests)  # the order tells nothing about the names
        return kept


_HEADER = frozenset(HEADER)


def _plainly(payload: Mapping[str, Any]) -> Prepared | None:
    """Most payloads are short and hold nothing that is replaced: one look and one encoding. None for all others."""
    if type(payload) is not dict or not _HEADER.isdisjoint(payload) or not is_plain(payload):
        return None
    try:
        raw = dumps_strict(payload)
    except (TypeError, ValueError, RecursionError):  # lone surrogates, integers that are too large
        return None
    return None if len(raw) > MAX_FIELD_BYTES or MARK_UTF8 in raw else Prepared(raw[1:-1], (), b"")


def prepare(payload: Mapping[str, Any], rng: Callable[[int], bytes]) -> Prepared:
    """Encode a payload. Raises `ContractError` when a value cannot stand in a ledger.

    The field `kind` is written as `detail_kind` (see `DETAIL_KIND`); other header names are refused.
    """
    plainly = _plainly(payload)
    if plainly is not None:
        return plainly
    swap = _Swap(rng)
    renamed = {DETAIL_KIND if name == "kind" else name: value for name, value in payload.items()}
    taken = [name for name in renamed if name in HEADER]
    if taken or len(renamed) < len(payload):
        raise ContractError(f"a payload cannot have a field {(taken or ['kind'])[0]!r}: the header uses that name")
    written = plain(renamed, 0, swap)
    assert isinstance(written, dict)
    encoded = {name: _fit(value, swap) for name, value in written.items()}
    _squeeze(encoded, swap)
    body = b",".join(dumps(name) + b":" + raw for name, (_, raw) in encoded.items())
    return Prepared(body, tuple(swap.blobs), b"".join(swap.sidecar))


def _fit(value: Json, swap: _Swap) -> tuple[Json, bytes]:
    """`value` with its long fields as blobs: long members of an object first, then, if that was not it, the whole.

    What holds a reference is never moved into a blob: verification looks for references in records only.
    """
    raw = dumps(value)
    if len(raw) <= MAX_FIELD_BYTES:
        return value, raw
    if isinstance(value, dict):
        value = {name: _fit(item, swap)[0] for name, item in value.items()}
        raw = dumps(value)
    if len(raw) <= MAX_FIELD_BYTES or _holds_reference(value):
        return value, raw
    reference: Json = dict(swap.store(value))
    return reference, dumps(reference)


def _holds_reference(value: Json) -> bool:
    if isinstance(value, dict):
        return is_reference(value) or any(_holds_reference(item) for item in value.values())
    return isinstance(value, list) and any(_holds_reference(item) for item in value)


def _squeeze(encoded: dict[str, tuple[Json, bytes]], swap: _Swap) -> None:
    """Move the longest fields to blobs until the line fits."""
    while sum(len(name) * 6 + len(raw) + 4 for name, (_, raw) in encoded.items()) > _BODY_LIMIT:
        movable = [name for name, (value, raw) in encoded.items() if len(raw) > 128 and not _holds_reference(value)]
        if not movable:
            raise ContractError("a record has too many fields to fit a ledger line")
        longest = max(movable, key=lambda name: len(encoded[name][1]))
        reference: Json = dict(swap.store(encoded[longest][0]))
        encoded[longest] = reference, dumps(reference)


def make_line(seq: int, *, t: str, m: int, w: str, kind: str, body: bytes) -> bytes:
    """The line without its newline: header first, in fixed order."""
    head = b'{"v":1,"seq":%d,"t":"%s","m":%d%s' % (seq, t.encode("ascii"), m, _writer(w, kind))
    return head + b"," + body + b"}" if body else head + b"}"


@lru_cache(maxsize=256)
def _writer(w: str, kind: str) -> bytes:
    return b',"w":%s,"kind":%s' % (dumps(w), dumps(kind))
