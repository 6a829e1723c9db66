"""`deskcert replay`: the recorded decisions again, another policy's answers, from the evidence alone."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deskcert.contract.shown import shown_json
from deskcert_schema.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deskcert.audit.tables import Format
    from deskcert.replay.many import Replayed, Tested

__all__ = ["replay"]

_EPILOG = """\b
Examples:
  deskcert replay deskcert-out/<time>                    every decision again, from the evidence alone
  deskcert replay deskcert-out/* --policy stricter.yaml  what another policy would have decided
  deskcert replay RUN --live                             drive it again, on a fresh application
  deskcert replay RUN --until 42                         stop there, to look

\b
Exit codes: 0 nothing differs, 1 something does, 2 usage, 3 no live run was possible, 4 a ledger cannot be read.
"""


@click.command(epilog=_EPILOG)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--policy", type=click.Path(path_type=Path, dir_okay=False), help="Back-test: decide under this policy.")
@click.option("--all", "everything", is_flag=True, help="With --policy: actions that nothing changes for, too.")
@click.option(
    "--live", is_flag=True, help="Drive the run again on a fresh fixture: seed, faults, perturbations as then."
)
@click.option(
    "--offline-network", "offline", is_flag=True, help="With --live: no application, its network from the recording."
)
@click.option("--suite", metavar="DIR", help="With --live: where a suite of yours lies.")
@click.option(
    "--until",
    type=click.IntRange(min=0),
    metavar="SEQ",
    help="Drive it again as far as record SEQ: visibly where there is a screen, as picture and tree anyway.",
)
@click.option(
    "--allow-target",
    "allowed",
    multiple=True,
    metavar="URL",
    help="With --live: an application of yours to repeat it on.",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="With --live: where the new runs go.")
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pinned project key; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="For machines: one object a line.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", help="With --policy.")
@click.pass_context
def replay(
    ctx: click.Context,
    *,
    runs: tuple[Path, ...],
    policy: Path | None,
    everything: bool,
    live: bool,
    until: int | None,
    offline: bool,
    allowed: tuple[str, ...],
    suite: str | None,
    out: Path | None,
    keys: tuple[str, ...],
    as_json: bool,
    form: str,
) -> None:
    """Decide every recorded action of RUN again, and show what comes out otherwise.

    RUN is a run folder, or a folder that `deskcert ci` wrote. Neither browser nor application is needed, but for
    --live, which starts its own.
    """
    from deskcert.audit.tables import Format
    from deskcert.scoring.evidence import find_runs

    if live and policy is not None:
        raise UsageError("--live drives the run again, --policy asks another policy: one at a time.")
    if until is not None and policy is not None:
        raise UsageError("--until drives the run again, --policy asks another policy: one at a time.")
    if not live and until is None and (suite is not None or out is not None or allowed or offline):
        raise UsageError(
            "--suite, --allow-target, --offline-network and --out belong to --live; the others to --until, too."
        )
    if offline and (until is not None or suite is not None or allowed):
        raise UsageError("--offline-network drives no application: it goes with --live and --out alone.")
    folders = find_runs(runs)
    if until is not None:
        from deskcert.cli._live import replay_until

        ctx.exit(replay_until(folders, until, suite=suite, allowed=allowed, out=out))
    if live:
        from deskcert.cli._live import replay_live

        ctx.exit(replay_live(folders, suite=suite, allowed=allowed, offline=offline, out=out, as_json=as_json))
    if policy is not None:
        ctx.exit(_back_test(folders, policy, Format.JSON if as_json else Format(form), everything))
    ctx.exit(_again(folders, keys, as_json))


def _again(folders: Sequence[Path], keys: tuple[str, ...], as_json: bool) -> int:
    from deskcert.cli._shared import pins_for
    from deskcert.replay.many import replay_all

    began = time.monotonic()
    differences = decisions = looks = broken = 0
    for done in replay_all(folders, [str(p) for p in pins_for(keys)]):
        if as_json:
            click.echo(shown_json(_told(done)))
        elif done.again is None or done.again.differences or done.word in {"tampered", "unverifiable"}:
            _show(done)
        broken += done.again is None or done.word == "tampered"
        if done.again is not None:
            differences += len(done.again.differences)
            decisions += done.again.decisions
            looks += done.again.looks
    if not as_json:
        seconds = time.monotonic() - began
        click.echo(
            f"{_count(len(folders), 'run')}: {_count(decisions, 'decision')} and {_count(looks, 'look')} decided again,"
            f" {_count(differences, 'difference')}{f', {broken} broken' if broken else ''} ({seconds:.1f} s,"
            f" {_per_thousand(seconds, len(folders))})"
        )
    return 4 if broken else 1 if differences else 0


def _told(done: Replayed) -> dict[str, Any]:
    told: dict[str, Any] = {"run": done.folder.name, "word": done.word}
    if done.again is None:
        return told | {"trouble": done.trouble}
    return told | {
        "decisions": done.again.decisions,
        "looks": done.again.looks,
        "looks_without_evidence": done.again.looks_without_evidence,
        "differences": [
            {"seq": d.seq, "what": d.what, "recorded": d.recorded, "recomputed": d.recomputed}
            for d in done.again.differences
        ],
    }


def _show(done: Replayed) -> None:
    from deskcert.report.visible import visible

    click.echo(f"{visible(done.folder.name)}  ledger {done.word}")
    if done.again is None:
        click.echo(f"  cannot be read: {visible(done.trouble)}")
        return
    for difference in done.again.differences:
        click.secho(f"  record {difference.seq}: {difference.what}", bold=True)
        for sign, value, colour in (("-", difference.recorded, "red"), ("+", difference.recomputed, "green")):
            for line in shown_json(value, indent=1, sort_keys=True, default=str).splitlines():
                click.secho(f"    {sign} {visible(line)}", fg=colour)


def _back_test(folders: Sequence[Path], path: Path, form: Format, everything: bool) -> int:
    from deskcert.audit.tables import Column, Format, say_table
    from deskcert.replay.backtest import Answer
    from deskcert.replay.many import backtest_all
    from deskcert_schema.validate import load_config

    new = load_config(path, "policy", name=str(path)).value
    began = time.monotonic()
    counted: Counter[tuple[str, str]] = Counter()
    broken: list[Tested] = []

    def rows() -> Iterator[dict[str, Any]]:
        for done in backtest_all(folders, new):
            if done.trouble:
                broken.append(done)
            for action in done.actions:
                counted[action.before.value, action.after.value] += 1
                if everything or action.changed:
                    yield action.as_json()

    def shade(answer: str) -> str:
        return {"deny": "red", "allow": "green"}.get(answer, "yellow")

    columns = [
        Column("run", wide=True),
        Column("seq", right=True),
        Column("command"),
        Column("target"),
        Column("before", style=shade),
        Column("rule_before"),
        Column("after", style=shade),
        Column("rule_after"),
        Column("delivered"),
        Column("why"),
    ]
    say_table(columns, rows(), form)
    for done in broken:
        click.echo(f"{done.folder}: cannot be read: {done.trouble}", err=True)
    changed = sum(n for (before, after), n in counted.items() if before != after)
    if form is Format.TABLE:
        seconds = time.monotonic() - began
        click.echo(f"{_count(len(folders), 'run')}, {_count(sum(counted.values()), 'action')}:")
        for before in (Answer.ALLOW, Answer.DENY):
            told = ", ".join(f"{counted[before, after]} {after}" for after in Answer)
            click.echo(f"  {'allowed' if before is Answer.ALLOW else 'denied'} in the run → {told}")
        click.echo(f"{seconds:.1f} s, {_per_thousand(seconds, len(folders))}")
        click.echo(
            "After the first action that is decided otherwise an agent may go on otherwise: deskcert ci --policy."
        )
    return 4 if broken else 1 if changed else 0


def _per_thousand(seconds: float, runs: int) -> str:
    return f"1,000 runs in {1_000 * seconds / max(1, runs):.0f} s"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
