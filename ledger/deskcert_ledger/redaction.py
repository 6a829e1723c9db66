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

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final

from deskcert_ledger.blob import NAMES_THE_GONE, blob_path, is_reference, load_blob
from deskcert_ledger.clock import timestamp
from deskcert_ledger.disclosure import SD
from deskcert_ledger.files import open_own, open_regular, read_bounded
from deskcert_ledger.keys import ProjectKey
from deskcert_ledger.line import decode, encode
from deskcert_ledger.note import Verifier, parse_note
from deskcert_ledger.reader import read_records
from deskcert_ledger.report import RunReport
from deskcert_ledger.store import DISCLOSURES, LEDGER
from deskcert_schema.errors import LedgerError, LedgerFormatError, LedgerTampered, LedgerUnavailable

__all__ = ["REDACTIONS", "Redaction", "Redactions", "commitments", "found_in", "read_redactions", "redact_sealed"]

REDACTIONS: Final = "redactions.jsonl"
_TITLE: Final = "deskcert redaction"
_FIRST: Final = "0" * 64
_NAMES: Final = 10_000
"""In one line: a note has at most a million bytes."""
_LIMIT = 32 << 20
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
        told = encode(what, limit=_LIMIT).decode()
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
        raw = read_bounded(folder / REDACTIONS, _LIMIT)
    except FileNotFoundError:
        return Redactions()
    except OSError as error:
        raise LedgerTampered(f"{REDACTIONS} cannot be read: {error.strerror}") from error
    if len(raw) > _LIMIT:
        raise LedgerTampered(f"{REDACTIONS} is longer than {_LIMIT} bytes")
    lines = raw.split(b"\n")
    if lines.pop() != b"":
        raise LedgerTampered(f"{REDACTIONS} does not end with a whole line")
    entries: list[Redaction] = []
    before = _FIRST
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
    match decode(line, limit=_LIMIT):
        case {"note": str(text), **rest} if not rest:
            note = parse_note(text)
        case _:
            raise LedgerFormatError("it holds a note and nothing else")
    parts = note.text.split("\n")
    size, _, root = parts[3].partition(" ") if len(parts) == 6 else ("", "", "")
    match decode(parts[4].encode(), limit=_LIMIT) if _SIZE.fullmatch(size) else None:
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


# -- doing it ----------------------------------------------------------------------------------------------------------


def redact(folder: Path, key: ProjectKey, done: Redactions, entry: Redaction) -> None:
    """Write `entry` down durably, then delete. `done` is what `read_redactions` gave. Raises `OSError`."""
    lines = read_bounded(folder / REDACTIONS, _LIMIT) if done.entries else b""
    before = sha256(lines.split(b"\n")[-2]).hexdigest() if lines else _FIRST
    note = key.sign_note(entry.note_text(len(done.entries), before))
    parse_note(note)  # what is written down must be read again, before anything is deleted
    lines += encode({"note": note}, limit=_LIMIT) + b"\n"
    if len(lines) > _LIMIT:
        raise LedgerFormatError(f"{REDACTIONS} would be longer than {_LIMIT} bytes: nothing more can be redacted here")
    _replace(folder / REDACTIONS, [lines], 0o644)
    delete(folder, entry.openings, entry.blobs)


def delete(folder: Path, openings: Iterable[str], blobs: Iterable[str]) -> None:
    """Take openings out of the sidecar and remove blob files. Raises `OSError`."""
    kept = kept_openings(folder, openings)
    if kept is not None:
        _replace(folder / DISCLOSURES, kept, 0o600)
    for name in blobs:
        blob_path(folder, name).unlink(missing_ok=True)


def _replace(path: Path, parts: Iterable[bytes], mode: int) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    fd = open_own(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(fd, "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(fd)
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def redact_sealed(
    folder: Path,
    key: ProjectKey,
    *,
    seqs: Iterable[int] | None,
    blobs: bool,
    reason: str,
    now: datetime,
) -> Redaction | None:
    """Redact a sealed run: what was deleted, None when nothing of it is there any more.

    Raises `LedgerTampered` (the run does not verify with `key`, or is not sealed), `LedgerUnavailable` (it is being
    written), `LedgerFormatError`, `OSError`.
    """
    with _held(folder):
        report = _last_state(folder, key)
        openings, names = select(folder, seqs, blobs=blobs)
        if not openings and not names:
            return None
        whole = Redaction(report.origin, report.size, report.root, timestamp(now), reason, openings, names)
        for at in range(0, max(len(openings), len(names)), _NAMES):
            part = replace(whole, openings=openings[at : at + _NAMES], blobs=names[at : at + _NAMES])
            redact(folder, key, read_redactions(folder, [key.verifier]), part)
        return whole


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Nobody else writes meanwhile: a redaction is about the state in which the run stays."""
    try:
        fd = open_own(folder / LEDGER, os.O_RDONLY)
    except OSError as error:
        raise LedgerFormatError(f"{folder} is no run folder: {LEDGER} cannot be read ({error.strerror})") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise LedgerUnavailable(
            f"The ledger in {folder} is being written. End the run first, or name its sequencer's socket: --socket."
        ) from error
    finally:
        os.close(fd)


def _last_state(folder: Path, key: ProjectKey) -> RunReport:
    """The report of a run to which nothing comes any more, a recovery neither. Raises `LedgerTampered`."""
    from deskcert_ledger.verify import verify_run

    report = verify_run(folder, pins=[key.verifier])
    if report.headline == "tampered":
        raise LedgerTampered("only a sealed run that verifies is redacted; this one is tampered")
    ended = "unfinished" not in report.words or len(report.epochs) > 1  # a recovered run stays as recovery left it
    if not report.checkpoint or report.signed_size != report.size or report.open_intents or not ended:
        raise LedgerTampered(
            f"only a sealed run that verifies is redacted; this one is {report.headline}. "
            "End it first, or if its process died: deskcert ledger recover RUN"
        )
    return report
