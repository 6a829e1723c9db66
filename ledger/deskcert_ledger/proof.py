"""One record with its proof, in one file that stands alone (C2SP tlog-proof.md, `.tlog-proof`).

    c2sp.org/tlog-proof@v1
    extra <base64>
    index <number>
    <one base64 hash a line, the leaf's sibling first>
    <empty line>
    <the signed checkpoint>

`extra` holds, as JSON, the record's `line` and `key_intro`, the note by which the project key introduces the run key.
Neither is trusted for standing there: the line's hash has to lead to the checkpoint's root, the checkpoint has to be
signed by the run key, and the introduction by a pinned key. The plain form has no `extra`; whoever checks it has the
line, and pins the run key itself.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from deskcert_ledger.b64 import b64decode, b64encode
from deskcert_ledger.checkpoint import Checkpoint, parse_checkpoint
from deskcert_ledger.files import open_regular, read_bounded
from deskcert_ledger.hashes import stored_hashes
from deskcert_ledger.keys import introduced_by
from deskcert_ledger.line import MAX_LINE_BYTES, decode, encode
from deskcert_ledger.merkle import HASH_BYTES, check_inclusion, inclusion_proof, leaf_hash, stored_hash_index
from deskcert_ledger.note import MAX_NOTE_BYTES, Verifier, parse_note, parse_vkey
from deskcert_ledger.reader import Record, open_ledger, parse_record
from deskcert_ledger.store import CHECKPOINT, HASHES
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = ["MAX_PROOF_BYTES", "Proven", "Prover", "check_proof", "run_key_of"]

_HEADER = "c2sp.org/tlog-proof@v1"
_INDEX = re.compile(r"index (0|[1-9][0-9]{0,15})", re.ASCII)
_MAX_HASHES = 63
_EXTRA_LIMIT = 4 * MAX_LINE_BYTES
MAX_PROOF_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Proven:
    """What a proof shows: this record stands in that log."""

    record: Record
    origin: str
    size: int
    """Of the checkpoint."""
    pin: Verifier
    """The pinned key that introduced the run key, or is the run key."""
    not_checked: tuple[str, ...] = ()
    """Names of keys whose signatures on the checkpoint are not known here: cosignatures that are worth nothing."""


class Prover:
    """Makes proofs for the records of one run under its final checkpoint. A context manager."""

    def __init__(self, folder: Path) -> None:
        """Raises `LedgerFormatError` when there is no ledger or no checkpoint to prove against."""
        try:
            self.checkpoint: Checkpoint = parse_checkpoint(read_bounded(folder / CHECKPOINT, MAX_NOTE_BYTES))
        except OSError as error:
            raise LedgerFormatError(f"{folder} has no `{CHECKPOINT}` to prove a record against") from error
        self._folder = folder
        self._intro = ""
        self._ledger = open_ledger(folder)
        self._hashes: BinaryIO = self._open_hashes()
        self._find_introduction()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ledger.close()
        self._hashes.close()

    def line(self, seq: int) -> bytes:
        """The bytes of a record, found by counting lines."""
        self._ledger.seek(0)
        for _ in range(seq):
            self._ledger.readline(MAX_LINE_BYTES + 2)
        return self._ledger.readline(MAX_LINE_BYTES + 2).removesuffix(b"\n")

    @property
    def key_intro(self) -> str:
        return self._intro

    def prove(self, seq: int, line: bytes | None = None, *, plain: bool = False) -> str:
        """The proof file's text for record `seq`. Raises `LedgerTampered` when the ledger does not hold it."""
        size = self.checkpoint.size
        if not 0 <= seq < size:
            raise LedgerFormatError(f"there is no record {seq} under the checkpoint of size {size}")
        line = self.line(seq) if line is None else line
        path = self.path(seq, line)
        told = encode({"line": line.decode(), "key_intro": self._intro}, limit=_EXTRA_LIMIT)
        extra = "" if plain else f"extra {b64encode(told)}\n"
        hashes = "".join(f"{b64encode(item)}\n" for item in path)
        return f"{_HEADER}\n{extra}index {seq}\n{hashes}\n{self.checkpoint.raw.decode()}"

    def path(self, seq: int, line: bytes) -> list[bytes]:
        """Hashes from the record to the signed root. Raises `LedgerTampered` when they do not lead there."""
        for again in (False, True):
            try:
                path = inclusion_proof(seq, self.checkpoint.size, self._read)
                check_inclusion(seq, self.checkpoint.size, leaf_hash(line), path, self.checkpoint.root)
            except LedgerFormatError as error:
                if again:
                    raise LedgerTampered(f"record {seq} does not lead to the signed root: {error}") from error
                self._compute_hashes()
            else:
                return path
        raise AssertionError("unreachable")

    def _read(self, level: int, n: int) -> bytes:
        cell = os.pread(self._hashes.fileno(), HASH_BYTES, stored_hash_index(level, n) * HASH_BYTES)
        if len(cell) != HASH_BYTES:
            raise LedgerFormatError(f"{HASHES} is too short")
        return cell

    def _open_hashes(self) -> BinaryIO:
        try:
            return open_regular(self._folder / HASHES)
        except OSError:
            return tempfile.TemporaryFile()

    def _compute_hashes(self) -> None:
        """The derived file is missing, short or wrong: compute it again, beside the evidence and not in it."""
        end = os.fstat(self._ledger.fileno()).st_size
        fresh = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the prover
        fresh.writelines(stored_hashes(self._folder, end))
        fresh.flush()
        self._hashes.close()
        self._hashes = fresh

    def _find_introduction(self) -> None:
        """The introduction of the key that signed the checkpoint: in `run.start`, or in a `recovery`."""
        for seq, line in enumerate(iter(lambda: self._ledger.readline(MAX_LINE_BYTES + 2), b"")):
            if seq == 0 or b'"kind":"recovery"' in line:
                try:
                    data = parse_record(line.removesuffix(b"\n"), seq).data
                    key = parse_vkey(str(data.get("vkey")))
                except LedgerFormatError:
                    continue
                if self.checkpoint.note.by(key) is not None:
                    self._intro = str(data.get("key_intro"))
                    return
        raise LedgerFormatError("no record introduces the key that signed the checkpoint")


def check_proof(text: str | bytes, pins: Sequence[Verifier], *, record: bytes | None = None) -> Proven:
    """Check a proof file against pinned project keys, with nothing else at hand.

    A plain proof needs the record's line, and a pin that is the run key itself; `record` given beside a proof that
    carries its line has to be the same. Raises `LedgerFormatError` when it is no proof, `LedgerTampered` when it proves
    nothing.
    """
    parsed = _parse(text)
    checkpoint = parsed.checkpoint
    line = parsed.line if record is None else record
    if line is None:
        raise LedgerFormatError("a plain proof does not carry its record: give the line with --record")
    if parsed.line is not None and parsed.line != line:
        raise LedgerTampered("the proof is about another line than the one that was given")
    if parsed.intro is None:
        key = pin = next((pin for pin in pins if checkpoint.note.by(pin) is not None), None)
    else:
        key = run_key_of(parsed.intro, checkpoint.origin)
        pin = next((pin for pin in pins if introduced_by(parsed.intro, checkpoint.origin, str(key), pin)), None)
    if pin is None or key is None or key.name != checkpoint.origin:
        raise LedgerTampered("no pinned key introduced the run key of this proof, or is it")
    if not checkpoint.note.holds(key):
        raise LedgerTampered("the checkpoint is not signed by the run key")
    try:
        check_inclusion(parsed.index, checkpoint.size, leaf_hash(line), parsed.path, checkpoint.root)
    except LedgerFormatError as error:
        raise LedgerTampered(str(error)) from error
    others = tuple(item.name for item in checkpoint.note.signatures if item != checkpoint.note.by(key))
    return Proven(parse_record(line, parsed.index), checkpoint.origin, checkpoint.size, pin, others)


@dataclass(frozen=True, slots=True)
class _Parsed:
    index: int
    path: list[bytes]
    checkpoint: Checkpoint
    line: bytes | None
    intro: str | None


def _parse(text: str | bytes) -> _Parsed:
    if len(text) > MAX_PROOF_BYTES:
        raise LedgerFormatError("a proof of more than a megabyte")
    try:
        whole = text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError as error:
        raise LedgerFormatError("a proof that is not UTF-8") from error
    head, _, note = whole.partition("\n\n")
    lines = head.split("\n")
    if lines.pop(0) != _HEADER or not lines:
        raise LedgerFormatError(f"not a proof: {_HEADER!r} is expected in its first line")
    line = intro = None
    if lines[0].startswith("extra "):
        line, intro = _extra(lines.pop(0).removeprefix("extra "))
    index = _INDEX.fullmatch(lines.pop(0)) if lines else None
    if index is None or len(lines) > _MAX_HASHES:
        raise LedgerFormatError("a proof has an index and at most 63 hashes")
    path = [b64decode(item, length=HASH_BYTES) for item in lines]
    return _Parsed(int(index[1]), path, parse_checkpoint(note.encode()), line, intro)


def _extra(text: str) -> tuple[bytes, str]:
    match decode(b64decode(text), limit=_EXTRA_LIMIT):
        case {"line": str(line), "key_intro": str(intro), **rest} if not rest:
            return line.encode(errors="replace"), intro
    raise LedgerFormatError("the `extra` of a proof holds the record's line and the run key's introduction")


def run_key_of(intro: str, origin: str) -> Verifier:
    """The key that a note introduces; the note's own signature is the caller's business."""
    lines = parse_note(intro).text.split("\n")
    if len(lines) != 4 or lines[:2] != ["deskcert run key", origin]:
        raise LedgerFormatError("not the introduction of this run's key")
    key = parse_vkey(lines[2])
    if key.name != origin:
        raise LedgerTampered("the run key has another name than the origin")
    return key
