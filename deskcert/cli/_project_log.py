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

__all__ = ["LEFT_OUT", "Logs", "printable", "read_logs"]

LEFT_OUT = "whether a whole run was left out"
"""How the sentence begins that a single run's report has about it."""


class Logs(dict[Path, "LogReport"]):
    """By output folder."""

    def __init__(self) -> None:
        super().__init__()
        self.live: set[Path] = set()
        """Output folders that were held against the project's own log, not against a copy alone."""

    def of(self, run: Path, report: RunReport) -> RunReport:
        """The report of a run, without what it says was not checked if the log was."""
        log = self.get(run.parent.parent)
        if log is None or not log.good:
            return report
        left = tuple(item for item in report.not_checked if not item.startswith(LEFT_OUT))
        if run.parent.parent not in self.live:
            left = (*left, f"runs begun after this copy of the project log, of {log.size} runs, was made")
        said = f"the project log: all {log.expected} runs that were begun together are here"
        return dataclasses.replace(report, not_checked=left, checked=(*report.checked, said))

    def shown(self) -> Iterator[str]:
        for folder, log in self.items():
            if log.good:
                yield f"{folder}: project log: all {log.expected} runs that were begun together are here"
            for run in log.missing:
                yield f"{folder}: project log: run {printable(run)} was begun, and its folder is not here"
            for problem in log.problems:
                yield f"{folder}: project log: {printable(problem)}"

    def as_json(self, run: Path) -> dict[str, Any]:
        log = self.get(run.parent.parent)
        return {} if log is None else {"project_log": log.as_json()}


def printable(text: str) -> str:
    """What evidence says is nothing for a terminal to obey."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def read_logs(paths: Sequence[Path], pins: Sequence[Verifier], live: Path | None = None) -> Logs:
    """Of those of `paths` that are output folders with a copy of the log.

    `live`: the project's own log, where this is its place. It goes on when the copy was made, so that an older copy,
    put back together with a run that is taken away, does not hide it; and it is there when the copy is not.
    """
    from deskcert_ledger.project_log import COPY

    logs = Logs()
    for path in paths:
        if not (path / "runs").is_dir():
            continue
        # What a resumed campaign set aside is no part of its verdict, and still there.
        runs = [run for name in ("runs", "set_aside") for run in sorted((path / name).glob("*"))]
        starts = [start for run in runs if (start := _start(run)) is not None]
        copy = _held(path / COPY, pins, starts)
        own = None if live is None else _held(live, pins, starts)
        if own is not None and (own.problems or not own.expected):
            own = None  # another project's, or one that knows nothing of these runs
        known = copy or own
        if known is None:
            continue
        fresh = () if own is None else tuple(run for run in own.missing if run not in known.missing)
        logs[path] = dataclasses.replace(known, missing=(*known.missing, *fresh))
        if own is not None:
            logs.live.add(path)
    return logs


def _held(log: Path, pins: Sequence[Verifier], starts: Sequence[dict[str, Any]]) -> LogReport | None:
    from deskcert_ledger.project_log import check_log

    try:
        return check_log(log, pins, starts)
    except LedgerFormatError:
        return None


def _start(run: Path) -> dict[str, Any] | None:
    """A run's first record; None where there is none, which the run's own verification speaks of."""
    from deskcert_ledger.files import open_regular
    from deskcert_ledger.line import MAX_LINE_BYTES, decode

    try:
        with open_regular(run / "ledger.jsonl") as file:
            start = decode(file.readline(MAX_LINE_BYTES + 2).removesuffix(b"\n"))
    except (OSError, LedgerFormatError):
        return None
    return start if isinstance(start, dict) else None
