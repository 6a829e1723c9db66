"""What happens at a pipeline point: the runner's perturbations, and the pause in which a test kills the process.

`DESKCERT_PAUSE_AT=<point>[:n]` with `DESKCERT_PAUSE_FILE=<file>` makes the process write the point's name to the file
and stop itself with SIGSTOP at the n-th time that it comes there (formats.md). Off unless set; `run.start` records it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from deskcert_schema.errors import UsageError
from deskcert_schema.vocabulary import PipelinePoint

__all__ = ["AtPoint", "Pause", "PauseAt", "all_of", "nothing", "pause_from"]

type AtPoint = Callable[[PipelinePoint, int], Awaitable[None]]
"""Called with the point and the number of the acting command (1 is the run's first); the pipeline waits for it."""


async def nothing(_point: PipelinePoint, _action: int) -> None:
    """The hook of a session in which nothing happens at any point."""


def all_of(*hooks: AtPoint) -> AtPoint:
    """One after the other, in this order: a perturbation first, then the pause that looks at its consequence."""

    async def call(point: PipelinePoint, action: int) -> None:
        for hook in hooks:
            await hook(point, action)

    return call


@dataclass(frozen=True, slots=True)
class PauseAt:
    point: PipelinePoint
    n: int
    """Counted over the process, from 1."""
    file: Path

    def __str__(self) -> str:
        return f"{self.point}:{self.n}"


def pause_from(environment: Mapping[str, str]) -> PauseAt | None:
    """Read both variables; None when the first is not set. Raises `UsageError` for anything else than the form."""
    text = environment.get("DESKCERT_PAUSE_AT", "")
    if not text:
        return None
    point, colon, number = text.partition(":")
    file = environment.get("DESKCERT_PAUSE_FILE", "")
    if point not in set(PipelinePoint):
        raise UsageError(f"DESKCERT_PAUSE_AT: {point!r} is no pipeline point; use one of {', '.join(PipelinePoint)}")
    if colon and not (number.isascii() and number.isdecimal() and 1 <= int(number) <= 1_000_000):
        raise UsageError(f"DESKCERT_PAUSE_AT: expected <point>:<n> with n from 1, found {text!r}")
    if not file:
        raise UsageError(
            "DESKCERT_PAUSE_AT is set without DESKCERT_PAUSE_FILE; name the file that the point is written to"
        )
    return PauseAt(PipelinePoint(point), int(number or 1), Path(file))


def _stop_this_process() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


class Pause:
    """The hook itself. One for the whole process: every session counts on it."""

    def __init__(self, at: PauseAt, stop: Callable[[], None] = _stop_this_process) -> None:
        self._at, self._stop, self._seen = at, stop, 0

    async def __call__(self, point: PipelinePoint, _action: int) -> None:
        if point is not self._at.point:
            return
        self._seen += 1
        if self._seen == self._at.n:
            # A new name appears complete or not at all: whoever waits for the file may act as soon as it is there.
            beside = self._at.file.with_name(self._at.file.name + ".part")
            beside.write_text(str(point), "utf-8")
            beside.replace(self._at.file)
            self._stop()
