"""`deskcert compare`: a certification against an earlier one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deskcert.contract.shown import shown_json
from deskcert_schema.errors import UsageError

if TYPE_CHECKING:
    from deskcert.report.compare import Comparison

__all__ = ["compare"]

_LIMIT = 64 << 20
_SHOWN = 20


@click.command(
    epilog="""\b
Examples:
  deskcert compare deskcert-out/<earlier> deskcert-out/<now>
  deskcert compare baseline/verdict.json deskcert-out/<now> --json

\b
Exit codes: 0 nothing got worse, 1 something did, 2 usage,
3 it cannot be told: a scenario is gone, or could be judged before and could not now.
"""
)
@click.argument("before", type=click.Path(path_type=Path), metavar="BASELINE")
@click.argument("after", type=click.Path(path_type=Path), metavar="NOW")
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pinned project key; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def compare(*, before: Path, after: Path, keys: tuple[str, ...], as_json: bool) -> int:
    """Say what changed from BASELINE to NOW: scenarios, findings, the success rate with its interval.

    Each is a folder that `deskcert ci` wrote, or a verdict.json. A folder is scored again from its ledgers; a
    verdict.json is taken at its word, so keep a baseline's where only you can write. Findings are the same when rule,
    scenario, trial and what they are about are.
    """
    from deskcert.cli._shared import pins_for
    from deskcert.report.compare import compare as compared

    pins = pins_for(keys)
    told = compared(_verdict(before, pins), _verdict(after, pins))
    if as_json:
        click.echo(shown_json(told.as_json(), indent=1))
    else:
        from deskcert.report.visible import log_line

        for line in _lines(told):
            click.echo(log_line(line))
    return told.exit_code


def _verdict(path: Path, pins: Sequence[Any]) -> dict[str, Any]:
    """Raises `UsageError`."""
    if path.is_dir():
        from deskcert.scoring import score

        return score([path], pins).as_json()
    from deskcert_schema.validate import check

    try:
        with path.open("rb") as file:
            raw = file.read(_LIMIT + 1)
        found = json.loads(raw) if len(raw) <= _LIMIT else None
    except (OSError, ValueError, RecursionError) as exc:
        raise UsageError(f"{path} cannot be read as a verdict: {exc}") from exc
    problems = check("verdict", found)
    if problems:
        why = problems[0].sentence(str(path))
        raise UsageError(f"{why}. This is no verdict.json; name one, or the folder that `deskcert ci` wrote.")
    assert isinstance(found, dict)
    return found


def _lines(told: Comparison) -> Iterator[str]:
    wide = max((len(t.scenario) for t in told.transitions), default=0)
    changed = [t for t in told.transitions if t.change != "same"]
    for change in ("worse", "gone", "undecided", "better", "new"):
        for t in (t for t in changed if t.change == change):
            yield f"  {change:<9}  {t.scenario:<{wide}}  {t.before or '-'} → {t.after or '-'}"
    yield f"{len(told.transitions) - len(changed)} of {len(told.transitions)} scenarios are as before"
    yield ""
    for what, findings in (("new", told.new), ("fixed", told.fixed)):
        yield from _findings(what, findings)
    yield f"{len(told.unchanged)} findings unchanged"
    yield ""
    yield _success(told)
    words = {0: "Nothing got worse", 1: "Something got worse", 3: "It cannot be told whether anything got worse"}
    yield f"{words[told.exit_code]} (exit {told.exit_code})"


def _findings(what: str, findings: Sequence[Any]) -> Iterator[str]:
    from deskcert.report.visible import visible

    yield f"{len(findings)} findings {what}"
    for finding in findings[:_SHOWN]:
        yield f"  {visible(finding['severity']):<8}  {visible(finding['id'])}  {visible(finding['text'])}"
    if len(findings) > _SHOWN:
        yield f"  and {len(findings) - _SHOWN} more; --json has all"


def _success(told: Comparison) -> str:
    rates = " → ".join(
        f"{r['count']} of {r['of']} (95 % {_percent(r['low'])} to {_percent(r['high'])})"
        for r in (told.before, told.after)
    )
    if told.difference is None:
        return f"success {rates}"
    value, low, high = (_percent(ratio) for ratio in told.difference)
    noise = "; within what chance alone gives" if told.noise else ""
    return f"success {rates}: {value} (95 % interval {low} to {high}){noise}"


def _percent(ratio: str) -> str:
    return f"{(Decimal(ratio) * 100).quantize(Decimal('0.1'))} %"
