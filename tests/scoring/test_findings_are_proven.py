"""The checker that reads nothing but a finding's own records, without the rules' code, agrees with the rules."""

from __future__ import annotations

from typing import Any

import pytest
from scoring_talk import Rec, talk
from test_each_rule_speaks_and_stays_silent import CASES
from test_fine_points_of_each_rule import FINE

from deskcert.scoring import RULES
from deskcert.scoring.facts import RunFacts
from scripts.matrix_proofs import PROOFS, unproven

SPEAKING = [(rule, recs, s) for rule, _, triggers, recs, s in CASES if triggers]
SPEAKING += [(rule, recs, s) for rule, _, recs, s, seqs in FINE if seqs]


def test_every_rule_has_a_proof_of_its_own() -> None:
    assert set(PROOFS) == {rule.about.id for rule in RULES}


@pytest.mark.parametrize("rule", sorted(PROOFS.keys() - {"DC701"}))
def test_what_a_rule_says_of_a_conversation_is_shown_by_the_records_it_names(rule: str) -> None:
    told = [_unshown(rule, recs, s) for of, recs, s in SPEAKING if of == rule]
    assert told
    assert [unshown for unshown in told if unshown] == []


def _unshown(rule: str, records: tuple[Rec, ...], scenario: dict[str, Any]) -> list[str]:
    machine, spoken = next(r for r in RULES if r.about.id == rule)(), talk(*records, **scenario)
    machine.start(RunFacts.read(spoken[0], word="complete"))
    for record in spoken:
        machine.feed(record)
    findings = [{"rule": rule, "run": "r", "seqs": list(f.seqs), "text": f.text} for f in machine.findings()]
    assert findings
    return unproven(findings, spoken)
