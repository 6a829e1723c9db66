"""Real processes that are killed: a share of `make evidence ONLY=ledger`, with another seed in each run."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import pytest

from scripts.evidence_kill import kill_recoveries, kill_writers
from scripts.evidence_parts import Outcome


def apart(work: Callable[[str, int], Outcome], seed: str, count: int) -> Outcome:
    """In a process without threads, since it forks."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as pool:
        return pool.submit(work, seed, count).result()


@pytest.mark.evidence
def test_killing_writer_sequencer_and_both_loses_nothing_acknowledged(
    fresh_seed: int, told: Callable[[str], None]
) -> None:
    found = apart(kill_writers, f"{fresh_seed}/ci", 12)
    told(f"killed writers: seed {fresh_seed}, {found.counts}")
    assert found.failures == []
    assert (found.counts["lost_records"], found.counts["dispatches_without_intent"]) == (0, 0)
    assert found.counts["acknowledged_records"] >= 12
    assert {mode: found.counts[f"killed_{mode}"] for mode in ("writer", "sequencer", "both", "alone")} == dict.fromkeys(
        ("writer", "sequencer", "both", "alone"), 3
    )


@pytest.mark.evidence
def test_a_recovery_killed_at_any_of_its_calls_is_recovered(fresh_seed: int, told: Callable[[str], None]) -> None:
    found = apart(kill_recoveries, f"{fresh_seed}/ci", 40)
    told(f"killed recoveries: seed {fresh_seed}, {found.counts}")
    assert found.failures == []
    assert found.counts["killed"] >= 40
    assert found.counts["lost_records"] == 0
