"""The folder of one certification: one process's at a time, and no ledger in it left open."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from deskcert.certify.progress import Progress
from deskcert_schema.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from deskcert_ledger import ProjectKey

__all__ = ["only_one", "recover"]


@contextmanager
def only_one(out: Path) -> Iterator[None]:
    """Make the folder and lock it: two campaigns in one would recover each other's open ledgers. The lock goes with
    the process. Raises `UsageError`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = os.open(out / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise UsageError(f"the output folder {out} cannot be used: {exc.strerror}; choose another with --out") from exc
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"another deskcert works in {out}; wait for it, or choose another folder with --out") from None
    else:
        yield
    finally:
        os.close(lock)


def recover(runs: Path, key: ProjectKey, progress: Progress) -> tuple[Path, ...]:
    """Close what a killed campaign left open (ledger.md, "Recovery"). One that cannot be recovered is said, not
    hidden, and left as it is."""
    from deskcert_ledger.recovery import Outcome, recover_run

    recovered = []
    for folder in sorted(runs.glob("*/ledger.jsonl")):
        run = folder.parent
        try:
            outcome = recover_run(run, key).outcome
        except LedgerError as exc:
            progress.note(f"{run.name}: an earlier run that cannot be recovered: {exc}")
            continue
        if outcome is not Outcome.NOTHING_TO_DO:
            progress.note(f"{run.name}: an earlier run was interrupted; its ledger is recovered and sealed")
            recovered.append(run)
    return tuple(recovered)
