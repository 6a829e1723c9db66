"""`deskcert score`: the verdict again, from run folders alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from deskcert.cli._reports import report_options
from deskcert.cli._runs import write_whole
from deskcert.cli._shared import say

__all__ = ["score"]


@click.command(epilog="Exit codes: 0 certified, 1 not certified, 2 usage, 3 inconclusive, 4 broken evidence.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="The project's public key (`deskcert key show`), or a file with it. Without it: the local project's key.",
)
@click.option("--json", "as_json", is_flag=True, help="Print verdict.json instead of the summary.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write verdict.json to this file.")
@report_options()
@click.pass_context
def score(
    ctx: click.Context,
    /,
    runs: tuple[Path, ...],
    keys: tuple[str, ...],
    as_json: bool,
    out: Path | None,
    **reports: Path | None,
) -> None:
    """Compute the verdict of RUNS: run folders, or the folder that `deskcert ci` wrote.

    It depends on the folders' content and the key, and on nothing else: the same bytes on every machine, in any order.
    """
    from deskcert.report.ci.write import Reports, on_github, write_reports
    from deskcert.report.summary import print_summary
    from deskcert.scoring import score as judge_runs
    from deskcert_ledger import load_pins, local_pin

    local = None if keys else local_pin(Path.cwd())
    pins = load_pins(keys) if keys else (() if local is None else (local,))
    verdict = judge_runs(runs, pins)
    if out is not None:
        write_whole(out, verdict.as_bytes())
    if as_json:
        sys.stdout.buffer.write(verdict.as_bytes())
        sys.stdout.buffer.flush()
    else:
        print_summary(verdict, sys.stdout, ledgers=_place(runs), verdict_file=out)
        if not pins:
            click.echo("No key was given and there is no local project key: nothing says whose ledgers these are.")
    sys.stdout.flush()
    on_github(write_reports(verdict, runs, Reports(**reports), pins), os.environ, say)
    ctx.exit(int(verdict.exit_code))


def _place(runs: tuple[Path, ...]) -> Path:
    """Where to look: the one folder that was named, or the one that holds them all."""
    if len(runs) == 1:
        inner = runs[0] / "runs"
        return inner if inner.is_dir() else runs[0]
    return Path(os.path.commonpath([str(r.resolve()) for r in runs]))
