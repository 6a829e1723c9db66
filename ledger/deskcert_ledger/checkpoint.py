"""Checkpoints: signed tree heads (C2SP tlog-checkpoint.md), one after another in a file.

The text is `<origin>\n<size>\n<base64 root>\n`, the signing key's name is the origin. Extension lines are refused: we
never write them, and what a verifier does not understand must not be signed along.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from deskcert_ledger.b64 import b64decode, b64encode
from deskcert_ledger.files import open_regular
from deskcert_ledger.merkle import HASH_BYTES
from deskcert_ledger.note import MAX_SIGNATURES, Note, check_key_name, parse_note
from deskcert_schema.errors import LedgerFormatError

__all__ = ["Checkpoint", "Damage", "checkpoint_text", "file_size", "note_sizes", "parse_checkpoint", "read_checkpoints"]

_MAX_LINE = 4096
_DASH = "— ".encode()
_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,15})", re.ASCII)
_SIZE_LINE = re.compile(rb"(0|[1-9][0-9]{0,15})\n")


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


class _Lines:
    """Lines of a file with a look ahead, at most `limit` bytes of it."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._file, self._left = file, limit
        self._ahead: list[bytes] = []

    def at(self, index: int) -> bytes:
        """The line `index` lines ahead, or nothing."""
        while len(self._ahead) <= index:
            line = self._file.readline(min(_MAX_LINE, self._left))
            if not line:
                return b""
            self._left -= len(line)
            self._ahead.append(line)
        return self._ahead[index]

    def take(self, count: int) -> bytes:
        taken, self._ahead = self._ahead[:count], self._ahead[count:]
        return b"".join(taken)

    def note_lines(self) -> int:
        """How many lines the note that begins here has; 0 if none does."""
        if self.at(3) != b"\n":
            return 0
        end = 4
        while end < 4 + MAX_SIGNATURES and self.at(end).startswith(_DASH) and self.at(end).endswith(b"\n"):
            end += 1
        return end if end > 4 else 0


def file_size(file: BinaryIO) -> int:
    """Bytes of an open file; reading goes on where it was."""
    here = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(here)
    return size


def read_checkpoints(file: BinaryIO, *, limit: int) -> Iterator[Checkpoint | Damage]:
    """The notes in the first `limit` bytes of a `checkpoints` file, in order, in constant memory.

    `Damage` stands for each run of bytes that is no note.
    """
    offset = damage_from = 0
    lines = _Lines(file, limit)
    while lines.at(0):
        count = lines.note_lines()
        raw = b"".join(lines.at(index) for index in range(count))
        try:
            found = parse_checkpoint(raw) if raw else None
        except LedgerFormatError:
            found = None
        if found is None:  # this line begins no note: step over it and try at the next
            offset += len(lines.take(1))
            continue
        if damage_from < offset:
            yield Damage(damage_from, offset - damage_from)
        offset += len(raw)
        damage_from = offset
        lines.take(count)
        yield found
    if damage_from < offset:
        yield Damage(damage_from, offset - damage_from)


def note_sizes(path: Path) -> array[int]:
    """Every number that stands alone on a line of a `checkpoints` file: the sizes of all its notes are among them."""
    found = array("Q")
    try:
        with open_regular(path) as file:
            while line := file.readline(_MAX_LINE):
                if line[:1].isdigit() and (number := _SIZE_LINE.fullmatch(line)) is not None:
                    found.append(int(number[1]))
    except OSError:  # whoever reads the notes says so
        pass
    return found
