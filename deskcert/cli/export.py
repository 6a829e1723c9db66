"""`deskcert ledger export`: runs in the formats of other tools, and as a pack that checks itself."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from deskcert.cli._runs import evidence_errors, pinned, run_folder, write_whole
from deskcert_schema.errors import UsageError

if TYPE_CHECKING:
    from deskcert_ledger.note import Verifier

__all__ = ["export"]

_TABLES: Final = ("runs", "records", "steps", "network", "oracle")


def _ocsf(runs: Sequence[Path], pins: Sequence[Verifier], _: bool) -> bytes:
    from deskcert.audit.exports.events import read_runs
    from deskcert.audit.exports.ocsf import ocsf_lines

    return _lines(ocsf_lines(read_runs(runs, pins)))


def _cef(runs: Sequence[Path], pins: Sequence[Verifier], _: bool) -> bytes:
    from deskcert.audit.exports.cef import cef_lines
    from deskcert.audit.exports.events import read_runs

    return _lines(cef_lines(read_runs(runs, pins)))


def _otlp(runs: Sequence[Path], pins: Sequence[Verifier], _: bool) -> bytes:
    from deskcert.audit.exports.events import read_runs
    from deskcert.audit.exports.otlp import otlp_request

    return _lines([json.dumps(otlp_request(read_runs(runs, pins)))])


def _har(runs: Sequence[Path], pins: Sequence[Verifier], with_openings: bool) -> bytes:
    from deskcert.audit.exports.events import read_runs
    from deskcert.audit.exports.har import har_log

    return _lines([json.dumps(har_log(read_runs(runs, pins), with_openings=with_openings), indent=1)])


def _lines(lines: Iterator[str] | Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


_TO: Final[dict[str, Callable[[Sequence[Path], Sequence[Verifier], bool], bytes]]] = {
    "ocsf": _ocsf,
    "cef": _cef,
    "otlp": _otlp,
    "har": _har,
}


def _table(runs: Sequence[Path], pins: Sequence[Verifier], form: str, table: str) -> bytes:
    from deskcert.audit.query import load
    from deskcert.audit.tables import csv_cell

    base = load(runs, pins)
    if form == "parquet":
        from deskcert.audit.columns import parquet_of

        return parquet_of(base, table)
    cursor = base.execute(f"select * from {table}")  # noqa: S608 - one of _TABLES
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([c[0] for c in cursor.description])
    writer.writerows([csv_cell(value) for value in row] for row in cursor)
    return out.getvalue().encode()


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--to", "form", type=click.Choice([*_TO, "sarif", "csv", "parquet", "pack"]), required=True)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE")
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pinned project key; may be repeated.")
@click.option("--table", type=click.Choice(_TABLES), default="steps", help="csv, parquet: which table. Default: steps.")
@click.option("--elide", "kinds", multiple=True, metavar="KIND", help="pack: leave out what records of this kind say.")
@click.option(
    "--with-openings", is_flag=True, help="pack, har: put the openings of secrets in. Who has them can read them."
)
@click.pass_context
def export(
    ctx: click.Context,
    *,
    runs: tuple[Path, ...],
    form: str,
    out: Path,
    keys: tuple[str, ...],
    table: str,
    kinds: tuple[str, ...],
    with_openings: bool,
) -> None:
    """Write RUN... as one file.

    \b
    ocsf     OCSF 1.5 events, one a line: API Activity, and Detection Finding for what was stopped or is uncertain
    cef      Common Event Format, one event a line
    sarif    SARIF 2.1.0: what scoring finds in these runs
    otlp     OpenTelemetry traces, one OTLP JSON request: a run is a trace
    har      HTTP Archive 1.2 of what the second line saw
    csv      one table of the SQL view (--table)
    parquet  the same, for other engines; needs the query extra
    pack     one sealed run as a zip: ledger, notes, certificate, policy, and verify.py, which needs any Python 3.8 or
             newer and nothing else

    Every run is verified first; what was changed is not exported. The same runs give the same bytes.

    Exit codes: 0 written, 1 a ledger contradicts its notes, 2 no ledger (for a pack: not a sealed one), or usage.
    """
    pins = pinned(keys)
    with evidence_errors(ctx, ", ".join(map(str, runs[:3]))):
        if form == "pack":
            _pack(runs, out, kinds, with_openings=with_openings)
            return
        if kinds or (with_openings and form != "har"):
            raise UsageError(f"--elide and --with-openings have no meaning for {form}.")
        from deskcert.scoring.evidence import find_runs

        folders = list(find_runs([run_folder(path) for path in runs]))
        if form == "sarif":
            content = _sarif(folders, pins)
        elif form in {"csv", "parquet"}:
            content = _table(folders, pins, form, table)
        else:
            content = _TO[form](folders, pins, with_openings)
    write_whole(out, content)
    click.echo(f"{out}: {form}, {len(content)} bytes, from {len(folders)} run{'' if len(folders) == 1 else 's'}")


def _pack(runs: Sequence[Path], out: Path, kinds: Sequence[str], *, with_openings: bool) -> None:
    from deskcert_ledger.pack import make_pack

    if len(runs) != 1:
        raise UsageError("A pack holds one run: name one.")
    content = make_pack(run_folder(runs[0]), elide=frozenset(kinds), openings=with_openings)
    write_whole(out, content)
    click.echo(f"{out}: {len(content)} bytes; check it with: python3 verify.py {out} --key VKEY")


def _sarif(folders: Sequence[Path], pins: Sequence[Verifier]) -> bytes:
    from importlib.metadata import version

    from deskcert.report.ci.cases import make_report, spans_of
    from deskcert.report.ci.sarif import sarif
    from deskcert.scoring import score

    return sarif(make_report(score(folders, pins), spans_of(folders), version=version("deskcert")))
