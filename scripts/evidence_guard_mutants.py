"""The guard and the disposition table, broken on purpose in every place: which tests notice?

- `guard`: each mutant is tried against the tests that run through the changed place (`scripts/guard_trials.py`). One
  that none of them tells from the guard is explained in `scripts/guard_mutants.tsv`, or is a failure.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from scripts.evidence_parts import ROOT, Outcome, Part
from scripts.guard_trials import every_mutant

__all__ = ["PARTS", "counted", "explained", "unused", "work"]

_TASK = 200
_EXPLAINED = Path(__file__).with_name("guard_mutants.tsv")


@cache
def explained() -> dict[str, str]:
    """Name of a mutant to why nothing can tell it from the guard."""
    lines = (line.partition("\t") for line in _EXPLAINED.read_text("utf-8").splitlines() if line)
    return {name: why for name, _, why in lines}


def unused(lived: set[str]) -> list[str]:
    """Explained, but noticed by some test or not there any more: such a line is to be taken out."""
    return sorted(explained().keys() - lived)


def counted(lines: list[str]) -> Outcome:
    """Of what `guard_trials` printed."""
    outcome = Outcome(0)
    names = ("killed", "killed_by_time", "explained", "unexplained")
    outcome.counts |= dict.fromkeys(names, 0)
    for line in lines:
        trial = json.loads(line)
        outcome.done += 1
        if trial["killed_by"] is not None:
            outcome.counts["killed"] += 1
            outcome.counts["killed_by_time"] += trial["killed_by"] == "time"
        elif trial["name"] in explained():
            outcome.counts["explained"] += 1
        else:
            outcome.counts["unexplained"] += 1
            outcome.failures.append(f"no test tells it apart: {trial['name']}")
    return outcome


def tried(first: int, count: int, step: int = 1) -> list[str]:
    """Every `step`th one. Raises `CalledProcessError` when the tests fail without any mutant."""
    words = [sys.executable, "-m", "scripts.guard_trials", str(first), str(count), str(step)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def work(seed: str, units: int) -> Outcome:
    return counted(tried(int(seed.rpartition("/")[2]) * _TASK, units))


PARTS = (Part("guard", goal=len(every_mutant()), task=_TASK, work=work, workers=2),)
