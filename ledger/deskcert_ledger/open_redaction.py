"""Redacting a run that is still being written: the record `redaction` first, durable and in its place; then deletion.

Whoever owns the ledger does it: `RunLedger.redact` in its own process, or a sequencer in another one, asked through its
socket. There it takes the project key, as for a sealed run: the request is a note over

    deskcert redaction request
    <origin>
    <JSON: seqs (null: of all records), blobs, reason>

so that a writer, who may be anybody's process of this user, cannot have evidence deleted with the project's blessing.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import batched
from pathlib import Path
from typing import Any, Final

from deskcert_ledger.keys import ProjectKey
from deskcert_ledger.line import decode, encode
from deskcert_ledger.note import MAX_NOTE_BYTES, Verifier, parse_note
from deskcert_ledger.reader import read_records
from deskcert_ledger.wire import lines_of, message, read_answer
from deskcert_schema.errors import ContractError, LedgerFormatError, LedgerTampered, LedgerUnavailable

__all__ = ["Asked", "Dropped", "ask", "payloads", "read_request"]

_TITLE: Final = "deskcert redaction request"
_OPENINGS, _BLOBS = 80, 55
"""Names in one record: more would not fit its line, and a list that is moved to a blob is not read there."""
_MAX_REASON: Final = 500
_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be redacted."""

    seqs: tuple[int, ...] | None
    """Records; None: all that are there."""
    blobs: bool
    """Their blobs too."""
    reason: str

    def text(self, origin: str) -> str:
        told = {"seqs": None if self.seqs is None else list(self.seqs), "blobs": self.blobs, "reason": self.reason}
        return f"{_TITLE}\n{origin}\n{encode(told, limit=MAX_NOTE_BYTES).decode()}\n"


@dataclass(frozen=True, slots=True)
class Dropped:
    """What was deleted."""

    openings: tuple[str, ...] = ()
    blobs: tuple[str, ...] = ()


def payloads(asked: Asked, dropped: Dropped) -> Iterator[dict[str, Any]]:
    """Of the records `redaction` that say it. Raises `ContractError` for a reason that is too long."""
    if not asked.reason or len(asked.reason) > _MAX_REASON:
        raise ContractError(f"a redaction has a reason, of at most {_MAX_REASON} characters")
    for openings in batched(dropped.openings, _OPENINGS):
        yield {"reason": asked.reason, "openings": list(openings), "blobs": []}
    for blobs in batched(dropped.blobs, _BLOBS):
        yield {"reason": asked.reason, "openings": [], "blobs": list(blobs)}


def read_request(raw: str, key: Verifier, origin: str) -> Asked:
    """Raises `LedgerFormatError` (no request) and `LedgerTampered` (of another run, or not signed by the project)."""
    note = parse_note(raw)
    lines = note.text.split("\n")
    match decode(lines[2].encode(), limit=MAX_NOTE_BYTES) if len(lines) == 4 and lines[0] == _TITLE else None:
        case {"seqs": None | [*_] as seqs, "blobs": bool(blobs), "reason": str(reason)} if _are_numbers(seqs):
            asked = Asked(None if seqs is None else tuple(seqs), blobs, reason)
        case _:
            raise LedgerFormatError("not a request to redact")
    if asked.text(origin) != note.text:
        raise LedgerTampered("a request to redact another run")
    if not note.holds(key):
        raise LedgerTampered("a request to redact that the project key did not sign")
    return asked


def _are_numbers(seqs: Sequence[Any] | None) -> bool:
    return seqs is None or all(type(seq) is int and seq >= 0 for seq in seqs)


def ask(path: Path, folder: Path, key: ProjectKey, asked: Asked) -> Dropped:
    """Have the sequencer at the socket `path` redact its run in `folder`.

    Raises `LedgerUnavailable`, `LedgerFormatError` (no ledger, no such record, no answer of ours).
    """
    origin = next((str(record.data.get("origin")) for record in read_records(folder)), None)
    if origin is None:
        raise LedgerFormatError(f"{folder} holds no record")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_SECONDS)
        try:
            connection.connect(str(path))
            connection.sendall(message({"id": 1, "redact": key.sign_note(asked.text(origin))}))
            line = next(lines_of(connection), None)
        except OSError as error:
            raise LedgerUnavailable(f"the ledger's socket {path} does not answer: {error.strerror or error}") from error
    match None if line is None else read_answer(line):
        case {"error": str(why)}:
            raise LedgerFormatError(why)
        case {"openings": [*openings], "blobs": [*blobs]}:
            return Dropped(tuple(map(str, openings)), tuple(map(str, blobs)))
        case _:
            raise LedgerUnavailable(f"whoever answers at {path} redacts nothing: another run's socket, or its proxy's")
