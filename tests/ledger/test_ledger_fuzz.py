"""Seconds of what `make evidence ONLY=fuzz` does for ten minutes: other parsers at each run."""

from __future__ import annotations

import random

import pytest

from scripts.evidence_fuzz import fuzz
from scripts.fuzz_ledger import TARGETS


@pytest.mark.evidence
def test_parsers_under_a_coverage_guided_fuzzer(fresh_seed: int) -> None:
    pytest.importorskip("atheris")
    for target in random.Random(fresh_seed).sample(TARGETS, 3):
        outcome = fuzz(target, f"{fresh_seed}", 2)
        assert outcome.failures == []
        assert outcome.counts["inputs"] > 100, target
        assert outcome.counts["max_branches_reached"] > 20, target
