"""What vouches for a campaign's runs from outside their ledgers: the project's log, and a witness in another process.

Neither is needed for a run; where one cannot be had it is said, and `deskcert ledger verify` says so again.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from deskcert.certify.progress import Progress
from deskcert_schema.errors import LedgerUnavailable

if TYPE_CHECKING:
    from deskcert_ledger import ProjectKey
    from deskcert_ledger.project_log import ProjectLog
    from deskcert_ledger.witness import WitnessProcess

__all__ = ["log_of", "witness_of"]


def witness_of(*, progress: Progress) -> WitnessProcess | None:
    from deskcert_ledger.witness import WitnessProcess

    try:
        return WitnessProcess()
    except LedgerUnavailable as exc:
        progress.note(str(exc))
        return None


def log_of(base: Path, key: ProjectKey, progress: Progress) -> ProjectLog | None:
    """The log in `.deskcert/log`; none where that cannot be written, as in a checkout that is read-only."""
    from deskcert_ledger import SystemClock
    from deskcert_ledger.project_log import ProjectLog

    folder = base / ".deskcert" / "log"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        progress.note(f"no project log, so that a run left out would not show: {folder}: {exc.strerror}")
        return None
    return ProjectLog(folder, key, SystemClock(), campaign=secrets.token_hex(8))
