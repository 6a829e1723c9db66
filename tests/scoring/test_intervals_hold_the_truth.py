"""A share of what `make evidence ONLY=noisy` measures: intervals that hold the truth, memory that does not grow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from scoring_runs import Suite
from scoring_talk import GOOD, claim, end, look, oracle

from deskcert.scoring.evidence import read_run
from scripts import evidence_noisy
from scripts.evidence_noisy import covered

FAILED = (look(), claim("failed"), oracle(holds=False), end())


def test_93_in_100_intervals_hold_the_true_rate_and_a_wrong_rate_they_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = Suite(tmp_path)
    right = read_run(suite.run(*GOOD), [suite.key.vkey])[0]
    wrong = read_run(suite.run(*FAILED, trial=2), [suite.key.vkey])[0]
    assert covered([right], [wrong], Random(1), 200) >= 186
    # Runs that are not what they are taken for: the intervals no longer hold it.
    assert covered([right], [replace(right)], Random(1), 50) == 0
    monkeypatch.setattr(evidence_noisy, "RUNS", 10)
    assert covered([right], [wrong], Random(1), 200) >= 180


@pytest.mark.evidence
def test_scoring_many_folders_takes_no_more_memory_than_its_answer() -> None:
    each, _, _ = evidence_noisy.growth_of(100)
    assert each < 60_000  # of so few the allocator's own steps are most
