"""What a suite permits: headless, trusted keys, or a person's pointer. It is in every run, in the certificate, and it
decides."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from e2e_campaigns import Certify, of_kind, records, run_deskcert

from deskcert.scoring.plan import Charter
from scripts.evidence_mutants import unbroken

pytestmark = pytest.mark.web
HEADED = ("--agent", "builtin:careful", "--suite", "builtin:headed")


def environments(file: Path) -> list[dict[str, Any]]:
    payloads = [json.loads(b64decode(json.loads(line)["payload"])) for line in file.read_text().splitlines()]
    return [p["predicate"]["environment"] for p in payloads if "environment" in p["predicate"]]


def test_what_only_a_person_can_do_is_done_once_and_the_certificate_names_the_mode(certify: Certify) -> None:
    campaign = certify(*HEADED)
    assert campaign.exit_code == 0, campaign.stderr
    (run,) = campaign.runs
    assert [(e["kind"], e["id"]) for e in campaign.effects_of(run)] == [("order.shipped", 1007)]
    start, intents = records(run)[0], of_kind(run, "action.intent")
    assert (start["mode"], {i["mode"] for i in intents}) == ("headed", {"headed"})
    clicked = next(r for r in of_kind(run, "action.result") if r["of"] == intents[0]["seq"])
    assert (clicked["delivery"], intents[0]["command"]) == ("delivered_unverified", "click")
    assert [e["mode"] for e in environments(campaign.out / "suite.intoto.jsonl")] == ["headed"]
    assert [e["mode"] for e in environments(run / "run.intoto.jsonl")] == ["headed"]
    assert (campaign.out / "summary.txt").read_text().splitlines()[0].endswith(" · mode headed")
    number, alive = unbroken(run, campaign.out / "app" / run.name)
    assert (number > 0, alive) == (True, [])
    again = run_deskcert("replay", "--live", str(run), cwd=campaign.cwd)
    assert again.returncode == 0, again.stdout


def test_without_the_permission_it_is_not_done_and_nothing_is_certified(certify: Certify) -> None:
    campaign = certify(*HEADED, "--mode", "headless")
    assert (campaign.exit_code, [records(run)[0]["mode"] for run in campaign.runs]) == (1, ["headless"])
    assert [r["outcome"] for r in campaign.verdict["runs"]] == ["failed"]
    assert [campaign.effects_of(run) for run in campaign.runs] == [[]]
    assert [e["mode"] for e in environments(campaign.out / "suite.intoto.jsonl")] == ["headless"], "of a failure, too"


def test_runs_under_two_permissions_are_no_parts_of_one_certification(certify: Certify) -> None:
    charter = Charter.read(records(certify(*HEADED).runs[0])[0])
    assert charter.difference(charter) is None
    assert charter.difference(replace(charter, mode="headless")) == "mode"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--suite", "builtin:desktop", "--mode", "headed"), "--mode is about pages"),
        (("--suite", "builtin:headed", "--suite", "builtin:core"), "permit different modes"),
        (("--suite", "own"), "own/suite.yaml:4:"),
        (("--suite", "desk"), "desk/suite.yaml:1: mode: is about pages"),
    ],
)
def test_a_mode_that_is_none_is_refused_before_the_first_run(tmp_path: Path, asked: tuple[str, ...], said: str) -> None:
    for name, app, mode in (("own", "fixture", "head"), ("desk", "desktop", "headed")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "suite.yaml").write_text(f"version: 1\nname: {name}\napp: {app}\nmode: {mode}\n")
    done = run_deskcert("ci", "--agent", "builtin:careful", "--out", "out", *asked, cwd=tmp_path)
    assert (done.returncode, (tmp_path / "out" / "runs").exists()) == (2, False), done.stderr
    assert said in done.stderr
