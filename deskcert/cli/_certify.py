"""What `deskcert ci` and `deskcert demo` do once their options are read: list the plan, or run it and judge it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from deskcert.cli._shared import Exit, fresh_out, say
from deskcert.contract.shown import shown_json
from deskcert_schema.errors import UsageError
from deskcert_schema.vocabulary import Mode

if TYPE_CHECKING:
    from deskcert.certify.campaign import CampaignResult
    from deskcert.certify.config import Overrides, Settings
    from deskcert.certify.shard import Shard
    from deskcert.certify.suite import Suite
    from deskcert.report.ci.write import Reports
    from deskcert_ledger import ProjectKey

__all__ = ["certify", "list_plan"]

_COLLECT = (20_000, 20, 20)
"""Thresholds of the cyclic collector: a run leaves few cycles, and its records are large."""


def list_plan(given: Overrides, *, only: str | None, tags: Sequence[str], as_json: bool) -> int:
    """The plan: one line a scenario, in the order in which they would be run."""

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
        click.echo(shown_json(told, indent=1))
        return Exit.CERTIFIED
    wide = max(len(s.id) for s in suite.scenarios)
    for s in suite.scenarios:
        click.echo(f"{s.id:<{wide}}  {s.expected:<8}  {s.attribution:<14}  {s.title}")
    runs = len(suite.scenarios) * settings.trials
    click.echo(f"{_count(len(suite.scenarios), 'scenario')}, {_count(runs, 'run')}; nothing was run")
    return Exit.CERTIFIED


def certify(
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
    from deskcert.certify.suite import load_suites, make_plan, select, with_mode
    from deskcert.certify.suite_certificate import SUITE_FILES
    from deskcert.report.ci.write import Reports
    from deskcert.scoring.gate import unmet
    from deskcert.session.points import pause_from
    from deskcert_ledger import ProjectKey, default_key_path, load_pins

    cwd = Path.cwd()
    settings = load_settings(given, cwd=cwd)
    whole = with_mode(load_suites(settings.suites, base=settings.base, policy=settings.policy), settings.mode)
    _refuse_unknown(settings, whole)
    suite = select(whole, only, tags)
    # What is there by now stays: looking through it again and again was a tenth of this process's work.
    gc.freeze()
    gc.set_threshold(*_COLLECT)
    settings.agent.check_plans(suite.scenarios)
    check_command(settings.agent, settings.base)
    pins = load_pins(list(keys))
    pause = pause_from(dict(os.environ))
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
            f"{'' if suite.mode is Mode.HEADLESS else f', mode {suite.mode.value}'}"
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
