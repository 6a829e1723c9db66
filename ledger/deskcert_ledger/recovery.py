"""`recover_run`: open a ledger that was not closed, cut what a crash tore, and say so in the ledger itself.

The rule (reference: 1,498 simulated crash states, none lost an acknowledged record): the last well-formed checkpoint
must match its lines and bear the signature of its range, else this is tampering and nothing is touched. From there on
lines are scanned; the file is cut at the first bad byte and the cut bytes are kept under `torn/`. The run key died with
the process, so a new epoch begins: its first record, `recovery`, carries a new run key introduced by the project key.
Each open intent gets an `action.result` that says `unknown`, `never_automatic`; each blob that is named and is not what
was written a `blob.missing`; what a `redaction` says and a crash left undone is deleted. Then the ledger is sealed.

A recovery that is itself killed at any point leaves a ledger that can be recovered again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from deskcert_ledger.b64 import b64encode
from deskcert_ledger.clock import Clock, SystemClock
from deskcert_ledger.hashes import stored_hashes
from deskcert_ledger.keys import ProjectKey, RunKey
from deskcert_ledger.notary import Following
from deskcert_ledger.recovery_scan import Notes, Scanned, read_notes, scan_whole
from deskcert_ledger.redaction import kept_openings
from deskcert_ledger.run import RunLedger, Sealed
from deskcert_ledger.store import CHECKPOINTS, HASHES, LEDGER, Disk, RunFiles, open_files
from deskcert_schema.disposition import RETRY_OF, Delivery
from deskcert_schema.errors import LedgerFormatError, LedgerUnavailable
from deskcert_schema.vocabulary import VerificationScope

__all__ = ["Outcome", "Recovered", "recover_open", "recover_run"]


class Outcome(StrEnum):
    NOTHING_TO_DO = "nothing_to_do"
    """The ledger is sealed, or was recovered before."""
    SEALED = "sealed"
    """The run had ended and every line was signed; only the seal was missing."""
    RECOVERED = "recovered"
    """A new epoch was begun and sealed."""
    EMPTY = "empty"
    """The process died before the first record was acknowledged: there is nothing to recover."""


@dataclass(frozen=True, slots=True)
class Recovered:
    outcome: Outcome
    size: int
    """Records in the ledger now."""
    signed_size: int = 0
    """Records under the last checkpoint before the recovery."""
    cut: int = 0
    """Bytes cut off the end and kept under `torn/`."""
    open_intents: tuple[int, ...] = ()
    """Intents that were given a result `unknown`."""
    sealed: Sealed | None = None


def recover_run(
    folder: Path,
    project_key: ProjectKey,
    *,
    clock: Clock | None = None,
    rng: Callable[[int], bytes] = secrets.token_bytes,
    disk: Disk | None = None,
) -> Recovered:
    """Recover and seal a run whose process died. Safe to call on any run folder, and again.

    Raises `LedgerTampered` (a signed line is changed or gone: nothing is touched), `LedgerFormatError` (no ledger),
    `LedgerUnavailable` (another process has it open, or the disk fails).
    """
    if not (folder / LEDGER).is_file():
        raise LedgerFormatError(f"{folder} is no run folder: it has no {LEDGER}")
    try:
        files = open_files(folder, disk or Disk())
        try:
            return recover_open(folder, files, project_key, clock or SystemClock(), rng)
        finally:
            files.close()
    except OSError as error:
        raise LedgerUnavailable(f"The ledger in {folder} cannot be recovered: {error.strerror}.") from error


def recover_open(
    folder: Path, files: RunFiles, project_key: ProjectKey, clock: Clock, rng: Callable[[int], bytes]
) -> Recovered:
    """What `recover_run` does, on files that are open and locked. Raises `OSError` as it comes."""
    notes = read_notes(folder)
    scan = scan_whole(folder, notes, project_key)
    size, torn = scan.tree.size, scan.size_in_file - scan.end
    if size == 0:
        return Recovered(Outcome.EMPTY, 0, cut=torn)
    ended = scan.last_kind == "run.end" or scan.recovered
    if torn == 0 and scan.signed_size == size and ended and not scan.open_intents:
        return _finish_seal(files, scan, notes)
    _cut(files, scan, notes)
    key = RunKey(scan.origin, rng)
    ledger = RunLedger(files, scan.tree, key, clock=clock, rng=rng, following=Following.AT_ONCE)
    try:
        _write_epoch(ledger, scan, project_key, key)
        if any(scan.gone):
            files.drop(kept_openings(folder, scan.gone[0]), sorted(scan.gone[1]))
        sealed = ledger.seal()
    except BaseException:
        ledger.abandon()
        raise
    return Recovered(Outcome.RECOVERED, sealed.size, scan.signed_size, torn, tuple(scan.open_intents), sealed)


def _write_epoch(ledger: RunLedger, scan: Scanned, project_key: ProjectKey, key: RunKey) -> None:
    torn = scan.size_in_file - scan.end
    recovery = {
        "vkey": key.vkey,
        "key_intro": project_key.introduce(scan.origin, key.vkey),
        "size": scan.signed_size,
        "root": b64encode(scan.signed_root),
        "cut": scan.end,
        "torn_bytes": torn,
    }
    ledger.append("recovery", recovery, w="recovery")
    for intent in scan.open_intents:
        ledger.append("action.result", _unknown_result(intent), w="recovery")
    for name, seq in scan.missing.items():
        ledger.append("blob.missing", {"blob": name, "of": seq}, w="recovery")


def _unknown_result(intent: int) -> dict[str, object]:
    """Whoever acted died before it could say what happened: not known, and never to be repeated by itself."""
    return {
        "of": intent,
        "ok": False,
        "delivery": Delivery.UNKNOWN.value,
        "retry": RETRY_OF[Delivery.UNKNOWN].value,
        "verification": {"scope": VerificationScope.NONE.value, "satisfied": None},
        "phases_us": {},
        "cause": "crash",
    }


def _cut(files: RunFiles, scan: Scanned, notes: Notes) -> None:
    """Cut the torn end, keep its bytes, and make the files beside the ledger fit again, all of it durably.

    The notes come first: a recovery names the last one, which has to be there when its record is.
    """
    _mend_notes(files, scan, notes)
    if scan.size_in_file > scan.end:
        files.keep_torn(LEDGER, scan.end, str(scan.end))
        files.truncate(LEDGER, scan.end)
    files.replace(HASHES, stored_hashes(files.folder, scan.end))


def _mend_notes(files: RunFiles, scan: Scanned, notes: Notes) -> None:
    if notes.damaged:
        files.keep_torn(CHECKPOINTS, 0, f"{CHECKPOINTS}.{scan.end}")
        files.replace(CHECKPOINTS, (note.raw for note in notes.each()))
    files.sync(CHECKPOINTS)


def _finish_seal(files: RunFiles, scan: Scanned, notes: Notes) -> Recovered:
    """Every line is signed and nothing is open: at most the seal is missing."""
    size, last = scan.tree.size, scan.checkpoint
    assert last is not None
    sealed = Sealed(size, b64encode(last.root), last.raw.decode())
    if notes.final is not None and notes.final.size == size and not notes.damaged:
        return Recovered(Outcome.NOTHING_TO_DO, size, size, sealed=sealed)
    _mend_notes(files, scan, notes)
    files.replace_checkpoint(last.raw)
    return Recovered(Outcome.SEALED, size, size, sealed=sealed)
