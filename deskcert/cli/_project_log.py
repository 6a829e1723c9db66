"""The project's log beside an output folder's runs, for `deskcert ledger verify`: is every run there that was begun?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskcert_schema.errors import LedgerFormatError

if TYPE_CHECKING:
    from deskcert_ledger import RunReport
    from deskcert_ledger.note import Verifier
    from deskcert_ledger.project_log import LogReport

__all__ = ["LEFT_OUT", "Logs", "read_logs"]

LEFT_OUT = "whether a whole run was left out"
"""How the sentence begins that a single run's report has about it."""


class Logs(dict[Path, "LogReport"]):
    """By output folder."""

    def of(self, run: Path, report: RunReport) -> RunReport:
        """The report of a run, without what it says was not checked if the log was."""
        log = self.get(run.parent.parent)
        if log is None or not log.good:
            return report
        left = tuple(item for item in report.not_checked if not item.startswith(LEFT_OUT))
        said = f"the project log: all {log.expected} runs that were begun together are here"
        return dataclasses.replace(report, not_checked=left, checked=(*report.checked, said))

    def shown(self) -> Iterator[str]:
        for folder, log in self.items():
            if log.good:
                yield f"{folder}: project log: all {log.expected} runs that were begun together are here"
            for run in log.missing:
                yield f"{folder}: project log: run {run} was begun, and its folder is not here"
            for problem in log.problems:
                yield f"{folder}: project log: {problem}"

    def as_json(self, run: Path) -> dict[str, Any]:
        log = self.get(run.parent.parent)
        return {} if log is None else {"project_log": log.as_json()}


def read_logs(paths: Sequence[Path], pins: Sequence[Verifier]) -> Logs:
    """Of those of `paths` that are output folders with a copy of the log."""
    from deskcert_ledger.project_log import COPY, check_log

    logs = Logs()
    for path in paths:
        if not (path / COPY).is_dir() or not (path / "runs").is_dir():
            continue
        # What a resumed campaign set aside is no part of its verdict, and still there.
        runs = [run for name in ("runs", "set_aside") for run in sorted((path / name).glob("*"))]
        starts = [start for run in runs if (start := _start(run)) is not None]
        try:
            logs[path] = check_log(path / COPY, pins, starts)
        except LedgerFormatError:
            continue
    return logs


def _start(run: Path) -> dict[str, Any] | None:
    """A run's first record; None where there is none, which the run's own verification speaks of."""
    from deskcert_ledger.line import MAX_LINE_BYTES, decode

    try:
        with (run / "ledger.jsonl").open("rb") as file:
            start = decode(file.readline(MAX_LINE_BYTES + 2).removesuffix(b"\n"))
    except (OSError, LedgerFormatError):
        return None
    return start if isinstance(start, dict) else None
