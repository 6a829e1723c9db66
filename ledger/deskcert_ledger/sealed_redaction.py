"""Redacting a sealed run: written down in `redactions.jsonl`, durably, then carried out. See `redaction`."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from deskcert_ledger.blob import blob_path
from deskcert_ledger.clock import timestamp
from deskcert_ledger.files import open_own, read_bounded
from deskcert_ledger.keys import ProjectKey
from deskcert_ledger.line import encode
from deskcert_ledger.note import parse_note
from deskcert_ledger.redaction import (
    FIRST,
    LIMIT,
    REDACTIONS,
    Redaction,
    Redactions,
    kept_openings,
    read_redactions,
    select,
)
from deskcert_ledger.report import RunReport
from deskcert_ledger.store import DISCLOSURES, LEDGER
from deskcert_schema.errors import LedgerFormatError, LedgerTampered, LedgerUnavailable

__all__ = ["redact_sealed"]

_NAMES: Final = 10_000
"""In one line: a note has at most a million bytes."""


def redact(folder: Path, key: ProjectKey, done: Redactions, entry: Redaction) -> None:
    """Write `entry` down durably, then delete. `done` is what `read_redactions` gave. Raises `OSError`."""
    lines = read_bounded(folder / REDACTIONS, LIMIT) if done.entries else b""
    before = sha256(lines.split(b"\n")[-2]).hexdigest() if lines else FIRST
    note = key.sign_note(entry.note_text(len(done.entries), before))
    parse_note(note)  # what is written down must be read again, before anything is deleted
    lines += encode({"note": note}, limit=LIMIT) + b"\n"
    if len(lines) > LIMIT:
        raise LedgerFormatError(f"{REDACTIONS} would be longer than {LIMIT} bytes: nothing more can be redacted here")
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
