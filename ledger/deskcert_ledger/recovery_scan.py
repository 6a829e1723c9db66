"""What a recovery finds: notes, and the lines up to the first bad byte. Nothing is written here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deskcert_ledger.blob import check_blob, references
from deskcert_ledger.checkpoint import Checkpoint, Damage, file_size, parse_checkpoint, read_checkpoints
from deskcert_ledger.epochs import Epochs
from deskcert_ledger.files import open_regular, read_bounded
from deskcert_ledger.keys import ProjectKey
from deskcert_ledger.line import MAX_LINE_BYTES
from deskcert_ledger.merkle import EMPTY_ROOT, Tree, leaf_hash
from deskcert_ledger.note import MAX_NOTE_BYTES
from deskcert_ledger.reader import check_record
from deskcert_ledger.store import CHECKPOINT, CHECKPOINTS, LEDGER
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = ["Notes", "Scanned", "read_notes", "scan_whole"]

_UNTOUCHED = "Nothing was changed."
_MAX_MISSING = 10_000
"""Blobs that are named as missing, each in a record of its own."""


@dataclass(slots=True)
class Scanned:
    """What stands in the ledger up to its first bad byte."""

    tree: Tree = field(default_factory=Tree)
    end: int = 0
    size_in_file: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    """Blob -> the first record that names it."""
    gone: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    """Openings and blobs that were redacted while the run was open."""
    open_intents: dict[int, None] = field(default_factory=dict)
    origin: str = ""
    last_kind: str = ""
    signed_size: int = 0
    signed_root: bytes = EMPTY_ROOT
    checkpoint: Checkpoint | None = None
    recovered: bool = False


@dataclass(frozen=True, slots=True)
class Notes:
    """What stands in `checkpoints` and `checkpoint`. There may be millions: they are read anew each time."""

    folder: Path
    damaged: bool
    """`checkpoints` holds bytes that are no note, or lacks the note of `checkpoint`."""
    final: Checkpoint | None
    lacking: Checkpoint | None
    """The note of `checkpoint`, where `checkpoints` has it not."""

    def each(self) -> Iterator[Checkpoint]:
        """By size, the note of `checkpoint` among them."""
        lacking = self.lacking
        for note in _notes_in(self.folder):
            if isinstance(note, Damage):
                continue
            if lacking is not None and lacking.size < note.size:
                yield lacking
                lacking = None
            yield note
        if lacking is not None:
            yield lacking


def _notes_in(folder: Path) -> Iterator[Checkpoint | Damage]:
    with open_regular(folder / CHECKPOINTS) as file:
        yield from read_checkpoints(file, limit=file_size(file))


def read_notes(folder: Path) -> Notes:
    final = _final(folder)
    damaged = False
    lacking = final
    for item in _notes_in(folder):
        if isinstance(item, Damage):
            damaged = True
        elif lacking is not None and item.note.text == lacking.note.text:  # a witness's line may be on one of them
            lacking = None
    return Notes(folder, damaged or lacking is not None, final, lacking)


def _final(folder: Path) -> Checkpoint | None:
    try:
        return parse_checkpoint(read_bounded(folder / CHECKPOINT, MAX_NOTE_BYTES))
    except FileNotFoundError:
        return None
    except LedgerFormatError as error:
        raise LedgerTampered(f"`{CHECKPOINT}` is no signed checkpoint: {error}. {_UNTOUCHED}") from error


def scan_whole(folder: Path, notes: Notes, project_key: ProjectKey) -> Scanned:
    """Read up to the first bad byte. Raises `LedgerTampered` when a note does not match, or vouches for more."""
    scan = Scanned()
    epochs = Epochs((project_key.verifier,), every_signature=False, notes_there=not notes.damaged)
    left = notes.each()
    note = next(left, None)
    with open_regular(folder / LEDGER) as file:
        scan.size_in_file = file_size(file)
        while (line := file.readline(MAX_LINE_BYTES + 2)).endswith(b"\n"):
            seq = scan.tree.size
            try:
                data = check_record(line[:-1], seq)
            except LedgerFormatError:
                break
            if seq == 0:
                if data["kind"] != "run.start":
                    break
                epochs.start(data)
                scan.origin = epochs.origin
            _follow(scan, seq, data)
            if b'"blob' in line:
                _follow_blobs(scan, folder, seq, data)
            if data["kind"] == "recovery":
                epochs.recover(seq, scan.end, data)
                scan.recovered = True
            scan.tree.append(leaf_hash(line[:-1]))
            scan.end += len(line)
            while note is not None and note.size == scan.tree.size:
                if note.root != scan.tree.root():
                    raise LedgerTampered(f"The lines do not match the checkpoint of size {note.size}. {_UNTOUCHED}")
                epochs.note(note)
                scan.signed_size, scan.signed_root, scan.checkpoint = note.size, note.root, note
                note = next(left, None)
    if note is not None:
        raise LedgerTampered(
            f"A checkpoint vouches for {note.size} records and only {scan.tree.size} are there whole. {_UNTOUCHED}"
        )
    epochs.finish()
    return scan


def _follow(scan: Scanned, seq: int, data: dict[str, object]) -> None:
    kind = scan.last_kind = str(data["kind"])
    if kind == "action.intent":
        scan.open_intents[seq] = None
    elif kind == "action.result" and type(of := data.get("of")) is int:
        scan.open_intents.pop(of, None)


def _follow_blobs(scan: Scanned, folder: Path, seq: int, data: dict[str, Any]) -> None:
    """A blob is synced before the record that names it: one that is not there was lost by the disk, or taken away."""
    match data:
        case {"kind": "redaction", **told}:
            for names, name in zip(scan.gone, ("openings", "blobs"), strict=True):
                listed = told.get(name)
                names.update(item for item in listed if isinstance(item, str)) if isinstance(listed, list) else None
            for name in scan.gone[1]:
                scan.missing.pop(name, None)
        case {"kind": "blob.missing", "blob": str(name)}:
            scan.missing.pop(name, None)
        case _:
            for reference in references(data):
                if len(scan.missing) < _MAX_MISSING and check_blob(folder, reference) is not None:
                    scan.missing.setdefault(reference["blob"], seq)
