"""A run that was cut short is done again, and who relies on the certificate is told: interrupting may be choosing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from scoring_runs import Suite
from scoring_talk import GOOD, end, look

from deskcert.certify.resume import Earlier, earlier_runs
from deskcert.certify.suite import Planned
from deskcert.certify.suite_certificate import suite_statement
from deskcert.scoring import score
from deskcert.scoring.evidence import read_run
from deskcert.scoring.plan import Charter

CUT = (look(), end("interrupted"))
SCENARIOS = ("orders-approve", "orders-note")


def _resumed(suite: Suite, like: Path) -> Earlier:
    charter = read_run(like, (suite.key.verifier,))[1]
    assert charter is not None
    told: Charter = charter
    plan = [cast(Planned, SimpleNamespace(scenario=SimpleNamespace(id=s), trial=1)) for s in SCENARIOS]
    return earlier_runs(suite.out, plan, lambda _: told, suite.key, lambda _: None)


def _again(suite: Suite, earlier: Earlier, *records: Any) -> Path:
    """`Suite` gives a run's folder the same name each time; deskcert does not."""
    return suite.run(*records, scenario="orders-note", start_more={"set_aside": [dict(s) for s in earlier.set_aside]})


def test_a_run_cut_short_time_after_time_is_named_each_time(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    kept = suite.run(*GOOD)
    names = []
    earlier = Earlier()
    for number in range(3):
        cut = _again(suite, earlier, *CUT)
        names.append(f"{cut.name[:-1]}{number}")
        cut.rename(cut.with_name(names[-1]))
        earlier = _resumed(suite, kept)
        assert earlier.done == {("orders-approve", 1)}
        assert len(earlier.set_aside) == number + 1
        assert (tmp_path / "set_aside" / names[-1] / "ledger.jsonl").exists()
    last = _again(suite, earlier, *GOOD)
    verdict = score([kept, last], [suite.key.vkey])
    assert verdict.certified
    statements = suite_statement(verdict, [kept, last])
    assert statements is not None
    told = [line for line in statements[0].predicate["not_covered"] if "set aside and run again" in line]
    assert len(told) == 1
    assert last.name in told[0]  # their own name, which in this test all have in common


def test_a_certificate_of_runs_that_were_never_cut_short_says_nothing_of_it(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    folders = [suite.run(*GOOD, scenario=s) for s in SCENARIOS]
    statements = suite_statement(score(folders, [suite.key.vkey]), folders)
    assert statements is not None
    assert not any("set aside" in line for line in statements[0].predicate["not_covered"])
