"""Starts a program on a desktop and ends it again, with the exit observed, never assumed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from deskcert.adapters.linux.processes import Process, process
from deskcert_schema.disposition import Delivery
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import DetailKind

__all__ = ["Ended", "Program", "end", "launch"]

_LOOK_EVERY_S: Final = 0.02
NEEDED: Final[Mapping[str, str]] = {"QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1", "GNOME_ACCESSIBILITY": "1"}
"""Without these Qt and Chromium show no tree. Chromium and Electron also need `--force-renderer-accessibility`."""


class Ended(StrEnum):
    ASKED = "asked"
    """It ended after it was asked to (SIGTERM)."""
    KILLED = "killed"
    """It did not end when it was asked; it was killed (SIGKILL) and is gone."""
    ALREADY = "already"
    STILL_THERE = "still_there"
    """It was told to end, and has not ended in time."""


@dataclass(frozen=True, slots=True)
class Program:
    process: Process
    handle: asyncio.subprocess.Process


async def launch(command: Sequence[str], environment: Mapping[str, str]) -> Program:
    """Started in a session of its own, with nothing of ours open. Raises `AdapterError`."""
    try:
        handle = await asyncio.create_subprocess_exec(
            *command,
            env={**environment, **NEEDED},
            start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise AdapterError(f"{command[0]} cannot be started: {error}", kind=DetailKind.COMPONENT_LOST) from error
    there = process(handle.pid)
    if there is None:
        code = await handle.wait()
        raise AdapterError(
            f"it ended as soon as it was started, with code {code}",
            delivery=Delivery.DELIVERED_UNVERIFIED,  # whatever it does in so short a time, it did
            kind=DetailKind.COMPONENT_LOST,
        )
    return Program(there, handle)


async def end(there: Process, *, budget_ms: int, kill: bool) -> Ended:
    """Asks the process to end, and with `kill` makes it, half-way through the budget. Only ever this very process: a
    number that is used again is another one."""
    if not there.alive:
        return Ended.ALREADY
    _tell(there, signal.SIGTERM)
    if await _gone(there, budget_ms / 2_000 if kill else budget_ms / 1_000):
        return Ended.ASKED
    if not kill:
        return Ended.STILL_THERE
    _tell(there, signal.SIGKILL)
    return Ended.KILLED if await _gone(there, budget_ms / 2_000) else Ended.STILL_THERE


def _tell(there: Process, what: signal.Signals) -> None:
    """Through a descriptor that stays with the process, so that no other one is ever met."""
    with contextlib.suppress(ProcessLookupError):
        file = os.pidfd_open(there.pid)
        try:
            if there.alive:
                signal.pidfd_send_signal(file, what)
        finally:
            os.close(file)


async def _gone(there: Process, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while there.alive:
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(_LOOK_EVERY_S)
    return True
