"""A word beforehand, to standard error, about runs that are not whole: what is shown of them is what stands there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from deskcert.cli._shared import pins_for, say
from deskcert.report.visible import visible
from deskcert_ledger import RunReport, verify_run
from deskcert_schema.errors import LedgerFormatError

__all__ = ["say_standing"]

_MOST_SAID = 3
"""Problems of one run; `ledger verify` says them all."""


def say_standing(folders: Iterable[Path]) -> None:
    """One sentence for each run whose ledger is not complete under the local project's key; silent about others."""
    pins = pins_for(())
    for folder in folders:
        try:
            report = verify_run(folder, pins=pins)
        except LedgerFormatError:
            continue  # Whoever reads it next says so.
        if report.exit_code:
            say(f"{visible(folder.name)}: {_sentence(report)} See: deskcert ledger verify {visible(str(folder))}")


def _sentence(report: RunReport) -> str:
    word = report.headline
    name = word.partition("(")[0]
    if name == "unverifiable" and not report.problems:
        return "unverifiable: no key is pinned, so nobody vouches for what is shown."
    told = [f"record {p.seq}: {p.text}" if p.seq is not None else p.text for p in report.problems[:_MOST_SAID]]
    more = len(report.problems) - len(told)
    told += [f"and {more} more"] if more > 0 else []
    why = f": {visible('; '.join(told))}" if told else ""
    shown = "what is shown is what stands there, not what was signed" if name == "tampered" else "the run is not whole"
    return f"{word}{why}; {shown}."
