"""What a person sees while a campaign runs: a live display in a terminal, plain lines in a log. Never evidence.

Goes to standard error; standard output belongs to the summary, or to the verdict with `--json`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from deskcert.report.visible import log_line

if TYPE_CHECKING:
    from rich.progress import TaskID

__all__ = ["LivePlan", "LiveRun", "PlainProgress", "Progress", "make_progress"]


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run as the display names it."""

    run: str
    scenario: str
    title: str
    trial: int
    number: int
    """1 is the first of the campaign."""


@dataclass(frozen=True, slots=True)
class LivePlan:
    runs: int
    trials: int


class Progress(Protocol):
    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def note(self, sentence: str) -> None:
        """Something the user should see and keep."""
        ...

    def started(self, run: LiveRun) -> None: ...

    def acted(self, run: LiveRun, command: str, ok: bool) -> None: ...

    def ended(self, run: LiveRun, sentence: str, *, good: bool, seconds: float) -> None: ...


def make_progress(plan: LivePlan, *, stream: TextIO | None = None) -> Progress:
    stream = stream or sys.stderr
    return _Rich(plan, stream) if stream.isatty() else PlainProgress(plan, stream)


class PlainProgress:
    def __init__(self, plan: LivePlan, stream: TextIO) -> None:
        self._plan, self._stream = plan, stream

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def note(self, sentence: str) -> None:
        print(log_line(sentence), file=self._stream, flush=True)

    def started(self, run: LiveRun) -> None:
        """One line a run is enough in a log, at its end."""

    def acted(self, run: LiveRun, command: str, ok: bool) -> None:
        pass

    def ended(self, run: LiveRun, sentence: str, *, good: bool, seconds: float) -> None:
        self.note(_line(self._plan, run, sentence, good, seconds))


class _Rich:
    def __init__(self, plan: LivePlan, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        self._plan = plan
        self._console = Console(file=stream, highlight=False)
        self._bars = Bars(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            transient=True,
        )
        self._all: TaskID | None = None
        self._actions: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        self._all = self._bars.add_task("starting the browser", total=self._plan.runs)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def note(self, sentence: str) -> None:
        self._console.print(sentence, markup=False)

    def started(self, run: LiveRun) -> None:
        self._describe(f"{run.scenario}: {run.title}")

    def acted(self, run: LiveRun, command: str, ok: bool) -> None:
        count = self._actions[run.run] = self._actions.get(run.run, 0) + 1
        self._describe(f"{run.scenario}: {command} ({count}){'' if ok else ' refused'}")

    def ended(self, run: LiveRun, sentence: str, *, good: bool, seconds: float) -> None:
        from rich.text import Text

        line = Text(_line(self._plan, run, sentence, good, seconds))
        line.stylize("green" if good else "yellow", 0, 4)
        self._console.print(line)
        if self._all is not None:
            self._bars.advance(self._all)

    def _describe(self, text: str) -> None:
        if self._all is not None:
            self._bars.update(self._all, description=text[:100])


def _line(plan: LivePlan, run: LiveRun, sentence: str, good: bool, seconds: float) -> str:
    trial = f" trial {run.trial}/{plan.trials}" if plan.trials > 1 else ""
    count = f"[{run.number}/{plan.runs}]"
    return f"{'ok  ' if good else '!   '}{count:>8} {run.scenario}{trial}: {sentence} ({seconds:.1f} s)"
