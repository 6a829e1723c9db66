"""Reading a run folder, strictly and in order. Checking signatures is `verify_run`'s work, not this."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from deskcert_ledger.blob import is_reference, load_blob
from deskcert_ledger.disclosure import open_disclosure
from deskcert_ledger.files import open_regular
from deskcert_ledger.line import MAX_LINE_BYTES, decode
from deskcert_ledger.payload import FORMAT_VERSION
from deskcert_ledger.store import DISCLOSURES, LEDGER
from deskcert_schema.errors import LedgerFormatError

__all__ = ["TIME", "Record", "check_record", "expand", "open_ledger", "openings", "parse_record", "read_records"]

_MAX_OPENING = 2 << 20
"""Bytes of a line of `disclosures.jsonl`; a text in it has at most 1 MiB."""
TIME = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{6}Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Record:
    """One ledger line."""

    seq: int
    kind: str
    """One of `deskcert_schema.vocabulary.RecordKind`, or a kind of a later version."""
    w: str
    """Who wrote it."""
    t: str
    m: int
    """Monotonic microseconds."""
    data: dict[str, Any]
    """The payload, as it stands beside the header. A payload's own `kind` is called `detail_kind` on the line."""
    line: bytes
    """The exact bytes, without the newline: the tree's leaf."""


def check_record(line: bytes, seq: int) -> dict[str, Any]:
    """The whole object of one line that must have number `seq`, its header checked. Raises `LedgerFormatError`."""
    data = decode(line)
    if not isinstance(data, dict):
        raise LedgerFormatError("a record is a JSON object")
    get = data.get
    if get("v") != FORMAT_VERSION or data["v"] is True:
        raise LedgerFormatError(f"a record of format version {get('v')!r}; this reader knows {FORMAT_VERSION}")
    if get("seq") != seq or type(data["seq"]) is not int:
        raise LedgerFormatError(f"record number {get('seq')!r} where {seq} is due")
    m, t, w, kind = get("m"), get("t"), get("w"), get("kind")
    if type(m) is not int or m < 0 or not isinstance(t, str) or TIME.fullmatch(t) is None:
        raise LedgerFormatError("a record without its times")
    if not isinstance(w, str) or not isinstance(kind, str) or not w or not kind:
        raise LedgerFormatError("a record without writer or kind")
    return data


def parse_record(line: bytes, seq: int) -> Record:
    """The record of one line that must have number `seq`. Raises `LedgerFormatError`."""
    data = check_record(line, seq)
    del data["v"], data["seq"]
    t, m, w, kind = data.pop("t"), data.pop("m"), data.pop("w"), data.pop("kind")
    return Record(seq, kind, w, t, m, data, line)


def open_ledger(folder: Path) -> BinaryIO:
    """Open `ledger.jsonl`. Raises `LedgerFormatError` when the folder holds none."""
    try:
        return open_regular(folder / LEDGER)
    except OSError as error:
        raise LedgerFormatError(f"{folder} is no run folder: {LEDGER} cannot be read ({error.strerror})") from error


def read_records(folder: Path) -> Iterator[Record]:
    """Every record in order, in constant memory.

    Raises `LedgerFormatError` with line and byte at the first line that is no record, an unfinished last one included;
    call `verify_run` to learn what that means, and `recover_run` to repair it.
    """
    with open_ledger(folder) as file:
        offset = seq = 0
        while line := file.readline(MAX_LINE_BYTES + 2):
            if not line.endswith(b"\n"):
                what = "a line that is too long" if len(line) > MAX_LINE_BYTES else "the last line is not complete"
                raise LedgerFormatError(what, line=seq + 1, offset=offset)
            try:
                record = parse_record(line[:-1], seq)
            except LedgerFormatError as error:
                raise LedgerFormatError(error.reason, line=seq + 1, offset=offset) from error
            yield record
            offset += len(line)
            seq += 1


def expand(folder: Path, value: Any) -> Any:
    """`value`, or the blob's content when it is a reference: a long field may stand either way."""
    return load_blob(folder, value) if is_reference(value) else value


def openings(folder: Path) -> dict[str, tuple[str, str]]:
    """Digest -> (name, value) for every opening that is still there. No file, no openings.

    Raises `LedgerFormatError` at a line that is no disclosure.
    """
    found: dict[str, tuple[str, str]] = {}
    try:
        file = open_regular(folder / DISCLOSURES)
    except FileNotFoundError:
        return found
    except OSError as error:
        raise LedgerFormatError(f"{DISCLOSURES} cannot be read: {error.strerror}") from error
    with file:
        number = 0
        while line := file.readline(_MAX_OPENING + 1):
            number += 1
            try:
                entry = decode(line.removesuffix(b"\n"), limit=_MAX_OPENING)
                digest, name, value = open_disclosure(entry["disclosure"])
                if list(entry.items()) != [("digest", digest), ("disclosure", entry["disclosure"])]:
                    raise LedgerFormatError("its digest is another")
            except (LedgerFormatError, KeyError, TypeError, AttributeError) as error:
                raise LedgerFormatError(f"{DISCLOSURES}: not a disclosure", line=number) from error
            found[digest] = (name, value)
    return found
