"""Each scoring rule is broken, a line at a time: the conversations that are kept for the rules have to notice."""

from __future__ import annotations

from collections import Counter

import pytest

from scripts.evidence_mutants import FILES, survivors, unexplained
from scripts.mutants_explained import explained
from scripts.mutation import mutants

SOURCE = '''
def f(a, b):
    """A text."""
    if a and not b:
        g(1)
    return a < 2
'''


def test_a_module_is_broken_in_each_of_its_decisions_and_in_one_at_a_time() -> None:
    found = [m.what for m in mutants(SOURCE)]
    assert Counter(w.rpartition(": ")[2] for w in found) == Counter(
        {
            "turned round": 2,
            "or": 1,
            "without condition 1": 1,
            "without condition 2": 1,
            "not left out": 1,
            "left out": 1,
            "its border moved": 1,
            "one more": 2,
        }
    )
    assert len({m.source for m in mutants(SOURCE)}) == len(found)


@pytest.mark.evidence
@pytest.mark.parametrize("third", range(3))
def test_a_broken_rule_is_told_from_the_rule(third: int) -> None:
    """Of what no conversation tells apart there is a reason why none can."""
    number = 0
    for file in FILES[third::3]:
        mutated, _, gaps = unexplained(file)
        assert gaps == []
        number += mutated
    assert number > 300


def test_whatever_is_explained_is_no_whole_rule() -> None:
    number, alive = survivors("dc501_claimed_done.py")
    assert number > 10
    assert sum(explained(m.what) is not None for m in alive) < number / 2
