"""`builtin:desktop` as a user runs it: a window on a private desktop, the same agents and rules, the same ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from e2e_campaigns import Campaign, Certify, records, run_deskcert

from deskcert.adapters.linux.desktop_session import lacking
from deskcert.certify.suite import load_suites
from deskcert.scoring import RULES
from deskcert_schema import strict_yaml
from deskcert_schema.validate import check
from scripts.evidence_mutants import unbroken
from scripts.matrix_proofs import unproven

pytestmark = pytest.mark.skipif(bool(lacking(fixture=True)), reason=f"no desktop: {', '.join(map(str, lacking()))}")

MATRIX_FILE = Path(__file__).parents[2] / "fixture_app" / "deskcert_fixture_app" / "desktop_matrix.yaml"
MATRIX: Mapping[str, Any] = strict_yaml.load(MATRIX_FILE.read_text(), name=MATRIX_FILE.name).value["agents"]
IN_CI = ("stale_replayer", "retry_after_timeout", "boundary_prober", "budget_ignorer", "terminal_hammerer")
"""One for each attribution, on one scenario; all of them are in `make evidence ONLY=desktop` (docs/evidence)."""


def _careful(certify: Certify) -> Campaign:
    return certify("--agent", "builtin:careful", "--suite", "builtin:desktop", "--workers", "3")


def test_careful_is_certified_on_the_desktop(certify: Certify) -> None:
    campaign = _careful(certify)
    assert campaign.exit_code == 0, campaign.stdout[-2000:] + campaign.stderr
    assert campaign.verdict["certified"] is True
    assert campaign.verdict["findings"] == []
    assert len(campaign.verdict["runs"]) == 24


def test_every_record_of_a_desktop_run_is_what_its_schema_says(certify: Certify) -> None:
    for run in _careful(certify).runs:
        told = records(run)
        assert [p for record in told for p in check("record", record)] == []
        assert told[0]["desktop"]["adapter"] == "linux"
        assert "browser" not in told[0]


def test_careful_fails_by_each_question_of_the_desktop_that_is_asked_wrongly(certify: Certify) -> None:
    campaign = _careful(certify)
    asked = {run.name: unbroken(run, campaign.out / "app" / run.name) for run in campaign.runs}
    assert [line for _, alive in asked.values() for line in alive] == []
    assert min(number for number, _ in asked.values()) >= 1


def test_desktop_runs_verify_replay_and_report(certify: Certify) -> None:
    campaign = _careful(certify)
    key = json.loads(run_deskcert("key", "show", "--json", cwd=campaign.cwd).stdout)["vkey"]
    for run in campaign.runs[:4]:
        verified = run_deskcert("ledger", "verify", str(run), "--key", key, cwd=campaign.cwd)
        assert verified.returncode == 0, verified.stdout + verified.stderr
    replayed = run_deskcert("replay", str(campaign.out / "runs"), "--key", key, cwd=campaign.cwd)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    reported = run_deskcert("report", str(campaign.out / "runs"), "--key", key, cwd=campaign.cwd)
    assert reported.returncode == 0, reported.stdout + reported.stderr


@pytest.mark.parametrize("agent", IN_CI)
def test_a_defect_agent_is_caught_on_the_desktop_by_the_rule_for_it(certify: Certify, agent: str) -> None:
    declared = MATRIX[agent]
    only = declared["scenarios"][0]
    campaign = certify("--agent", f"builtin:{agent}", "--suite", "builtin:desktop", "--only", only)
    assert campaign.exit_code == 1, campaign.stderr
    (run,) = campaign.verdict["runs"]
    assert run["attribution"] == declared["attribution"]
    assert declared["rule"] in {f["rule"] for f in campaign.verdict["findings"]}
    assert unproven(campaign.verdict["findings"], records(campaign.runs[0])) == []


def test_each_attribution_is_tried() -> None:
    assert {MATRIX[agent]["attribution"] for agent in IN_CI} == {
        declared["attribution"] for declared in MATRIX.values()
    }


@pytest.mark.parametrize("agent", sorted(MATRIX))
def test_the_desktop_matrix_follows_from_what_the_scenarios_are_about(agent: str) -> None:
    suite = load_suites(["builtin:desktop"], base=Path.cwd(), policy=None)
    declared = MATRIX[agent]
    assert set(declared["scenarios"]) <= {s.id for s in suite.scenarios if declared["tag"] in s.tags}
    about = {rule.about.id: rule.about for rule in RULES}[declared["rule"]]
    assert (about.written_for, about.attribution.value) == (agent, declared["attribution"])
