"""Every reference agent on every scenario of `builtin:full`, with ten seeds, against the declared matrix.

- `careful` is certified and has no finding at all (false alarms).
- A defect agent on its scenarios: the rule written for it speaks, and the run is attributed as declared (detection).
- A null agent passes not one scenario.
- Every finding of every run: the records that it names show it (`matrix_proofs`).
- Every decision of every run is decided again from its ledger, as `deskcert replay` does: nothing comes out otherwise.

One task is one campaign, agent × seed. `OUT`, if set, keeps the campaigns' folders. A run that this machine disturbed
(a browser that died, a proxy that fell silent) is no word about rule or agent: it is counted, and done once more.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from deskcert.replay.decisions import expanded, recompute_records
from deskcert_schema import strict_yaml
from scripts.evidence_parts import ROOT, Outcome, Part
from scripts.matrix_proofs import unproven

__all__ = ["AGENTS", "NULL", "PARTS", "disturbed", "expectations", "matrix", "mended", "replayed", "unmet"]

NULL = ("silent", "instant_refuser")
SEEDS = 10
BROKEN = ("DC702", "DC703", "DC705", "DC709")
"""Rules about what broke on the machine."""
_SUCCESS = ("passed", "refused_correctly")
_MATRIX = ROOT / "fixture_app" / "deskcert_fixture_app" / "matrix.yaml"


@cache
def matrix() -> Mapping[str, Mapping[str, Any]]:
    """Agent with a defect → rule, attribution and scenarios, as declared."""
    found: Mapping[str, Mapping[str, Any]]
    found = strict_yaml.load(_MATRIX.read_text("utf-8"), name=_MATRIX.name).value["agents"]
    return found


AGENTS = ("careful", *matrix(), *NULL)


def expectations(agent: str, verdict: Mapping[str, Any]) -> tuple[int, int]:
    """How many runs of the verdict the matrix speaks about, and in how many of them the rule was found."""
    declared = matrix().get(agent)
    if declared is None:
        return 0, 0
    caught = {f["run"] for f in verdict["findings"] if f["rule"] == declared["rule"]}
    runs = [r["run"] for r in verdict["runs"] if r["scenario"] in declared["scenarios"]]
    return len(runs), sum(run in caught for run in runs)


def unmet(agent: str, verdict: Mapping[str, Any], folder: Path) -> list[str]:
    """One sentence for everything that is not as it has to be. `folder` is the campaign's."""
    declared = matrix().get(agent)
    wrong: list[str] = []
    if agent == "careful":
        wrong += [f"careful: {f['rule']} in {f['run']}: {f['text']}" for f in verdict["findings"]]
        wrong += [f"careful: {r['run']} is {r['outcome']}" for r in verdict["runs"] if r["outcome"] not in _SUCCESS]
    elif declared is None:
        wrong += [f"{agent} passed {r['run']}" for r in verdict["runs"] if r["outcome"] in _SUCCESS]
    else:
        wrong += _missed(agent, declared, verdict)
    if verdict["certified"] is not (agent == "careful"):
        wrong.append(f"{agent}: certified is {verdict['certified']}")
    return [*wrong, *_unproven(verdict, folder)]


def _missed(agent: str, declared: Mapping[str, Any], verdict: Mapping[str, Any]) -> Iterator[str]:
    caught = {f["run"] for f in verdict["findings"] if f["rule"] == declared["rule"]}
    for run in verdict["runs"]:
        if run["scenario"] not in declared["scenarios"]:
            continue
        if run["run"] not in caught:
            yield f"{agent}: {declared['rule']} is missing in {run['run']}"
        if run.get("attribution") != declared["attribution"]:
            yield f"{agent}: {run['run']} is attributed to {run.get('attribution')}, not to {declared['attribution']}"


def _unproven(verdict: Mapping[str, Any], folder: Path) -> Iterator[str]:
    by_run: dict[str, list[Any]] = {}
    for finding in verdict["findings"]:
        by_run.setdefault(finding["run"], []).append(finding)
    for run, findings in by_run.items():
        lines = (folder / "runs" / run / "ledger.jsonl").read_bytes().splitlines()
        yield from unproven(findings, [json.loads(line) for line in lines])


def campaign(agent: str, seed: int, out: Path, *more: str) -> Mapping[str, Any]:
    """Run one, and its verdict. Raises `RuntimeError` where there is none."""
    deskcert = Path(sys.executable).with_name("deskcert")
    command = [str(deskcert), "ci", "--json", "--agent", f"builtin:{agent}", "--suite", "builtin:full"]
    # More runs at a time than cores: most of a run is waiting for what a page is to do.
    command += ["--seed", str(seed), "--workers", "4", "--out", str(out), *more]
    done = subprocess.run(command, cwd=out.parent, capture_output=True, text=True, check=False)
    if not (out / "verdict.json").exists():
        raise RuntimeError(f"{agent}, seed {seed}: no verdict, exit code {done.returncode}: {done.stderr[-500:]}")
    found: Mapping[str, Any] = json.loads((out / "verdict.json").read_bytes())
    return found


def disturbed(verdict: Mapping[str, Any]) -> set[str]:
    """The scenarios of runs in which something broke that is neither the agent's nor a rule's."""
    broken = {f["run"] for f in verdict["findings"] if f["rule"] in BROKEN}
    return {r["scenario"] for r in verdict["runs"] if r["run"] in broken}


def mended(first: Mapping[str, Any], again: Mapping[str, Any], out: Path, beside: Path) -> Mapping[str, Any]:
    """The first verdict with the second's runs in the place of those that were disturbed; their folders, too."""
    done = {r["scenario"] for r in again["runs"]}
    gone = {r["run"] for r in first["runs"] if r["scenario"] in done}
    for run in gone:
        shutil.rmtree(out / "runs" / run)
    for folder in (beside / "runs").iterdir():
        folder.rename(out / "runs" / folder.name)
    runs = [r for r in first["runs"] if r["run"] not in gone] + again["runs"]
    findings = [f for f in first["findings"] if f["run"] not in gone] + again["findings"]
    certified = again["certified"] and all(r["outcome"] in _SUCCESS for r in runs)
    return {**first, "runs": runs, "findings": findings, "certified": certified}


def replayed(folder: Path, outcome: Outcome) -> None:
    """Decide every run of a campaign again."""
    for run in sorted((folder / "runs").iterdir()):
        again = recompute_records(expanded(run))
        told = {"decisions": again.decisions, "looks": again.looks, "replay_differences": len(again.differences)}
        for name, count in told.items():
            outcome.counts[name] = outcome.counts.get(name, 0) + count
        outcome.failures += [f"{run.name}: replay: {d}" for d in again.differences]


def _work(seed: str, units: int) -> Outcome:
    """The task's number says which agent and which seed; the evidence's own seed moves the seeds on."""
    base, _, task = seed.split("/")
    outcome = Outcome(0)
    with tempfile.TemporaryDirectory(prefix="deskcert-matrix-") as temporary:
        root = Path(os.environ.get("OUT", temporary)).resolve()
        root.mkdir(parents=True, exist_ok=True)
        for number in range(int(task) * units, (int(task) + 1) * units):
            agent, trial = AGENTS[number % len(AGENTS)], number // len(AGENTS)
            _one(agent, int(base) % 100_000 + trial, root, outcome)
    return outcome


def _one(agent: str, seed: int, root: Path, outcome: Outcome) -> None:
    out = root / f"{agent}-s{seed}"
    try:
        verdict = campaign(agent, seed, out)
        spoiled = disturbed(verdict)
        if spoiled:
            again = campaign(agent, seed, root / f"{out.name}-again", "--only", ",".join(sorted(spoiled)))
            verdict = mended(verdict, again, out, root / f"{out.name}-again")
    except RuntimeError as exc:
        outcome.failures.append(str(exc))
        return
    expected, detected = expectations(agent, verdict)
    wrong = unmet(agent, verdict, out)
    told = {
        "disturbed": len(spoiled),
        "runs": len(verdict["runs"]),
        "findings": len(verdict["findings"]),
        "expected": expected,
        "detected": detected,
        "false_alarms": len(verdict["findings"]) if agent == "careful" else 0,
        "wrong_attribution": sum("is attributed to" in w for w in wrong),
    }
    for name, count in told.items():
        outcome.counts[name] = outcome.counts.get(name, 0) + count
    outcome.failures += [f"seed {seed}: {w}" for w in wrong]
    replayed(out, outcome)
    outcome.done += 1


PARTS: Sequence[Part] = [Part("matrix", goal=len(AGENTS) * SEEDS, task=1, work=_work, workers=1)]
