"""`deskcert report`: runs as one HTML file."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import click

from deskcert.cli._reports import report_options
from deskcert_schema.errors import UsageError

__all__ = ["report"]


@click.command(
    epilog="Exit codes: 0 written, 2 usage. What the verdict is, the page says; `deskcert score` exits by it."
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("report.html"))
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pinned project key; may be repeated.")
@click.option(
    "--trees",
    type=click.Choice(["none", "some", "all"]),
    default="some",
    help="What the agent saw: of no snapshot, of those that matter most up to 10 MiB (default), of all.",
)
@report_options(html=False)
def report(runs: tuple[Path, ...], out: Path, keys: tuple[str, ...], trees: str, **reports: Path | None) -> None:
    """Write RUN... as one HTML file: verdict, matrix, findings, and every run to its last record.

    It opens from disk and asks nothing of any network. Folders of several `deskcert ci` stand side by side; the other
    formats hold one certification.
    """
    from deskcert.cli._shared import pins_for
    from deskcert.report.html.collect import Trees, collect
    from deskcert.report.html.page import page

    made = collect(runs, pins_for(keys), Trees(trees))
    temporary = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(page(made))
        temporary.replace(out)
    except OSError as exc:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise UsageError(f"--out {out}: cannot be written ({exc.strerror}).") from exc
    if any(reports.values()):
        from deskcert.report.ci.write import Reports, write_reports
        from deskcert.scoring import score

        write_reports(score(runs, pins_for(keys)), runs, Reports(**reports), pins_for(keys))
    size = out.stat().st_size
    click.echo(
        f"{out}: {len(made.runs):,} run{'s' * (len(made.runs) != 1)}, {made.records:,} records, {size / 1e6:.1f} MB",
        file=sys.stderr,
    )
    for campaign in made.campaigns:
        click.echo(f"  {campaign.overview.verdict}  {campaign.overview.subject}", file=sys.stderr)
