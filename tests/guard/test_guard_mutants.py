"""One in a hundred of the mutants of `make evidence ONLY=guard_mutants`: a test notices each, or it is explained."""

from __future__ import annotations

import json
import random
import secrets

import pytest

from scripts.evidence_guard_mutants import PARTS, counted, explained, tried, unused
from scripts.guard_trials import every_mutant

GOAL = PARTS[0].goal


@pytest.mark.evidence
def test_broken_lines_of_the_guard_are_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    seed = secrets.randbits(32)
    first = random.Random(seed).randrange(100)
    with capsys.disabled():
        print(f"\nguard mutants: seed {seed}, every hundredth from number {first}")
    # All over the guard: those beside each other live or die together, so a stretch says little about the rest.
    found = counted(tried(first, GOAL // 100, 100))
    assert found.done == GOAL // 100
    # Some 91 of 100 are noticed so far: of 40 a quarter unnoticed is no chance but a gap that was torn open. With the
    # last of them noticed or explained this becomes `== []`.
    assert len(found.failures) <= found.done // 4, found.failures


def test_every_explanation_is_of_a_mutant_that_there_is() -> None:
    assert explained().keys() <= {mutant.name for mutant in every_mutant()}
    assert all(len(why) > 20 for why in explained().values())


def test_what_lives_without_a_reason_is_a_failure_and_a_reason_that_is_not_needed_is_told() -> None:
    alive = json.dumps({"name": "policy.decide: nothing like it", "killed_by": None, "tried": 3})
    dead = json.dumps({"name": "policy.decide: nothing like it", "killed_by": "time", "tried": 3})
    assert counted([alive]).failures == ["no test tells it apart: policy.decide: nothing like it"]
    assert counted([dead]).failures == []
    assert counted([dead]).counts["killed_by_time"] == 1
    assert unused(set()) == sorted(explained())
    assert unused(set(explained())) == []
