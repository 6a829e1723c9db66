"""(5) The input lease of a desktop, which several processes may guard programs on: one lock file for each desktop.

The kernel gives the lock back when its holder dies, and no program that a holder starts inherits it (close-on-exec).
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import stat
import time
from pathlib import Path
from typing import Final

from deskcert.session.lease import Lease
from deskcert_schema.errors import HarnessError

__all__ = ["DesktopLease", "lease_path"]

_LOOK_EVERY_S: Final = 0.02


def lease_path(display: str, bus: str, runtime: str | None) -> Path:
    """The lock file of the desktop that this display and session bus are. `runtime`: `$XDG_RUNTIME_DIR`, where set."""
    name = hashlib.sha256(f"{display}\n{bus.partition(',guid=')[0]}".encode()).hexdigest()[:16]
    folder = Path(runtime) if runtime else Path(f"/tmp/deskcert-{os.getuid()}")  # noqa: S108 - ours, and checked
    return folder / f"deskcert-input-{name}.lock"


class DesktopLease(Lease):
    """Within this process as `Lease`; across processes by `flock`."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._held: int | None = None

    async def take(self, budget_ms: int) -> tuple[bool, int]:
        """Whether it is held now, and how many others held it or waited for it before. Raises `HarnessError` for a
        lock file that is not ours."""
        end = time.monotonic() + budget_ms / 1000
        held, before = await super().take(budget_ms)
        if not held:
            return False, before
        try:
            file = _opened(self._path)
        except BaseException:
            super().release()
            raise
        try:
            waited = 0
            while not _locked(file):
                waited = 1
                if time.monotonic() >= end:
                    os.close(file)
                    super().release()
                    return False, before + waited
                await asyncio.sleep(_LOOK_EVERY_S)
        except BaseException:
            os.close(file)
            super().release()
            raise
        self._held = file
        return True, before + waited

    def release(self) -> None:
        file, self._held = self._held, None
        if file is not None:
            os.close(file)
        super().release()


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _opened(path: Path) -> int:
    """A plain file of this user that nobody else may write; no link is followed."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise HarnessError(f"the input lease {path} cannot be opened: {error}") from error
    told = os.fstat(file)
    if not stat.S_ISREG(told.st_mode) or told.st_uid != os.getuid() or told.st_mode & 0o022:
        os.close(file)
        raise HarnessError(f"the input lease {path} is not a plain file that only this user may write; remove it")
    return file
