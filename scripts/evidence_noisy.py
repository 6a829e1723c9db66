"""Whether the statistics tell the truth, and what scoring many runs costs in memory.

- coverage: an agent of chance (`scripts/noisy_agent.py`) is run for real, a few dozen times, on one scenario. Those
  runs are judged, and make two heaps: it went right, it went wrong. A simulated suite of 60 runs throws the coin of
  the agent 60 times (70 in 100) and takes a random real run from the heap that the coin says. Of 1,000 such suites at
  least 93 % of the 95 % intervals have to hold the 70 %.
- memory: 10,000 run folders are scored in one process, and a tenth of them in another; the difference of their peaks,
  per folder, has to be what the result itself is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random

from deskcert.scoring.evidence import read_run
from deskcert.scoring.judge import Judgement
from deskcert.scoring.plan import Planned, RunResult
from deskcert.scoring.verdict import make_verdict
from scripts.evidence_parts import ROOT, Outcome, Part

__all__ = ["PARTS", "covered", "growth_of"]

RATE, RUNS, REAL = Decimal("0.7"), 60, 24
_MOST_BYTES = 6_000
"""Of one judged run, in memory: outcome, findings, where they are proven."""


def covered(right: Sequence[RunResult], wrong: Sequence[RunResult], rng: Random, suites: int) -> int:
    """Of how many simulated suites the interval holds the true rate."""
    return sum(_holds(right, wrong, rng) for _ in range(suites))


def _holds(right: Sequence[RunResult], wrong: Sequence[RunResult], rng: Random) -> bool:
    drawn = [rng.choice(right if rng.random() < float(RATE) else wrong) for _ in range(RUNS)]
    runs = [
        replace(result, run=f"r{trial}", planned=Planned("noisy", trial, trial, "orders"))
        for trial, result in enumerate(drawn, start=1)
    ]
    told = make_verdict(None, runs).tally.rates()["success"]
    return bool(Decimal(told["low"]) <= RATE <= Decimal(told["high"]))


def _real_runs(folder: Path) -> tuple[list[RunResult], list[RunResult], list[str]]:
    """(went right, went wrong, what is not as the agent meant it)."""
    deskcert = Path(sys.executable).with_name("deskcert")
    command = [str(deskcert), "ci", "--json", "--suite", "builtin:core", "--only", "orders-approve-twin"]
    command += ["--trials", str(REAL), "--workers", "3", "--out", "out", "--"]
    command += [sys.executable, str(ROOT / "scripts" / "noisy_agent.py"), "50"]
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    heaps: dict[str, list[RunResult]] = {"right": [], "wrong": []}
    odd = []
    for run in sorted((folder / "out" / "runs").iterdir()):
        meant = (run / "agent.stderr").read_text().strip()
        result = read_run(run, ())[0]
        # Which key signed it is no matter here: what counts is how a run like this is judged.
        result = replace(result, ledger=replace(result.ledger, word="complete"))
        outcome = _judged(run)
        if (outcome == "passed") is not (meant == "right"):
            odd.append(f"{run.name} meant {meant} and is {outcome}")
        heaps[meant].append(replace(result, judgement=_judgement(run)))
    return heaps["right"], heaps["wrong"], odd


def _judgement(run: Path) -> Judgement:
    from deskcert.scoring import judge

    return judge((json.loads(line) for line in (run / "ledger.jsonl").read_bytes().splitlines()), word="complete")


def _judged(run: Path) -> str:
    return str(_judgement(run).outcome.value)


def _coverage(seed: str, units: int) -> Outcome:
    outcome = Outcome(units)
    with tempfile.TemporaryDirectory(prefix="deskcert-noisy-") as folder:
        right, wrong, odd = _real_runs(Path(folder))
        outcome.failures += odd
        if not right or not wrong:
            outcome.failures.append(f"{seed}: only one heap: {len(right)} right, {len(wrong)} wrong")
            return outcome
        inside = covered(right, wrong, Random(seed), units)
    outcome.counts |= {"real_runs": len(right) + len(wrong), "suites": units, "covered": inside}
    if inside < units * 0.93:
        outcome.failures.append(f"{seed}: {inside} of {units} intervals hold {RATE}")
    return outcome


def _folders(place: Path, count: int) -> None:
    """Runs with a finding in every third, written through the real ledger."""
    sys.path.insert(0, str(ROOT / "tests" / "scoring"))
    from scoring_runs import Suite
    from scoring_talk import GOOD, claim, end, look, oracle

    bad = (look(), claim("failed"), oracle(holds=False), end())
    suite = Suite(place, trials=1)
    for number in range(count):
        # No plan: a campaign's own would name all 10,000 in each of them.
        suite.run(*(GOOD if number % 3 else bad), scenario=f"orders-{number:05d}", start_more={"plan": []})


_PROGRAM = """
import json, resource, sys
from pathlib import Path
from deskcert.scoring import score
from deskcert_ledger import ProjectKey
folders = sorted(Path(sys.argv[1], "runs").iterdir())[: int(sys.argv[2])]
key = ProjectKey.load_or_create(Path(sys.argv[1], "key", "key"))
verdict = score(folders, [key.vkey])
told = verdict.as_json()["totals"]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([told["planned"], told["by_outcome"]["inconclusive"], peak]))
"""


def growth_of(count: int) -> tuple[int, int, int]:
    """`growth` over so many fresh folders."""
    # In memory: what the disk takes to sync 10,000 ledgers is not the question.
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="deskcert-memory-", dir=base) as folder:
        _folders(Path(folder), count)
        return growth(Path(folder), count)


def growth(place: Path, count: int) -> tuple[int, int, int]:
    """(bytes a folder, peak of a tenth in KiB, peak of all in KiB)."""
    peaks = []
    for number in (count // 10, count):
        command = [sys.executable, "-c", _PROGRAM, str(place), str(number)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        planned, inconclusive, peak = json.loads(done.stdout)
        if (planned, inconclusive) != (number, 0):
            raise RuntimeError(f"{planned} of {number} were scored, {inconclusive} inconclusive")
        peaks.append(peak)
    return max(0, peaks[1] - peaks[0]) * 1024 // (count - count // 10), peaks[0], peaks[1]


def _memory(seed: str, units: int) -> Outcome:  # noqa: ARG001 - nothing is left to chance
    outcome = Outcome(units)
    each, tenth, whole = growth_of(units)
    outcome.counts |= {"max_bytes_a_folder": each, "max_peak_kib_of_a_tenth": tenth, "max_peak_kib": whole}
    if each > _MOST_BYTES:
        outcome.failures.append(f"{each} bytes a folder: more than {_MOST_BYTES}")
    return outcome


PARTS: Sequence[Part] = [
    Part("coverage", goal=1_000, task=1_000, work=_coverage, workers=1),
    Part("memory", goal=10_000, task=10_000, work=_memory, workers=1),
]
