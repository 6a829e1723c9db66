"""Redaction: openings and blobs are deleted, the proof stays, and what was deleted is written down.

The leaves hold salted digests only, so deleting an opening or a blob changes no leaf. In a sealed run each redaction
is a line of `redactions.jsonl`, `{"note": …}`, a note signed by the project key over

    deskcert redaction
    <origin>
    <number> <hex SHA-256 of the line before, or zeros>
    <size> <base64 root of the ledger>
    <JSON: t, reason, openings, blobs>

It is durable before anything is deleted: a crash leaves at most too much. In a run that is open the record `redaction`
says the same. A blob that is missing without either is tampering.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final

from deskcert_ledger.blob import NAMES_THE_GONE, blob_path, is_reference, load_blob
from deskcert_ledger.disclosure import SD
from deskcert_ledger.files import open_regular, read_bounded
from deskcert_ledger.line import decode, encode
from deskcert_ledger.note import Verifier, parse_note
from deskcert_ledger.reader import read_records
from deskcert_ledger.store import DISCLOSURES
from deskcert_schema.errors import LedgerError, LedgerFormatError, LedgerTampered

__all__ = [
    "FIRST",
    "LIMIT",
    "REDACTIONS",
    "Redaction",
    "Redactions",
    "commitments",
    "found_in",
    "kept_openings",
    "read_redactions",
    "select",
]

REDACTIONS: Final = "redactions.jsonl"
_TITLE: Final = "deskcert redaction"
FIRST: Final = "0" * 64
LIMIT = 32 << 20
_SIZE: Final = re.compile("[1-9][0-9]{0,15}")
_MAX_OPENING = 2 << 20
"""As in `reader`: of one line."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """One line of `redactions.jsonl`."""

    origin: str
    size: int
    root: str
    t: str
    reason: str
    openings: tuple[str, ...]
    """Digests of disclosures."""
    blobs: tuple[str, ...]

    def note_text(self, number: int, before: str) -> str:
        what = {"t": self.t, "reason": self.reason, "openings": list(self.openings), "blobs": list(self.blobs)}
        told = encode(what, limit=LIMIT).decode()
        return f"{_TITLE}\n{self.origin}\n{number} {before}\n{self.size} {self.root}\n{told}\n"


@dataclass(frozen=True, slots=True)
class Redactions:
    """What was deleted on purpose, and who says so."""

    entries: tuple[Redaction, ...] = ()
    openings: frozenset[str] = field(default_factory=frozenset)
    blobs: frozenset[str] = field(default_factory=frozenset)
    signed: bool = True
    """False: without a pin nothing tells whose redactions these are."""


def read_redactions(folder: Path, pins: Sequence[Verifier]) -> Redactions:
    """All redactions of a sealed run. Raises `LedgerTampered` at the first line that no pinned key signed."""
    try:
        raw = read_bounded(folder / REDACTIONS, LIMIT)
    except FileNotFoundError:
        return Redactions()
    except OSError as error:
        raise LedgerTampered(f"{REDACTIONS} cannot be read: {error.strerror}") from error
    if len(raw) > LIMIT:
        raise LedgerTampered(f"{REDACTIONS} is longer than {LIMIT} bytes")
    lines = raw.split(b"\n")
    if lines.pop() != b"":
        raise LedgerTampered(f"{REDACTIONS} does not end with a whole line")
    entries: list[Redaction] = []
    before = FIRST
    for number, line in enumerate(lines):
        try:
            entries.append(_entry(line, number, before, pins))
        except LedgerFormatError as error:
            raise LedgerTampered(f"line {number + 1} of {REDACTIONS} is no redaction: {error}") from error
        before = sha256(line).hexdigest()
    openings = frozenset(digest for entry in entries for digest in entry.openings)
    blobs = frozenset(name for entry in entries for name in entry.blobs)
    return Redactions(tuple(entries), openings, blobs, signed=bool(pins))


def _entry(line: bytes, number: int, before: str, pins: Sequence[Verifier]) -> Redaction:
    match decode(line, limit=LIMIT):
        case {"note": str(text), **rest} if not rest:
            note = parse_note(text)
        case _:
            raise LedgerFormatError("it holds a note and nothing else")
    parts = note.text.split("\n")
    size, _, root = parts[3].partition(" ") if len(parts) == 6 else ("", "", "")
    match decode(parts[4].encode(), limit=LIMIT) if _SIZE.fullmatch(size) else None:
        case {"t": str(t), "reason": str(reason), "openings": [*openings], "blobs": [*blobs]} if all(
            isinstance(name, str) for name in [*openings, *blobs]
        ):
            found = Redaction(parts[1], int(size), root, t, reason, tuple(openings), tuple(blobs))
        case _:
            raise LedgerFormatError("its note does not say what was redacted")
    if found.note_text(number, before) != note.text:
        raise LedgerFormatError("it is not the next one: a line was changed, taken out or put in")
    if pins and not any(note.holds(pin) for pin in pins):
        raise LedgerFormatError("no pinned key signed it")
    if len(note.signatures) != 1:
        raise LedgerFormatError("it has a signature that is not known here")
    return found


# -- what there is to redact -------------------------------------------------------------------------------------------


def found_in(folder: Path, value: Any) -> Iterator[tuple[str, str]]:
    """("opening", digest) and ("blob", name) of everything within a record, its blobs included."""
    if is_reference(value):
        yield "blob", value["blob"]
        try:
            value = load_blob(folder, value)
        except LedgerError:
            return  # it is gone already
    if isinstance(value, dict):
        for name, item in value.items():
            if name == SD and isinstance(item, list):
                yield from (("opening", digest) for digest in item if isinstance(digest, str))
            else:
                yield from found_in(folder, item)
    elif isinstance(value, list):
        for item in value:
            yield from found_in(folder, item)


def select(
    folder: Path, seqs: Iterable[int] | None, *, blobs: bool, size: int | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Openings and blobs of the records `seqs` (None: of all) that are still there. `size`: of so many records only.

    Raises `LedgerFormatError` for a number that no record has.
    """
    wanted = None if seqs is None else set(seqs)
    there = {digest for digest, _ in commitments(folder)}
    found: dict[tuple[str, str], None] = {}
    for record in islice(read_records(folder), size):
        if record.kind not in NAMES_THE_GONE and (wanted is None or record.seq in wanted):
            found.update(dict.fromkeys(found_in(folder, record.data)))
        if wanted is not None:
            wanted.discard(record.seq)
    if wanted:
        raise LedgerFormatError(f"there is no record {min(wanted)}")
    openings = tuple(sorted(name for what, name in found if what == "opening" and name in there))
    names = (name for what, name in found if what == "blob" and blobs and blob_path(folder, name).exists())
    return openings, tuple(sorted(names))


def commitments(folder: Path) -> Iterator[tuple[str, bytes]]:
    """(digest, line) of every opening; lines that are none have the digest ""."""
    try:
        file = open_regular(folder / DISCLOSURES)
    except FileNotFoundError:
        return
    except OSError as error:
        raise LedgerFormatError(f"{DISCLOSURES} cannot be read: {error.strerror}") from error
    with file:
        while line := file.readline(_MAX_OPENING):
            try:
                digest = str(decode(line.removesuffix(b"\n"), limit=_MAX_OPENING)["digest"])
            except (LedgerFormatError, KeyError, TypeError):
                digest = ""
            yield digest, line


def kept_openings(folder: Path, gone: Iterable[str]) -> Iterator[bytes] | None:
    """Lines of the sidecar that stay when `gone` goes; None: nothing goes. Read when they are asked for."""
    digests = frozenset(gone)
    return (line for digest, line in commitments(folder) if digest not in digests) if digests else None
