"""An interrupted certification goes on as the same one, or says clearly why not; failures enough end one early."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from e2e_campaigns import Certify, records, run_deskcert

pytestmark = pytest.mark.web

ARGUMENTS = ("--agent", "builtin:careful", "--suite", "builtin:core", "--only", "orders-re*", "--workers", "3")


@pytest.fixture
def interrupted(certify: Certify, tmp_path: Path) -> Path:
    """As if deskcert had been ended after two of three runs: of the third there is nothing, and no verdict either."""
    whole = certify(*ARGUMENTS)
    assert whole.exit_code == 0, whole.stderr
    shutil.copytree(whole.cwd, tmp_path / "copy")
    cwd = tmp_path / "copy"
    shutil.rmtree(cwd / whole.run_of("orders-rerender").relative_to(whole.cwd))
    for path in (cwd / "out").iterdir():
        if path.is_file() and path.name != ".lock":
            path.unlink()
    return cwd


def test_the_certification_goes_on_and_is_scored_as_one(interrupted: Path) -> None:
    before = {p.name for p in (interrupted / "out" / "runs").iterdir()}
    done = run_deskcert("ci", "--json", *ARGUMENTS, "--out", "out", "--resume", cwd=interrupted)
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    runs = [interrupted / "out" / "runs" / r["run"] for r in verdict["runs"]]
    assert len(runs) == verdict["totals"]["planned"]
    assert before < {r.name for r in runs}
    assert len({records(r)[0]["certification"] for r in runs}) == 1
    again = run_deskcert("score", "out", "--json", cwd=interrupted)
    assert again.stdout == done.stdout


def test_without_the_word_for_it_nothing_is_mixed(interrupted: Path) -> None:
    done = run_deskcert("ci", *ARGUMENTS, "--out", "out", cwd=interrupted)
    assert done.returncode == 2
    assert "--resume" in done.stderr
    assert not (interrupted / "out" / "verdict.json").exists()


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (("--seed", "7"), "plan"),
        (("--agent", "builtin:optimist"), "agent"),
        (("--suite", "builtin:smoke"), "suite"),
        (("--trials", "2"), "number of trials"),
    ],
)
def test_another_certification_does_not_go_on_with_this_one(
    interrupted: Path, more: tuple[str, str], what: str
) -> None:
    arguments = list(ARGUMENTS)
    if more[0] in arguments:
        arguments[arguments.index(more[0]) + 1] = more[1]
    else:
        arguments += more
    if "builtin:smoke" in more:
        arguments[arguments.index("--only") + 1] = "orders-*"
    done = run_deskcert("ci", *arguments, "--out", "out", "--resume", cwd=interrupted)
    assert done.returncode == 2, done.stderr
    assert f"differ in {what}" in done.stderr or "differ in gate" in done.stderr


def test_there_is_nothing_to_go_on_with_in_an_empty_folder(tmp_path: Path) -> None:
    for more in (("--out", "out", "--resume"), ("--resume",)):
        done = run_deskcert("ci", *ARGUMENTS, *more, cwd=tmp_path)
        assert done.returncode == 2
        assert "go on with" in done.stderr


def test_a_finished_certification_is_not_gone_on_with(certify: Certify) -> None:
    whole = certify(*ARGUMENTS)
    done = run_deskcert("ci", *ARGUMENTS, "--out", "out", "--resume", cwd=whole.cwd)
    assert done.returncode == 2
    assert "finished" in done.stderr


def test_after_so_many_failures_no_further_run_is_started(certify: Certify) -> None:
    asked = ("--agent", "builtin:silent", "--suite", "builtin:core", "--max-failures", "2")
    campaign = certify(*asked)
    assert campaign.exit_code == 1
    outcomes = [r["outcome"] for r in campaign.verdict["runs"]]
    assert len(outcomes) == 24
    assert outcomes.count("not_run") == 22
    assert len(campaign.runs) == 2
    assert "no further run: 2 failed" in campaign.stderr
