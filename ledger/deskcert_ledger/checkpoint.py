"""Checkpoints: signed tree heads (C2SP tlog-checkpoint.md), one after another in a file.

The text is `<origin>\n<size>\n<base64 root>\n`, the signing key's name is the origin. Extension lines are refused: we
never write them, and what a verifier does not understand must not be signed along.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from deskcert_ledger.b64 import b64decode, b64encode
from deskcert_ledger.merkle import HASH_BYTES
from deskcert_ledger.note import MAX_SIGNATURES, Note, check_key_name, parse_note
from deskcert_schema.errors import LedgerFormatError

__all__ = ["Checkpoint", "Damage", "checkpoint_text", "parse_checkpoint", "read_checkpoints"]

_MAX_LINE = 4096
_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,15})", re.ASCII)


def checkpoint_text(origin: str, size: int, root: bytes) -> str:
    return f"{origin}\n{size}\n{b64encode(root)}\n"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    origin: str
    size: int
    root: bytes
    note: Note
    raw: bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes among the checkpoints that are no note."""

    offset: int
    length: int


def parse_checkpoint(raw: bytes) -> Checkpoint:
    """Parse one note as a checkpoint, signatures unchecked. Raises `LedgerFormatError`."""
    note = parse_note(raw)
    lines = note.text.split("\n")
    if len(lines) != 4:
        raise LedgerFormatError("a checkpoint has three lines: origin, size, root")
    origin, size, root, _ = lines
    check_key_name(origin)
    if _DECIMAL.fullmatch(size) is None:
        raise LedgerFormatError(f"not a tree size: {size[:30]!a}")
    return Checkpoint(origin, int(size), b64decode(root, length=HASH_BYTES), note, raw)


def read_checkpoints(file: BinaryIO) -> Iterator[Checkpoint | Damage]:
    """Every note of a `checkpoints` file in order, in constant memory; `Damage` for each run of bytes that is none."""
    offset = damage_from = 0
    pending: list[bytes] = []
    while True:
        if not pending:
            pending = [line for line in [file.readline(_MAX_LINE)] if line]
            if not pending:
                break
        raw = _take_note(pending, file)
        try:
            found = parse_checkpoint(raw) if raw else None
        except LedgerFormatError:
            found = None
        if found is None:  # this line begins no note: step over it and try at the next
            offset += len(pending.pop(0))
            continue
        if damage_from < offset:
            yield Damage(damage_from, offset - damage_from)
        offset += len(raw)
        damage_from = offset
        _drop(pending, len(raw))
        yield found
    if damage_from < offset:
        yield Damage(damage_from, offset - damage_from)


def _take_note(pending: list[bytes], file: BinaryIO) -> bytes:
    """The bytes of a note that begins at pending[0], or b""; `pending` is filled as far as needed."""

    def at(index: int) -> bytes:
        while len(pending) <= index:
            line = file.readline(_MAX_LINE)
            if not line:
                return b""
            pending.append(line)
        return pending[index]

    if at(3) != b"\n":
        return b""
    end = 4
    while end < 4 + MAX_SIGNATURES and at(end).startswith("— ".encode()) and at(end).endswith(b"\n"):
        end += 1
    return b"".join(pending[:end]) if end > 4 else b""


def _drop(pending: list[bytes], length: int) -> None:
    while length > 0:
        length -= len(pending.pop(0))
