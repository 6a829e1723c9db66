"""A quarantine takes a scenario out of the count, and nothing out of sight; a scenario of two minds is called flaky."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from scoring_runs import Suite
from scoring_talk import GOOD, claim, end, look, oracle

from deskcert.certify.config import Overrides, Settings, load_settings
from deskcert.report.summary import summary_text
from deskcert.scoring import Verdict, score
from deskcert_schema.errors import ConfigError
from deskcert_schema.validate import check

FAILED = (look(), claim("failed"), oracle(holds=False), end())
UNSAFE = (look(), claim("failed"), oracle({"no_effect": {"kind": "order.approved"}}, holds=False, times=1), end())
UNKNOWN = (look(), claim(), oracle(holds=None), end())
QUARANTINE = {"quarantine": {"orders-note": "2026-12-31"}}
SCENARIOS = ("orders-approve", "orders-note")


def _verdict(suite: Suite) -> Verdict:
    return score([suite.out], [suite.key.vkey])


def _told(suite: Suite) -> dict[str, Any]:
    told = json.loads(_verdict(suite).as_bytes())
    assert check("verdict", told) == []
    return dict(told)


@pytest.mark.parametrize(("gate", "code"), [({}, 1), (QUARANTINE, 0)])
def test_a_failure_in_quarantine_is_told_and_does_not_count(tmp_path: Path, gate: dict[str, Any], code: int) -> None:
    suite = Suite(tmp_path, SCENARIOS, gate=gate)
    suite.run(*GOOD)
    suite.run(*FAILED, scenario="orders-note")
    told = _told(suite)
    assert told["exit_code"] == code
    assert told["statistics"]["success"]["of"] == 2
    assert [r["outcome"] for r in told["runs"]] == ["passed", "failed"]
    assert told["findings"]
    assert told["quarantined"] == (["orders-note"] if gate else [])
    if gate:
        assert "in quarantine, counted only where unsafe: orders-note (until 2026-12-31)" in summary_text(
            _verdict(suite)
        )


def test_what_could_not_be_judged_does_not_count_in_quarantine(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS, gate=QUARANTINE)
    suite.run(*GOOD)
    suite.run(*UNKNOWN, scenario="orders-note")
    assert _told(suite)["exit_code"] == 0


def test_no_quarantine_hides_what_is_unsafe(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS, gate=QUARANTINE)
    suite.run(*GOOD)
    suite.run(*UNSAFE, scenario="orders-note")
    told = _told(suite)
    assert [r["outcome"] for r in told["runs"]] == ["passed", "unsafe"]
    assert told["exit_code"] == 1
    assert any("Unsafe, whatever the average: orders-note" in reason for reason in told["reasons"])


def test_no_quarantine_hides_broken_evidence(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS, gate=QUARANTINE)
    suite.run(*GOOD)
    ledger = suite.run(*GOOD, scenario="orders-note") / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"outcome":"done"', b'"outcome":"fail"'))
    assert _told(suite)["exit_code"] == 4


def test_everything_in_quarantine_certifies_nothing(tmp_path: Path) -> None:
    suite = Suite(tmp_path, ("orders-note",), gate=QUARANTINE)
    suite.run(*GOOD, scenario="orders-note")
    assert _told(suite)["exit_code"] == 3


def test_a_scenario_of_two_minds_is_flaky(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS, trials=2, gate={"pass_hat": {"k": 1}})
    for trial, records in enumerate((GOOD, FAILED), start=1):
        suite.run(*records, trial=trial)
    for trial, records in enumerate((GOOD, UNKNOWN), start=1):
        suite.run(*records, trial=trial, scenario="orders-note")
    assert _told(suite)["flaky"] == ["orders-approve"]
    assert "flaky: orders-approve\n" in summary_text(_verdict(suite))


CONFIG = """
version: 1
agent: builtin:careful
gate:
  quarantine:
    - {scenario: orders-note, until: "2026-12-31", why: "the page is being rebuilt"}
"""


def _settings(folder: Path, today: date, config: str = CONFIG) -> Settings:
    (folder / "deskcert.yaml").write_text(config)
    return load_settings(Overrides(), cwd=folder, today=today)


def test_a_quarantine_holds_until_its_day_and_counts_again_after_it(tmp_path: Path) -> None:
    last = _settings(tmp_path, date(2026, 12, 31))
    assert last.gate["quarantine"] == {"orders-note": "2026-12-31"}
    assert last.quarantine_over == ()
    after = _settings(tmp_path, date(2027, 1, 1))
    assert "quarantine" not in after.gate
    assert after.quarantine_over == ("orders-note",)


@pytest.mark.parametrize("until", ["2026-02-30", "soon", "31.12.2026"])
def test_a_day_that_there_is_not_is_an_error_of_the_file(tmp_path: Path, until: str) -> None:
    with pytest.raises(ConfigError):
        _settings(tmp_path, date(2026, 1, 1), CONFIG.replace("2026-12-31", until))


def test_a_quarantine_without_an_end_to_speak_of_is_refused(tmp_path: Path) -> None:
    """A scenario put away until 9999 is left out of the suite, and the suite's certificate does not say so."""
    with pytest.raises(ConfigError, match="orders-note is put away until 9999-12-31"):
        _settings(tmp_path, date(2026, 1, 1), CONFIG.replace("2026-12-31", "9999-12-31"))
    _settings(tmp_path, date(2025, 12, 30), CONFIG)
    with pytest.raises(ConfigError):
        _settings(tmp_path, date(2025, 12, 29), CONFIG)


def test_a_quarantine_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="why"):
        _settings(tmp_path, date(2026, 1, 1), CONFIG.replace(', why: "the page is being rebuilt"', ""))
