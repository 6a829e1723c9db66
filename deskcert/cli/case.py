"""`deskcert case`: what a reviewer attaches to a ticket."""

from __future__ import annotations

from pathlib import Path

import click

from deskcert_schema.errors import UsageError

__all__ = ["case"]


@click.command(epilog="Exit codes: 0 written, or checked; 2 usage; 3 no pinned key; 4 it does not hold what it says.")
@click.argument("run", required=False, type=click.Path(path_type=Path), metavar="RUN")
@click.argument("seq", required=False, type=click.IntRange(min=0), metavar="SEQ")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("case.zip"))
@click.option("--check", "checked", type=click.Path(path_type=Path, dir_okay=False), help="Check a case file instead.")
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pinned project key; may be repeated.")
@click.pass_context
def case(
    ctx: click.Context, run: Path | None, seq: int | None, *, out: Path, checked: Path | None, keys: tuple[str, ...]
) -> None:
    """Pack what shows record SEQ of RUN: the records, their proofs, what the agent saw. No typed value is in it.

    Where record SEQ proves a finding, the other records that prove it are packed, too.
    """
    from deskcert.audit.case import check_case, write_case
    from deskcert.cli._shared import pins_for
    from deskcert.cli._standing import say_standing
    from deskcert.report.visible import visible

    if checked is not None:
        pins = pins_for(keys)
        if not pins:
            click.echo("Whose run is it? Pin the project's key with --key.", err=True)
            ctx.exit(3)
        found = check_case(checked, pins)
        click.echo(f"{checked}: record {found.seq} of {visible(found.run)}, with {len(found.records)} of {found.size}")
        click.echo(f"  each proven, {found.blobs} blobs as the records name them")
        for name in found.missing_blobs:
            click.echo(f"  blob {name[:12]}… is not in the case: what it held cannot be shown from it")
        return
    if run is None or seq is None:
        raise UsageError("name a run folder and a record: deskcert case RUN SEQ -o case.zip")
    say_standing([run])
    packed = write_case(run, seq, out, _proving(run, seq))
    click.echo(f"{out}: records {', '.join(map(str, packed.records))}; {out.stat().st_size / 1e3:.0f} kB")
    for n, name in packed.missing_blobs:
        click.echo(f"  blob {name[:12]}… of record {n} is not in it: gone, or not what the record names", err=True)


def _proving(run: Path, seq: int) -> list[int]:
    """The records of every finding that this one proves."""
    from deskcert.cli._shared import pins_for
    from deskcert.scoring.evidence import read_run

    judged = read_run(run, pins_for(()))[0].judgement
    return [n for finding in judged.findings if seq in finding.seqs for n in finding.seqs]
