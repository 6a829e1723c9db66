"""`deskcert ledger timeline`, `show`, `diff`, `query`, `stats`: what a reviewer asks, offline, of run folders alone."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deskcert.contract.shown import shown_json
from deskcert_schema.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskcert.audit.tables import Column, Format

__all__ = ["diff", "query", "show", "stats", "timeline"]

_RUN = click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
_RUNS = click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
_GROUPS = ("action", "denial", "refusal", "look", "network", "claim", "oracle", "change", "agent", "run", "trouble")
_STYLE = {"good": "green", "bad": "bold red", "warn": "yellow", "info": "cyan", "quiet": "dim"}


def _formats[F: Callable[..., Any]](command: F) -> F:
    command = click.option("--json", "as_json", is_flag=True, help="For machines: one object a line.")(command)
    choice = click.Choice(["table", "csv", "json"])
    return click.option("--format", "form", type=choice, default="table", help="Default: table.")(command)


def _form(form: str, as_json: bool) -> Format:
    from deskcert.audit.tables import Format

    return Format.JSON if as_json else Format(form)


@click.command()
@_RUN
@click.option("--only", "groups", multiple=True, type=click.Choice(_GROUPS), help="Only these; may be repeated.")
@click.option("--outcome", "outcomes", multiple=True, metavar="WORD", help="Only steps that ended so.")
@click.option("--rule", "rules", multiple=True, metavar="ID", help="Only what this rule denied.")
@_formats
def timeline(
    *, run: Path, groups: tuple[str, ...], outcomes: tuple[str, ...], rules: tuple[str, ...], as_json: bool, form: str
) -> None:
    """What happened in RUN, one line a step: an intent with its result, the wait before it, what was denied."""
    from deskcert.audit.story import Step, read_whole, story
    from deskcert.audit.tables import Column, say_table

    def wanted(step: Step) -> bool:
        told = (not groups or step.group in groups) and (not rules or step.rule in rules)
        return told and (not outcomes or step.outcome in outcomes or step.code in outcomes)

    steps = [s for s in story(read_whole(_standing(run))) if wanted(s)]
    tones = {s.outcome: s.tone.value for s in steps}
    columns = [
        Column("seq", right=True),
        Column("end", right=True),
        Column("at_ms", right=True),
        Column("what"),
        Column("target"),
        Column("outcome", style=lambda word: _STYLE[tones.get(word, "quiet")]),
        Column("code"),
        Column("rule"),
        Column("waited_ms", right=True),
        Column("looks", right=True),
    ]
    if say_table(columns, (s.as_json() for s in steps), _form(form, as_json)) == 0:
        click.echo("No step is like that.", err=True)


@click.command()
@_RUN
@click.argument("seq", type=click.IntRange(min=0), metavar="SEQ")
@click.option("--tree", is_flag=True, help="Of an observation: the whole tree that the agent saw.")
@click.option("--json", "as_json", is_flag=True, help="The record as it stands, blobs and openings put in.")
def show(run: Path, seq: int, tree: bool, as_json: bool) -> None:
    """One record of RUN: what it says, how each check ended, which values can be opened, what belongs to it."""
    from deskcert.audit.record import look_up, shown_lines

    found = look_up(_standing(run), seq)
    if as_json:
        click.echo(shown_json(found.as_json(tree=tree)))
        return
    for line in shown_lines(found, tree=tree):
        click.echo(line)


@click.command()
@click.argument("a", type=click.Path(path_type=Path), metavar="A")
@click.argument("b", type=click.Path(path_type=Path), metavar="B")
@click.option("--all", "everything", is_flag=True, help="What is the same, too.")
@_formats
@click.pass_context
def diff(ctx: click.Context, *, a: Path, b: Path, everything: bool, as_json: bool, form: str) -> None:
    """Two runs, aligned by what was done. Exit code 1 where they differ."""
    from deskcert.audit.diff import align
    from deskcert.audit.story import read_whole, story
    from deskcert.audit.tables import Column, say_table

    pairs = align(story(read_whole(_standing(a))), story(read_whole(_standing(b))))
    style = {"+": "green", "-": "red", "~": "yellow"}
    columns: list[Column] = [
        Column("sign", style=lambda sign: style.get(sign, "dim")),
        Column("seq_a", right=True),
        Column("seq_b", right=True),
        Column("what"),
        Column("target"),
        Column("outcome_a"),
        Column("code_a"),
        Column("outcome_b"),
        Column("code_b"),
    ]
    shown = [p.as_json() for p in pairs if everything or not p.same]
    say_table(columns, shown, _form(form, as_json))
    different = sum(not p.same for p in pairs)
    if _form(form, as_json) == "table":
        click.echo(f"{len(pairs)} steps compared, {different} differ")
    ctx.exit(1 if different else 0)


@click.command()
@click.argument("asked", nargs=-1, metavar="RUN... QUERY")
@click.option("--list", "listed", is_flag=True, help="The named queries, and the tables.")
@click.option(
    "--engine",
    type=click.Choice(["sqlite", "duckdb"]),
    default="sqlite",
    help="duckdb: quicker aggregates over many runs; needs the query extra. Default: sqlite.",
)
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pinned project key; may be repeated.")
@_formats
def query(
    *, asked: tuple[str, ...], listed: bool, engine: str, keys: tuple[str, ...], as_json: bool, form: str
) -> None:
    """Ask RUN... in SQL, or by the name of a query. Only SELECT is possible; every run is verified first.

    \b
    deskcert ledger query deskcert-out/<time> denials
    deskcert ledger query deskcert-out/* "select scenario, word from runs"
    """
    from deskcert.audit.query import NAMED, ask, load
    from deskcert.audit.tables import Column, say_table

    if listed:
        told = [{"name": name, "question": question, "sql": sql} for name, (question, sql) in NAMED.items()]
        say_table([Column("name"), Column("question", wide=True)], told, _form(form, as_json))
        click.echo(
            "Tables: runs, records, steps, network, oracle (select * from … limit 1 shows the columns).", err=True
        )
        return
    if len(asked) < 2:
        raise UsageError('name the runs, then the query: deskcert ledger query RUN… denials (or "select …")')
    *places, sql = asked
    known = NAMED.get(sql)
    if known is None and " " not in sql.strip():
        raise UsageError(f"there is no query {sql!r}; there are: {', '.join(NAMED)}; or write SQL")
    folders = _run_folders(tuple(Path(p) for p in places))
    from deskcert.cli._shared import pins_for

    base, statement = load(folders, pins_for(keys)), known[1] if known else sql
    with contextlib.ExitStack() as stack:
        if engine == "duckdb":
            from deskcert.audit.columns import asked_in_columns

            names, rows_of = stack.enter_context(asked_in_columns(base, statement))
        else:
            names, rows_of = ask(base, statement)
        rows = (dict(zip(names, r, strict=True)) for r in rows_of)
        say_table([Column(n) for n in names], rows, _form(form, as_json))


@click.command()
@_RUNS
@_formats
def stats(*, runs: tuple[Path, ...], as_json: bool, form: str) -> None:
    """How much of what RUN... hold, and how long each phase of the guard took (microseconds)."""
    from deskcert.audit.story import read_whole
    from deskcert.audit.tables import Column, say_table
    from deskcert.cli._standing import say_standing

    kinds: Counter[str] = Counter()
    times: dict[str, list[int]] = {}
    folders = _run_folders(runs)
    say_standing(folders)
    for folder in folders:
        for record in read_whole(folder):
            kinds[record.kind] += 1
            phases = record.data.get("phases_us")
            for phase, us in phases.items() if isinstance(phases, dict) else ():
                times.setdefault(phase, []).append(us)
    rows: list[dict[str, Any]] = [{"what": kind, "count": n} for kind, n in sorted(kinds.items())]
    for phase, told in times.items():
        told.sort()
        marks = {"p50_us": 50, "p95_us": 95, "p99_us": 99, "max_us": 100}
        at = {name: told[min(len(told) - 1, len(told) * p // 100)] for name, p in marks.items()}
        rows.append({"what": f"phase {phase}", "count": len(told), **at})
    names = ["count", "p50_us", "p95_us", "p99_us", "max_us"]
    say_table([Column("what"), *(Column(n, right=True) for n in names)], rows, _form(form, as_json))


def _standing(path: Path) -> Path:
    """The run folder, and a word beforehand where its ledger is not whole."""
    from deskcert.cli._standing import say_standing

    folder = _folder(path)
    say_standing([folder])
    return folder


def _folder(path: Path) -> Path:
    folder = path.parent if path.name == "ledger.jsonl" else path
    if not (folder / "ledger.jsonl").exists():
        inner = "; it holds several: name one of runs/*" if (folder / "runs").is_dir() else ""
        raise UsageError(f"{path} is no run folder{inner}.")
    return folder


def _run_folders(paths: tuple[Path, ...]) -> list[Path]:
    from deskcert.scoring.evidence import find_runs

    found = list(find_runs([p.parent if p.name == "ledger.jsonl" else p for p in paths]))
    if not found:
        raise LedgerError("no run folder")
    return found
