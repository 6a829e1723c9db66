"""`deskcert ci` and `deskcert demo`: run, score, say what came out, leave with an exit code that a pipeline can use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from deskcert.cli._reports import report_options
from deskcert.cli._shared import Exit, fresh_out, say
from deskcert_schema.errors import UsageError

if TYPE_CHECKING:
    from deskcert.certify.campaign import CampaignResult
    from deskcert.certify.config import Overrides, Settings
    from deskcert.certify.shard import Shard
    from deskcert.certify.suite import Suite
    from deskcert.report.ci.write import Reports
    from deskcert_ledger import ProjectKey

__all__ = ["ci", "demo"]

_COLLECT = (20_000, 20, 20)
"""Thresholds of the cyclic collector: a run leaves few cycles, and its records are large."""
_EPILOG = """\b
Examples:
  deskcert ci --agent builtin:careful --suite builtin:core
  deskcert ci --suite ./scenarios --policy policy.yaml --trials 3 -- python my_agent.py
  deskcert ci                      (everything from deskcert.yaml)

\b
The agent is a program that speaks JSON lines on standard input and output, or (--transport) an MCP client.
In its command, {task} is replaced by the instruction, {mcp_url} by the address of the guard (also in
DESKCERT_MCP_URL), {mcp_config} by a client's configuration file. Its environment is an allow-list;
agent: {env: […]} in deskcert.yaml adds to it.

\b
Exit codes: 0 certified, 1 not certified, 2 usage or configuration, 3 inconclusive (infrastructure,
interruption, contaminated or broken evidence), 4 a ledger is tampered with or cannot be verified.
With --shard 0 says only that the part was recorded and nothing in it speaks against a certificate.
"""


@click.command(epilog=_EPILOG, context_settings={"ignore_unknown_options": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--agent", metavar="builtin:NAME", help="A reference agent, instead of a command after --.")
@click.option("--suite", "suites", multiple=True, metavar="builtin:core|DIR", help="What it is tried on (repeatable).")
@click.option("--policy", type=click.Path(path_type=Path), help="Instead of the suite's own policy.yaml.")
@click.option("--trials", type=int, help="Runs of each scenario; trial i uses seed + i.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the first trial (default 1).")
@click.option("--workers", type=int, help="Runs at the same time (default 1).")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Default: deskcert-out/<UTC time>.")
@click.option(
    "--only",
    metavar="GLOB",
    multiple=True,
    callback=lambda _ctx, _param, globs: ",".join(globs) or None,
    help="Only the scenarios whose id matches; several with commas, or the option again.",
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only the scenarios with this tag (repeatable).")
@click.option("--list", "listing", is_flag=True, help="Say which runs there would be, and run nothing.")
@click.option("--config", type=click.Path(path_type=Path), help="Default: deskcert.yaml, where there is one.")
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pin this project key, not the local one.")
@click.option("--transport", type=click.Choice(["jsonl", "mcp-http", "mcp-stdio"]), help="How the agent is reached.")
@click.option(
    "--screenshots",
    type=click.Choice(["off", "findings", "all"]),
    help="Pictures as evidence, fields masked: of what findings are made of, or of every action (default off).",
)
@click.option(
    "--tape", is_flag=True, help="Keep what the proxy saw, for replay --offline-network; without its secrets."
)
@click.option("--isolation", type=click.Choice(["bwrap", "netns", "none"]), help="Where the agent runs (default none).")
@click.option(
    "--proxy",
    type=click.Choice(["required", "optional", "off"]),
    help="Forbid writes on the network too (default off).",
)
@click.option("--shard", metavar="I/N", help="Run the i-th of n parts of the plan; `deskcert merge` decides.")
@click.option(
    "--attempt", metavar="WORD", help="The same for all shards, another each time (default: what the pipeline says)."
)
@click.option("--shards", type=click.IntRange(min=1), help="How many parts --emit and --ray make (default 4).")
@click.option("--emit", type=click.Choice(["k8s"]), help="Print a Kubernetes Job that runs the shards; run nothing.")
@click.option("--image", metavar="IMAGE", help="Of the Job's pods: deskcert, your project in /work.")
@click.option("--ray", metavar="ADDRESS", help="Run the shards on this Ray cluster, which sees the same folders.")
@report_options()
@click.option("--max-failures", type=int, metavar="N", help="Start no further run after N that went wrong.")
@click.option("--resume", is_flag=True, help="Go on with the certification that was interrupted in --out.")
@click.option("--json", "as_json", is_flag=True, help="Print verdict.json, and nothing else, on standard output.")
def ci(
    *,
    command: tuple[str, ...],
    agent: str | None,
    suites: tuple[str, ...],
    policy: Path | None,
    trials: int | None,
    seed: int | None,
    workers: int | None,
    out: Path | None,
    only: str | None,
    tags: tuple[str, ...],
    listing: bool,
    config: Path | None,
    keys: tuple[str, ...],
    transport: str | None,
    screenshots: str | None,
    tape: bool,
    isolation: str | None,
    proxy: str | None,
    shard: str | None,
    attempt: str | None,
    shards: int | None,
    emit: str | None,
    image: str | None,
    ray: str | None,
    max_failures: int | None,
    resume: bool,
    as_json: bool,
    **reports: Path | None,
) -> int:
    """Run an agent on a suite and say whether it can be trusted.

    Every run leaves a ledger in OUT/runs; the verdict is computed from those ledgers alone.
    """

    from deskcert.certify.config import Overrides

    given = Overrides(
        agent, command, suites, policy, trials, seed, workers, config, False, transport, isolation, proxy, screenshots
    )
    given = replace(given, shard=_shard(shard, attempt), tape=tape, max_failures=max_failures)
    if listing:
        return _list(given, only=only, tags=tags, as_json=as_json)
    if emit or ray:
        from deskcert.cli import _elsewhere

        if shard is not None or (emit and ray):
            raise UsageError("--emit and --ray make the shards themselves, one or the other; leave --shard out")
        words = _elsewhere.arguments(given, only=only, tags=tags)
        if emit:
            return _elsewhere.emit(words, shards=shards or 4, image=image)
        return _elsewhere.on_ray(
            str(ray), words, shards=shards or 4, attempt=attempt, out=out, keys=keys, as_json=as_json, **reports
        )
    if shards is not None or image is not None:
        raise UsageError("--shards and --image go with --emit or --ray; a single shard is --shard I/N")
    return _certify(given, out=out, only=only, tags=tags, keys=keys, as_json=as_json, reports=reports, resume=resume)


def _shard(words: str | None, attempt: str | None) -> Shard:
    from deskcert.certify.shard import WHOLE, Shard, attempt_of

    if words is None:
        if attempt is not None:
            raise UsageError("--attempt names what shards have in common; give it with --shard")
        return WHOLE
    return Shard.read(words, attempt_of(_environment()) if attempt is None else attempt)


@click.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Default: deskcert-out/<UTC time>.")
def demo(out: Path | None) -> int:
    """Certify the reference agent `builtin:careful` on the suite `builtin:core`, into a fresh folder."""
    from deskcert.certify.config import Overrides

    given = Overrides(agent="builtin:careful", suites=("builtin:core",), ignore_file=True)
    return _certify(given, out=out, only=None, keys=(), as_json=False)


def _list(given: Overrides, *, only: str | None, tags: Sequence[str], as_json: bool) -> int:
    """The plan: one line a scenario, in the order in which they would be run."""
    import json

    from deskcert.certify.config import load_settings
    from deskcert.certify.suite import load_suites, select

    settings = load_settings(given, cwd=Path.cwd())
    suite = select(load_suites(settings.suites, base=settings.base, policy=settings.policy), only, tags)
    if as_json:
        told = [
            {"id": s.id, "title": s.title, "area": s.area, "expected": s.expected, "attribution": s.attribution}
            | {"tags": list(s.tags), "trials": settings.trials, "seed": settings.seed}
            for s in suite.scenarios
        ]
        click.echo(json.dumps(told, ensure_ascii=False, indent=1))
        return Exit.CERTIFIED
    wide = max(len(s.id) for s in suite.scenarios)
    for s in suite.scenarios:
        click.echo(f"{s.id:<{wide}}  {s.expected:<8}  {s.attribution:<14}  {s.title}")
    runs = len(suite.scenarios) * settings.trials
    click.echo(f"{_count(len(suite.scenarios), 'scenario')}, {_count(runs, 'run')}; nothing was run")
    return Exit.CERTIFIED


def _certify(
    given: Overrides,
    *,
    out: Path | None,
    only: str | None,
    tags: Sequence[str] = (),
    keys: Sequence[str],
    as_json: bool,
    reports: Mapping[str, Path | None] = MappingProxyType({}),
    resume: bool = False,
) -> int:
    import asyncio
    import gc

    from deskcert.certify.campaign import only_one, run_campaign
    from deskcert.certify.config import load_settings
    from deskcert.certify.config_checks import check_command
    from deskcert.certify.log import log_to
    from deskcert.certify.progress import LivePlan, make_progress
    from deskcert.certify.resume import refuse_leftovers
    from deskcert.certify.suite import load_suites, make_plan, select
    from deskcert.certify.suite_certificate import SUITE_FILES
    from deskcert.report.ci.write import Reports
    from deskcert.scoring.gate import unmet
    from deskcert.session.points import pause_from
    from deskcert_ledger import ProjectKey, default_key_path, load_pins

    cwd = Path.cwd()
    settings = load_settings(given, cwd=cwd)
    whole = load_suites(settings.suites, base=settings.base, policy=settings.policy)
    _refuse_unknown(settings, whole)
    suite = select(whole, only, tags)
    # What is there by now stays: looking through it again and again was a tenth of this process's work.
    gc.freeze()
    gc.set_threshold(*_COLLECT)
    settings.agent.check_plans(suite.scenarios)
    check_command(settings.agent, settings.base)
    pins = load_pins(list(keys))
    pause = pause_from(_environment())
    key = ProjectKey.load_or_create(default_key_path(settings.base))
    if resume and out is None:
        raise UsageError("name the folder of the certification to go on with: --resume --out FOLDER")
    out = fresh_out(cwd, datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")) if out is None else cwd / out
    if (out / SUITE_FILES[0]).exists():
        raise UsageError(
            f"{out} holds a finished certification, and the runs of two cannot be scored as one; choose another folder"
            " with --out, or delete this one"
        )
    runs = len(settings.shard.share(make_plan(suite, trials=settings.trials, seed=settings.seed)))
    refuse_leftovers(out, resume=resume)
    with (
        only_one(out),
        log_to(out / "run.log", scrub=suite.secrets.scrub),
        make_progress(LivePlan(runs, settings.trials)) as progress,
    ):
        progress.note(
            f"certifying {settings.agent.name} on {suite.name}: {_count(len(suite.scenarios), 'scenario')}, "
            f"{_count(runs, 'run')}{f' of shard {settings.shard}' if settings.shard.is_part else ''}; "
            f"isolation {settings.isolation}, proxy {settings.proxy}, custody owned"
        )
        had = {"isolation": settings.isolation, "proxy": settings.proxy, "custody": "owned"}
        for sentence in unmet(settings.gate.get("require", {}), had):
            progress.note(sentence)
        for scenario in settings.quarantine_over:
            progress.note(f"the quarantine of {scenario} is over: it counts again")
        running = run_campaign(settings, suite, out=out, key=key, pause=pause, progress=progress, resume=resume)
        result = asyncio.run(running)
    wanted = Reports(**{name: cwd / path for name, path in reports.items() if path is not None})
    wanted = wanted.over(Reports(**settings.reports))
    return _conclude(
        result, out, pins=pins or (key.verifier,), key=key, reports=wanted, shard=settings.shard, as_json=as_json
    )


def _refuse_unknown(settings: Settings, suite: Suite) -> None:
    """A quarantine that names nothing hides a typing error. Raises `UsageError`."""
    known = {s.id for s in suite.scenarios}
    named = (*settings.gate.get("quarantine", {}), *settings.quarantine_over)
    unknown = [name for name in named if name not in known]
    if unknown:
        raise UsageError(f"gate.quarantine names {', '.join(unknown)}, and the suite has no such scenario")


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)


def _conclude(
    result: CampaignResult,
    out: Path,
    *,
    pins: Sequence[Any],
    key: ProjectKey,
    reports: Reports,
    shard: Shard,
    as_json: bool,
) -> int:
    from deskcert.cli._outcome import Outcome
    from deskcert.scoring import score

    if result.not_run:
        names = ", ".join(f"{p.scenario.id} (trial {p.trial})" for p in result.not_run)
        say(f"not run: {names}")
    folders = (*result.earlier, *(r.folder for r in result.reports))
    if not folders:
        say("interrupted before the first run: there is nothing to judge")
        return Exit.INCONCLUSIVE
    outcome = Outcome(score(folders, pins), out, folders, pins)
    if shard.is_part:
        return outcome.tell_part(shard, interrupted=result.interrupted, as_json=as_json)
    # Interrupted, the verdict may say more than this campaign was let to find out.
    summaries = [out / "summary.txt", *([reports.summary] if reports.summary is not None else [])]
    outcome.write(None if result.interrupted else key, summaries)
    outcome.tell(reports, as_json=as_json)
    code = int(outcome.verdict.exit_code)
    return Exit.INCONCLUSIVE if result.interrupted and code == 0 else code


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
