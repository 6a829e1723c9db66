"""Each defect agent on scenarios written for it, against the declared matrix; the whole of it is `make evidence`.

What is expected is declared in `matrix.yaml` of the application under test, from what the scenarios are about. Nothing
here, and no command, writes that file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from e2e_campaigns import Campaign, Certify, core, records, run_deskcert

from deskcert.scoring import RULES, judge
from deskcert_schema.validate import check
from scripts.evidence_matrix import AGENTS, NULL, expectations, matrix, unmet
from scripts.evidence_mutants import unbroken
from scripts.matrix_proofs import unproven

pytestmark = pytest.mark.web

ON_CORE = ("stale_replayer", "retry_after_timeout", "boundary_prober", "optimist")
"""These are run on the whole of `core`, too, and must be found out there."""


def _campaign(certify: Certify, agent: str) -> Campaign:
    """`careful` on everything, a defect on the scenarios written for it, the null agents on `core`."""
    if agent in NULL:
        return core(certify, agent)
    on = ("--agent", f"builtin:{agent}", "--suite", "builtin:full", "--workers", "4")
    return certify(*on) if agent == "careful" else certify(*on, "--only", ",".join(matrix()[agent]["scenarios"]))


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_declared_is_found_and_nothing_else_is_wrong(certify: Certify, agent: str) -> None:
    """All that is asked of one agent's campaign is asked here: it is run in one process, and only there."""
    campaign = _campaign(certify, agent)
    assert unmet(agent, campaign.verdict, campaign.out) == []
    assert campaign.exit_code == (0 if agent == "careful" else 1), campaign.stderr
    expected, detected = expectations(agent, campaign.verdict)
    assert expected == detected == len(matrix()[agent]["scenarios"] if agent in matrix() else ())
    if agent == "careful":
        _fails_by_each_question_that_is_asked_wrongly(campaign)
    if agent in matrix():
        told = {run.name: records(run) for run in campaign.runs}
        for run, spoken in told.items():
            _is_as_the_schema_says(spoken)
            _rules_do_not_know_who_ran(run, spoken)
        _nothing_else_is_a_proof(campaign, told)
        _is_missed_without_its_rule(agent, campaign, told)


def _fails_by_each_question_that_is_asked_wrongly(careful: Campaign) -> None:
    """Every oracle of every scenario, broken in each way that matters, over what `careful` really left behind."""
    asked = {run.name: unbroken(run, careful.out / "app" / run.name) for run in careful.runs}
    assert [line for _, alive in asked.values() for line in alive] == []
    assert min(number for number, _ in asked.values()) >= 1
    assert len(asked) == careful.verdict["totals"]["planned"] >= 80


def _is_as_the_schema_says(spoken: Sequence[Mapping[str, Any]]) -> None:
    assert [p for record in spoken for p in check("record", record)] == []


def _rules_do_not_know_who_ran(run: str, spoken: Sequence[Mapping[str, Any]]) -> None:
    blanked = json.loads(json.dumps(spoken).replace(run, "another-run-t1-000000"))
    blanked[0]["agent"] = {"name": "", "command_digest": "0" * 64, "transport": "jsonl", "deterministic": True}
    assert judge(iter(blanked), word="complete") == judge(iter(spoken), word="complete")


def _nothing_else_is_a_proof(campaign: Campaign, told: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Each finding with its records moved by one: the checker has to say no."""
    assert campaign.verdict["findings"]
    for finding in campaign.verdict["findings"]:
        spoken = told[finding["run"]]
        last = spoken[-1]["seq"]
        other: Mapping[str, Any] = {**finding, "seqs": [(q + 1) % (last + 1) for q in finding["seqs"]]}
        assert unproven([finding], spoken) == []
        if finding["rule"] not in ("DC204", "DC603", "DC605", "DC507", "DC509"):  # the next one is an oracle's too
            assert unproven([other], spoken), finding


def _is_missed_without_its_rule(
    agent: str, campaign: Campaign, told: Mapping[str, Sequence[Mapping[str, Any]]]
) -> None:
    """The same records, judged by all rules but the one that was written for this defect: the matrix fails."""
    blind = tuple(rule for rule in RULES if rule.about.id != matrix()[agent]["rule"])
    findings = [
        {"run": run, "rule": f.about.id, "seqs": list(f.seqs), "text": f.text}
        for run, spoken in told.items()
        for f in judge(iter(spoken), word="complete", rules=blind).findings
    ]
    wrong = unmet(agent, {**campaign.verdict, "findings": findings}, campaign.out)
    assert any("is missing in" in w for w in wrong)


@pytest.mark.parametrize("agent", ON_CORE)
def test_on_core_it_is_found_as_well(certify: Certify, agent: str) -> None:
    campaign = core(certify, agent)
    assert unmet(agent, campaign.verdict, campaign.out) == []
    assert campaign.exit_code == 1


def test_the_plan_can_be_listed_without_running_it(tmp_path: Path) -> None:
    asked = ("ci", "--list", "--agent", "builtin:careful", "--suite", "builtin:full", "--tag", "budget")
    done = run_deskcert(*asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[:-1]] == ["budget-inbox", "budget-orders"]
    assert "nothing was run" in done.stdout
    told = json.loads(run_deskcert(*asked, "--json", cwd=tmp_path).stdout)
    assert [t["attribution"] for t in told] == ["goal_not_met", "goal_not_met"]
    wrong = run_deskcert(*asked[:-1], "bugdet", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "there are the tags:" in wrong.stderr
    assert [p.name for p in tmp_path.iterdir()] == []


@pytest.mark.parametrize(("proxy", "outcome"), [("required", "passed"), ("off", "unsafe")])
def test_what_only_the_network_forbids_is_stopped_there_and_nowhere_else(
    certify: Certify, proxy: str, outcome: str
) -> None:
    asked = ("--suite", "builtin:network", "--only", "network-ship", "--proxy", proxy)
    campaign = certify("--agent", "builtin:careful", *asked)
    assert [r["outcome"] for r in campaign.verdict["runs"]] == [outcome]
    (run,) = campaign.runs
    if proxy == "required":
        number, alive = unbroken(run, campaign.out / "app" / run.name)
        assert (number > 0, alive) == (True, [])


def test_nothing_done_is_nothing_passed(certify: Certify) -> None:
    """A null agent, asked everything that `careful` was asked, has an answer that holds only where nothing was to be
    done; and where nothing was to be done it did not even look."""
    for agent in NULL:
        verdict = core(certify, agent).verdict
        assert verdict["certified"] is False
        assert {r["outcome"] for r in verdict["runs"]} & {"passed", "refused_correctly"} == set()
