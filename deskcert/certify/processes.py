"""What every child process of a run has in common: an allow-listed environment with the run's token, and an end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable
from typing import Protocol

from deskcert.certify.reaper import TOKEN_VARIABLE, Family, kill_all

__all__ = ["KEPT_VARIABLES", "child_environment", "end_group", "exit_of", "sweep"]

KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH")
"""Everything else in deskcert's environment (keys, tokens of a CI service) stays out of an agent's."""


class Exiting(Protocol):
    @property
    def returncode(self) -> int | None: ...


def child_environment(token: str, extra: Iterable[str] = ()) -> dict[str, str]:
    """`extra`: names of further variables that the configuration lets through."""
    names = (*KEPT_VARIABLES, *extra)
    return {name: os.environ[name] for name in names if name in os.environ} | {TOKEN_VARIABLE: token}


async def exit_of(process: Exiting) -> int:
    """Its status, as soon as it has exited. `Process.wait` of some 3.12 releases also waits until every pipe is closed,
    which a grandchild can hold open (CPython issue 119710)."""
    while process.returncode is None:  # noqa: ASYNC110 - there is no event to wait for, see above
        await asyncio.sleep(0.02)
    return process.returncode


async def end_group(process: asyncio.subprocess.Process, *, polite_s: float) -> bool:
    """End a process that leads its own group, and the whole group. True if it ended by itself within `polite_s`."""
    by_itself = True
    try:
        await asyncio.wait_for(exit_of(process), polite_s)
    except TimeoutError:
        by_itself = False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await exit_of(process)
    return by_itself


async def sweep(token: str) -> int:
    """Kill what is still there with exactly this run's token: children that left the group. Returns how many."""
    return len(await asyncio.to_thread(kill_all, Family(token)))
