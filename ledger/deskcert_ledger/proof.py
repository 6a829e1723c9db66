"""One record with its proof, in one file that stands alone (C2SP tlog-proof.md, `.tlog-proof`).

    c2sp.org/tlog-proof@v1
    extra <base64>
    index <number>
    <one base64 hash a line, the leaf's sibling first>
    <empty line>
    <the signed checkpoint>

`extra` holds, as JSON, the record's `line` and `key_intro`, the note by which the project key introduces the run key.
Neither is trusted for standing there: the line's hash has to lead to the checkpoint's root, the checkpoint has to be
signed by the run key, and the introduction by a pinned key.
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
from deskcert_ledger.hashes import stored_hashes
from deskcert_ledger.keys import introduced_by
from deskcert_ledger.line import MAX_LINE_BYTES, decode, encode
from deskcert_ledger.merkle import HASH_BYTES, check_inclusion, inclusion_proof, leaf_hash, stored_hash_index
from deskcert_ledger.note import Verifier, parse_note, parse_vkey
from deskcert_ledger.reader import Record, open_ledger, parse_record
from deskcert_ledger.store import CHECKPOINT, HASHES
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = ["MAX_PROOF_BYTES", "Proven", "Prover", "check_proof"]

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
    """The pinned key that introduced the run key."""


class Prover:
    """Makes proofs for the records of one run under its final checkpoint. A context manager."""

    def __init__(self, folder: Path) -> None:
        """Raises `LedgerFormatError` when there is no ledger or no checkpoint to prove against."""
        try:
            self.checkpoint: Checkpoint = parse_checkpoint((folder / CHECKPOINT).read_bytes())
        except FileNotFoundError as error:
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

    def prove(self, seq: int, line: bytes | None = None) -> str:
        """The proof file's text for record `seq`. Raises `LedgerTampered` when the ledger does not hold it."""
        size = self.checkpoint.size
        if not 0 <= seq < size:
            raise LedgerFormatError(f"there is no record {seq} under the checkpoint of size {size}")
        line = self.line(seq) if line is None else line
        path = self._path(seq, line)
        extra = encode({"line": line.decode(), "key_intro": self._intro}, limit=_EXTRA_LIMIT)
        hashes = "".join(f"{b64encode(item)}\n" for item in path)
        return f"{_HEADER}\nextra {b64encode(extra)}\nindex {seq}\n{hashes}\n{self.checkpoint.raw.decode()}"

    def _path(self, seq: int, line: bytes) -> list[bytes]:
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
            return (self._folder / HASHES).open("rb")
        except FileNotFoundError:
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
        for seq, line in enumerate(self._ledger):
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


def check_proof(text: str | bytes, pins: Sequence[Verifier]) -> Proven:
    """Check a proof file against pinned project keys, with nothing else at hand.

    Raises `LedgerFormatError` when it is no proof, `LedgerTampered` when it proves nothing.
    """
    index, path, extra, checkpoint = _parse(text)
    line, intro = extra
    run_key = _run_key(intro, checkpoint.origin)
    pin = next((pin for pin in pins if introduced_by(intro, checkpoint.origin, str(run_key), pin)), None)
    if pin is None:
        raise LedgerTampered("no pinned key introduced the run key of this proof")
    if not checkpoint.note.holds(run_key):
        raise LedgerTampered("the checkpoint is not signed by the run key")
    if len(checkpoint.note.signatures) != 1:
        raise LedgerFormatError("a signature that is not known here")
    try:
        check_inclusion(index, checkpoint.size, leaf_hash(line), path, checkpoint.root)
    except LedgerFormatError as error:
        raise LedgerTampered(str(error)) from error
    return Proven(parse_record(line, index), checkpoint.origin, checkpoint.size, pin)


def _parse(text: str | bytes) -> tuple[int, list[bytes], tuple[bytes, str], Checkpoint]:
    if len(text) > MAX_PROOF_BYTES:
        raise LedgerFormatError("a proof of more than a megabyte")
    try:
        whole = text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError as error:
        raise LedgerFormatError("a proof that is not UTF-8") from error
    head, _, note = whole.partition("\n\n")
    lines = head.split("\n")
    if len(lines) < 3 or lines[0] != _HEADER or not lines[1].startswith("extra "):
        raise LedgerFormatError(f"not a proof: {_HEADER!r} and an `extra` line are expected")
    index = _INDEX.fullmatch(lines[2])
    if index is None or len(lines) > 3 + _MAX_HASHES:
        raise LedgerFormatError("a proof has an index and at most 63 hashes")
    path = [b64decode(item, length=HASH_BYTES) for item in lines[3:]]
    match decode(b64decode(lines[1].removeprefix("extra ")), limit=_EXTRA_LIMIT):
        case {"line": str(line), "key_intro": str(intro), **rest} if not rest:
            return int(index[1]), path, (line.encode(errors="replace"), intro), parse_checkpoint(note.encode())
    raise LedgerFormatError("the `extra` of a proof holds the record's line and the run key's introduction")


def _run_key(intro: str, origin: str) -> Verifier:
    lines = parse_note(intro).text.split("\n")
    if len(lines) != 4 or lines[:2] != ["deskcert run key", origin]:
        raise LedgerFormatError("not the introduction of this run's key")
    key = parse_vkey(lines[2])
    if key.name != origin:
        raise LedgerTampered("the run key has another name than the origin")
    return key
