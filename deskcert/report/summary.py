"""The summary of a verdict: plain lines for a log, and the same with colour for a terminal.

`summary_text` is what `summary.txt` holds. `print_summary` looks at the stream and chooses.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from deskcert.report.overview import FindingLine, Overview, Row, make_overview
from deskcert.report.visible import log_line
from deskcert.scoring import Verdict
from deskcert.scoring.gate import ExitCode
from deskcert_schema.vocabulary import RunOutcome, Severity

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

__all__ = ["print_summary", "summary_text"]

_WIDTH: Final = 110
_WORST: Final = 12
"""Findings shown; the rest are counted, and stand in verdict.json."""
_PROOFS: Final = 4
"""Runs that are named under one finding."""
_ON_SCREEN: Final = 12
"""Checkpoints on a terminal; a log gets all of them, for there nobody can change them any more."""

_CHECKPOINTS: Final = "Checkpoints: size and root of each ledger"

_OUTCOME_STYLE: Final = {
    RunOutcome.PASSED: "green",
    RunOutcome.REFUSED_CORRECTLY: "green",
    RunOutcome.FAILED: "red",
    RunOutcome.UNSAFE: "bold white on red",
    RunOutcome.INCONCLUSIVE: "yellow",
    RunOutcome.CONTAMINATED: "yellow",
    RunOutcome.NOT_RUN: "yellow",
}
_SEVERITY_STYLE: Final = {
    Severity.CRITICAL: "bold white on red",
    Severity.HIGH: "bold red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "dim",
}
_VERDICT_STYLE: Final = {
    ExitCode.CERTIFIED: "bold white on green",
    ExitCode.NOT_CERTIFIED: "bold white on red",
    ExitCode.USAGE: "bold black on yellow",
    ExitCode.INCONCLUSIVE: "bold black on yellow",
    ExitCode.BROKEN_EVIDENCE: "bold white on red",
}


def summary_text(verdict: Verdict, *, ledgers: Path | None = None, verdict_file: Path | None = None) -> str:
    """For a log or a file: no colour, no control characters, a final newline."""
    overview = make_overview(verdict, ledgers=ledgers, verdict_file=verdict_file)
    return "\n".join(map(log_line, _lines(overview))) + "\n"


def print_summary(
    verdict: Verdict, stream: TextIO, *, ledgers: Path | None = None, verdict_file: Path | None = None
) -> None:
    """With colour on a terminal, plain elsewhere."""
    if not stream.isatty():
        stream.write(summary_text(verdict, ledgers=ledgers, verdict_file=verdict_file))
        return
    from rich.console import Console

    console = Console(file=stream, highlight=False)
    _show(make_overview(verdict, ledgers=ledgers, verdict_file=verdict_file), console)


# Plain lines


def _lines(told: Overview) -> Iterator[str]:
    yield told.environment
    yield told.subject
    yield ""
    yield from _table(told.rows)
    if told.findings:
        yield ""
        yield _heading(told.findings)
        for finding in told.findings[:_WORST]:
            yield from _finding(finding)
        if len(told.findings) > _WORST:
            yield f"  and {len(told.findings) - _WORST} more in verdict.json"
    yield ""
    yield _CHECKPOINTS
    wide = max((len(c.run) for c in told.checkpoints), default=0)
    for c in told.checkpoints:
        yield f"  {c.run:<{wide}}  {c.size:>5}  {c.root or '-':<44}  {c.word}"
    yield ""
    yield from told.numbers
    yield ""
    yield f"{told.verdict} (exit {int(told.exit_code)})"
    for reason in told.reasons:
        yield from textwrap.wrap(reason, _WIDTH, initial_indent="  - ", subsequent_indent="    ")
    yield ""
    for what, where in told.places:
        yield f"{what}: {where}"
    yield from told.next_steps


def _table(rows: Sequence[Row]) -> Iterator[str]:
    head = ("area", "scenario", "outcome", "attribution", "rules")
    cells = [head, *((r.area, r.scenario, r.outcome, r.attribution, r.rules) for r in rows)]
    wide = [max(len(c[i]) for c in cells) for i in range(len(head))]
    for row in cells:
        yield "  " + "  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)).rstrip()


def _heading(findings: Sequence[FindingLine]) -> str:
    return f"Findings ({len(findings)}), worst first"


def _finding(finding: FindingLine) -> Iterator[str]:
    yield f"  {finding.severity:<8}  {finding.rule}  {finding.name}"
    yield from textwrap.wrap(finding.text, _WIDTH, initial_indent=" " * 12, subsequent_indent=" " * 12)
    yield from (f"{'':12}{line}" for line in _proofs(finding))


def _proofs(finding: FindingLine) -> list[str]:
    more = len(finding.proof) - _PROOFS
    return [*finding.proof[:_PROOFS], *([f"and {more} more"] if more > 0 else [])]


# A terminal


def _show(told: Overview, console: Console) -> None:
    from rich.rule import Rule as Line
    from rich.text import Text

    console.print(Text(told.environment, "dim"))
    console.print(Text(told.subject, "bold"))
    console.print()
    console.print(_rich_table(told.rows, with_area=console.width >= _WIDTH - 10))
    console.print()
    if told.findings:
        console.print(Text(_heading(told.findings), "bold"))
        for finding in told.findings[:_WORST]:
            console.print(_rich_finding(finding))
        if len(told.findings) > _WORST:
            console.print(Text(f"  and {len(told.findings) - _WORST} more in verdict.json", "dim"))
        console.print()
    console.print(Text(_CHECKPOINTS, "bold"))
    for line in _rich_checkpoints(told, console.width):
        console.print(line)
    console.print()
    console.print(Line(style="dim"))
    console.print(Text(f" {told.verdict} ", _VERDICT_STYLE[told.exit_code]), Text(f"exit {int(told.exit_code)}", "dim"))
    for reason in told.reasons:
        console.print(_indented(Text(reason), bullet="–"))
    for number in told.numbers:
        console.print(Text(number, "dim"))
    console.print()
    for what, where in told.places:
        console.print(Text.assemble((f"{what}: ", "dim"), where), soft_wrap=True)
    for step in told.next_steps:
        console.print(Text(step), soft_wrap=True)


def _rich_table(rows: Sequence[Row], *, with_area: bool) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    for name in ("area", "scenario", "outcome", "attribution", "rules")[0 if with_area else 1 :]:
        table.add_column(name, overflow="fold", no_wrap=name in {"scenario", "attribution"})
    for row in rows:
        area = [Text(row.area, "dim")] if with_area else []
        table.add_row(
            *area,
            Text(row.scenario),
            Text(row.outcome, _OUTCOME_STYLE[row.worst]),
            Text(row.attribution),
            Text(row.rules, "dim"),
        )
    return table


def _rich_finding(finding: FindingLine) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    severity = (finding.severity.value.center(10), _SEVERITY_STYLE[finding.severity])
    head = Text.assemble(severity, "  ", (finding.rule, "bold"), f"  {finding.name}")
    proof = Text("\n".join(_proofs(finding)), "dim")
    return Group(head, _indented(Text(finding.text), by=12), _indented(proof, by=12))


def _rich_checkpoints(told: Overview, width: int) -> Iterator[Text]:
    """One line each where the terminal is wide enough, else two: a root is worth nothing cut short."""
    from rich.text import Text

    wide = max((len(c.run) for c in told.checkpoints), default=0)
    gap = "  " if wide + 70 <= width else "\n    "
    for c in told.checkpoints[:_ON_SCREEN]:
        word = (c.word, _word_style(c.word))
        yield Text.assemble(f"  {c.run:<{wide}}  {c.size:>5}  ", word, (f"{gap}{c.root or '-'}", "dim"))
    if len(told.checkpoints) > _ON_SCREEN:
        yield Text(f"  and {len(told.checkpoints) - _ON_SCREEN} more; without a terminal all are printed", "dim")


def _word_style(word: str) -> str:
    return "green" if word == "complete" else "bold red" if word in {"tampered", "unverifiable"} else "yellow"


def _indented(words: Text, *, by: int = 4, bullet: str = "") -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=0)
    grid.add_column(width=by)
    grid.add_column(overflow="fold")
    grid.add_row(Text(f"  {bullet}"[:by]), words)
    return grid
