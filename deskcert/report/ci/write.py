"""Writing the reports of a verdict, as `reports:` in deskcert.yaml or the command line names them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from deskcert.report.ci.cases import Report, make_report, spans_of
from deskcert.report.ci.ctrf import ctrf
from deskcert.report.ci.github import annotation_lines, step_summary
from deskcert.report.ci.junit import junit
from deskcert.report.ci.sarif import sarif
from deskcert.scoring import Verdict
from deskcert_schema.errors import UsageError

__all__ = ["Reports", "on_github", "write_reports", "write_whole"]

_FORMATS: Final[Mapping[str, Callable[[Report], bytes]]] = {"junit": junit, "sarif": sarif, "ctrf": ctrf}
_MOST_SUMMARY: Final = 1 << 20
"""Bytes that GitHub takes of one step's summary."""


@dataclass(frozen=True, slots=True)
class Reports:
    """Where each report goes; None: nowhere."""

    junit: Path | None = None
    sarif: Path | None = None
    ctrf: Path | None = None
    html: Path | None = None
    summary: Path | None = None

    def over(self, other: Reports) -> Reports:
        """This, and `other` where this says nothing."""
        return Reports(*(getattr(self, f.name) or getattr(other, f.name) for f in fields(self)))


def write_reports(verdict: Verdict, places: Sequence[Path], reports: Reports, pins: Sequence[Any]) -> Report:
    """Write those that are wanted; not the summary. Raises `UsageError` for a file that cannot be written."""
    report = make_report(verdict, spans_of(places), version=version("deskcert"))
    for name, made in _FORMATS.items():
        path = getattr(reports, name)
        if path is not None:
            write_whole(path, made(report), f"the {name} report")
    if reports.html is not None:
        from deskcert.report.html.collect import Trees, collect
        from deskcert.report.html.page import page

        text = "".join(page(collect(places, pins, Trees.SOME)))
        write_whole(reports.html, text.encode("utf-8", "backslashreplace"), "the html report")
    return report


def on_github(report: Report, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Annotations and the step's summary; nothing where this is no GitHub Actions."""
    if environment.get("GITHUB_ACTIONS") != "true":
        return
    for line in annotation_lines(report):
        say(line)
    where = environment.get("GITHUB_STEP_SUMMARY")
    if where:
        text = step_summary(report).encode("utf-8", "backslashreplace")
        try:
            with Path(where).open("ab") as file:
                file.write(text if len(text) < _MOST_SUMMARY else b"The summary is too long for this place.\n")
        except OSError as exc:
            say(f"the step's summary could not be written: {exc.strerror}")


def write_whole(path: Path, content: bytes, what: str) -> None:
    """Whole or not at all; folders on the way are made. Raises `UsageError`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as exc:
        with contextlib.suppress(OSError):  # where a folder on the way is a file, there is nothing to remove either
            temporary.unlink()
        raise UsageError(f"{path}: {what} cannot be written ({exc.strerror}).") from exc
