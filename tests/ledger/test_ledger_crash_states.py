"""A share of the simulated crashes of `make evidence ONLY=ledger`, with another seed in each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from scripts.evidence_crash import _lines, crash_states, judge, record_run
from scripts.evidence_trace import Step, Trace, crash_state


@pytest.mark.evidence
def test_a_crash_loses_nothing_acknowledged_and_is_never_taken_for_tampering(
    fresh_seed: int, told: Callable[[str], None]
) -> None:
    """About one per cent of the million; a failure names the seed that repeats it."""
    found = crash_states(f"{fresh_seed}/ci", 10_000)
    told(f"crash states: seed {fresh_seed}, {dict(sorted(found.counts.items()))}")
    assert found.failures == []
    assert found.done == 10_000
    assert found.counts["lost_records"] == 0
    assert found.counts["intents_made_unknown"] > 100
    assert found.counts["states_of_a_recovery"] > 1_000


def _without_syncs(trace: Trace) -> Trace:
    return Trace(trace.begin, [step for step in trace.steps if (step.what, step.name) != ("sync", "ledger.jsonl")])


def test_a_ledger_that_did_not_sync_would_be_caught() -> None:
    """The judge can fail: the same run without its `fdatasync` loses records it acknowledged."""
    choose, wrong = Random(1), Counter[str]()
    trace = record_run(choose, "unsynced")
    lines = _lines(trace)
    for _ in range(200):
        state, seqs = crash_state(_without_syncs(trace), len(trace.steps), choose)
        wrong[str(judge(state, lines[: max(seqs) + 1] if seqs else [], Counter()))] += 1
    assert wrong["None"] < 100


def test_what_was_synced_stays_and_what_was_not_may_be_torn() -> None:
    write, sync = Step("write", "ledger.jsonl", b"a" * 2000), Step("sync", "ledger.jsonl")
    trace = Trace(steps=[write, sync, Step("ack"), Step("write", "ledger.jsonl", b"b" * 2000)])
    seen = set()
    for number in range(300):
        state, acknowledged = crash_state(trace, 4, Random(number))
        assert acknowledged == [0]
        assert state["ledger.jsonl"].startswith(b"a" * 2000)
        tail = state["ledger.jsonl"][2000:]
        assert set(tail) <= {0, ord("b")}
        seen.add(("hole" if b"\0" in tail.rstrip(b"\0") else "zeros" if b"\0" in tail else "cut", bool(tail)))
    assert {kind for kind, _ in seen} == {"hole", "zeros", "cut"}
