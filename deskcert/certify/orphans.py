"""Adopts what an agent leaves behind: a process that cleared its environment, took a session of its own and lost its
parent bears no mark of the run any more, and would outlive it.

While an agent lives, deskcert is the reaper of its orphans (Linux, `PR_SET_CHILD_SUBREAPER`): they become our children
instead of init's. What we start ourselves shares our session or bears a run's token; an orphan does neither.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

from deskcert.certify.reaper import TOKEN_VARIABLE, running_processes

__all__ = ["Orphans"]

_PR_SET_CHILD_SUBREAPER = 36
_PROC = Path("/proc")
_LONGEST_S = 2.0
_TWICE_S = 0.05


class Orphans:
    """Shared by all runs of this process: with several agents alive, nobody can say whose an orphan is, so the last
    one that ends sweeps."""

    _alive = 0
    _before: frozenset[int] = frozenset()

    @classmethod
    def adopt(cls) -> None:
        """Before an agent is started."""
        if cls._alive == 0:
            cls._before = frozenset(_orphans(frozenset()))
            _subreaper(on=True)
        cls._alive += 1

    @classmethod
    def sweep(cls) -> int:
        """After an agent was ended. Blocks until they are gone; returns how many there were."""
        cls._alive -= 1
        if cls._alive:
            return 0
        ended: set[int] = set()
        deadline = time.monotonic() + _LONGEST_S
        # An orphan's own children become ours only when it has ended.
        while (found := _settled_orphans(cls._before)) and time.monotonic() < deadline:
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            for pid in found:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            ended |= found
        _subreaper(on=False)
        return len(ended)


def _subreaper(*, on: bool) -> None:
    """Where the system has no such thing, orphans go to init as ever."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


def _settled_orphans(but: frozenset[int]) -> set[int]:
    """A process that we are just starting has our environment still, for less than a millisecond: look twice."""
    found = _orphans(but)
    if found:
        time.sleep(_TWICE_S)
        found &= _orphans(but)
    return found


def _orphans(but: frozenset[int]) -> set[int]:
    if not _PROC.joinpath("self/stat").exists():
        return set()
    ours = os.getsid(0)
    children = (p for p in running_processes(_PROC).values() if p.parent == os.getpid() and p.session != ours)
    return {p.pid for p in children if p.pid not in but and not _marked(p.pid)}


def _marked(pid: int) -> bool:
    """What cannot be read is somebody else's, and left alone."""
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return True
    return any(entry.startswith(f"{TOKEN_VARIABLE}=".encode()) for entry in environment.split(b"\0"))
