"""Whether scenarios can judge: tried with agents whose worth is known, before they are used on one whose worth is not.

A scenario that `careful` cannot pass fails everybody. One that a null agent passes certifies an agent that does
nothing; so does one whose oracle holds before anything was done, for whoever does nothing and says "done".
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deskcert.certify.campaign import only_one, run_campaign
from deskcert.certify.config import Overrides, load_settings
from deskcert.certify.log import log_to
from deskcert.certify.progress import LivePlan, make_progress
from deskcert.certify.suite import Suite, load_suites, select
from deskcert_schema.vocabulary import RunOutcome

if TYPE_CHECKING:
    from deskcert_ledger import ProjectKey

__all__ = ["Trial", "check_scenarios"]

_CAREFUL: Final = "careful"
_NULL: Final = ("silent", "instant_refuser")
_GOOD: Final = frozenset({RunOutcome.PASSED, RunOutcome.REFUSED_CORRECTLY})
_DOES: Final = {"silent": "does nothing", "instant_refuser": "refuses before it looks"}


@dataclass(frozen=True, slots=True)
class Trial:
    scenario: str
    judges: bool | None
    """Whether it can be used; None where that could not be found out."""
    sentence: str

    @property
    def mark(self) -> str:
        return {True: "ok     ", False: "refused", None: "unclear"}[self.judges]


@dataclass(frozen=True, slots=True)
class _Run:
    outcome: str
    findings: tuple[str, ...]
    reason: str
    oracle: tuple[bool | None, ...]
    lines: tuple[str, ...]
    """What the oracle did not find, in words."""


def check_scenarios(
    names: Sequence[str], *, only: str | None, policy: Path | None, out: Path, cwd: Path
) -> tuple[Trial, ...]:
    """Three campaigns in `out`. Raises `ConfigError`, `UsageError`, `HarnessError`."""
    seen: dict[str, dict[str, _Run]] = {}
    with only_one(out):
        for agent in (_CAREFUL, *_NULL):
            given = Overrides(agent=f"builtin:{agent}", suites=tuple(names), policy=policy, ignore_file=True)
            suite, seen[agent] = _campaign(given, only=only, out=out / agent, cwd=cwd)
    return tuple(_judge(s.id, s.expected, {a: seen[a].get(s.id) for a in seen}) for s in suite.scenarios)


def _campaign(given: Overrides, *, only: str | None, out: Path, cwd: Path) -> tuple[Suite, dict[str, _Run]]:
    from deskcert_ledger import ProjectKey, default_key_path

    settings = load_settings(given, cwd=cwd)
    suite = select(load_suites(settings.suites, base=settings.base, policy=settings.policy), only)
    settings.agent.check_plans(suite.scenarios)
    key = ProjectKey.load_or_create(default_key_path(settings.base))
    null = settings.agent.builtin in _NULL
    scrub, plan = suite.secrets.scrub, LivePlan(len(suite.scenarios), 1)
    with log_to(out / "run.log", scrub=scrub), make_progress(plan) as progress:
        progress.note(f"trying {settings.agent.name} on {suite.name}{', which must not pass' if null else ''}")
        campaign = run_campaign(
            settings, suite, out=out, key=key, pause=None, progress=progress, tried=null, weighing=True
        )
        done = asyncio.run(campaign)
    return suite, {r.planned.scenario.id: _read(r.folder, key) for r in done.reports}


def _read(folder: Path, key: ProjectKey) -> _Run:
    from deskcert.scoring.evidence import read_run
    from deskcert.scoring.oracles import unmet_words
    from deskcert_ledger import read_records

    judgement = read_run(folder, (key.verifier,))[0].judgement
    records: list[dict[str, Any]] = [{**r.data, "kind": r.kind} for r in read_records(folder)]
    oracle = [r for r in records if r["kind"] == "oracle"]
    claims = [r for r in records if r["kind"] == "claim"]
    end: Mapping[str, Any] = next((r for r in reversed(records) if r["kind"] == "run.end"), {})
    said = f"{claims[-1]['outcome']}: {claims[-1].get('message', '')}" if claims else str(end.get("reason", ""))
    return _Run(
        judgement.outcome,
        tuple(f"{f.about.id} {f.text}" for f in judgement.findings),
        said,
        tuple(r["holds"] for r in oracle),
        tuple(
            f"{unmet_words(r)} ({json.dumps(r['observed'], ensure_ascii=False)[:200]})"
            for r in oracle
            if not r["holds"]
        ),
    )


def _judge(name: str, expected: str, runs: Mapping[str, _Run | None]) -> Trial:
    careful = runs[_CAREFUL]
    if careful is None or any(run is None for run in runs.values()):
        return Trial(name, None, "it was not run: see run.log")
    for agent in _NULL:
        null = runs[agent]
        if null is not None and null.outcome in _GOOD:
            return Trial(
                name,
                False,
                f"an agent that {_DOES[agent]} passes it, so passing it proves nothing; let the oracle ask for"
                " something that only doing the task brings about, and name in bait what has to be seen first",
            )
    silent = runs["silent"]
    if expected == "complete" and silent is not None and silent.oracle and all(silent.oracle):
        return Trial(
            name,
            False,
            "the oracle holds although nothing was done, so an agent that does nothing and says done would pass; ask"
            " for what only doing the task brings about, or reset the application before each run",
        )
    if careful.outcome in _GOOD:
        if careful.findings:
            return Trial(name, False, f"careful passes it, but with findings: {'; '.join(careful.findings)}")
        return Trial(name, True, f"careful: {careful.outcome.replace('_', ' ')}; agents that do nothing do not pass")
    why = "; ".join((f"it said {careful.reason}", *careful.lines, *careful.findings))
    if careful.outcome == RunOutcome.INCONCLUSIVE:
        return Trial(name, None, f"careful: inconclusive; {why}")
    return Trial(name, False, f"careful does not pass it ({careful.outcome}); {why}")
