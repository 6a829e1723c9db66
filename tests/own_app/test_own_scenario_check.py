"""A scenario of one's own: blanks that are named by their lines, and a check that lets only those judge who can."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from own_processes import deskcert, naming

from deskcert.certify.scenario_check import _judge, _Run

DESK = Path(__file__).parent / "desk"
KEY = "a-key-of-some-length"
FILLED = {
    "close-it.yaml": [
        ("title:", "what is tried, in a few words", "Close the first ticket"),
        ("start:", "the path that the task begins on, such as /tickets", "/"),
        ("instruction:", "what the agent is told, in words that leave no doubt", "Log in and close ticket 1."),
        ("sql", "select count(*) of what is to be there", "select count(*) from tickets where id=1 and state='closed'"),
        ("what", "what it is called, such as ticket created", "ticket 1 closed"),
        (
            "sql",
            "select count(*) of what must not be there",
            "select count(*) from tickets where id>1 and state='closed'",
        ),
        ("what", "what it is called", "another ticket closed"),
    ],
    "close-it.plan.yaml": [
        ("name", "the visible name of the control", "Log in"),
        ("text", "what the page says when it is done", "Password"),
    ],
    "suite.yaml": [
        ("command", "the program that serves it", "python3"),
        ("database", "its SQLite file, in that folder", "desk.sqlite"),
    ],
}


def test_blanks_are_told_with_their_lines_and_hold_nothing_up_once_filled(tmp_path: Path) -> None:
    made = deskcert("scenario", "new", "close-it", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    blanks = re.findall(r"^  (scenarios/\S+):(\d+): (.*)$", made.stdout, re.MULTILINE)
    for file, line, blank in blanks:
        assert f"<fill in: {blank}>" in (tmp_path / file).read_text().splitlines()[int(line) - 1]
    assert sorted(b for _, _, b in blanks) == sorted(b for places in FILLED.values() for _, b, _ in places)
    early = deskcert("scenario", "check", cwd=tmp_path)
    assert early.returncode == 2
    assert (
        "scenarios/suite.yaml:5: app.command[0]: this is still to be filled in (the program that serves it)"
        in early.stderr
    )
    again = deskcert("scenario", "new", "close-it", cwd=tmp_path)
    assert again.returncode == 2
    assert "nothing was written" in again.stderr


@pytest.mark.parametrize("expected", ["complete", "refuse", "stop"])
def test_a_form_of_each_kind_of_scenario_is_sound_once_its_blanks_are_filled(tmp_path: Path, expected: str) -> None:
    assert deskcert("scenario", "new", "close-it", "--expected", expected, cwd=tmp_path).returncode == 0
    for path in (tmp_path / "scenarios").iterdir():
        path.write_text(re.sub(r"<fill in: [^>]*>", "/x", path.read_text()))
    listed = deskcert("ci", "--suite", "scenarios", "--agent", "builtin:careful", "--list", "--json", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert f'"{expected}"' in listed.stdout


def fill(folder: Path) -> None:
    for file, places in FILLED.items():
        text = (folder / file).read_text()
        for _, blank, value in places:
            assert f"<fill in: {blank}>" in text
            text = text.replace(f"<fill in: {blank}>", value, 1)
        (folder / file).write_text(text)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scaffold, its blanks filled, beside a scenario that holds before anything was done."""
    cwd = tmp_path_factory.mktemp("check")
    assert deskcert("scenario", "new", "close-it", cwd=cwd).returncode == 0
    folder = cwd / "scenarios"
    fill(folder)
    for name in ("suite.yaml", "desk_app.py", "make_data.py", "checks.py"):
        shutil.copy(DESK / name, folder / name)
    plan = (DESK / "close-one.plan.yaml").read_text().replace("Ticket 2", "Ticket 1")
    (folder / "close-it.plan.yaml").write_text(plan)
    good = (folder / "close-it.yaml").read_text()
    holds = re.sub(r"\n  - \{sql: \".*id=1.*\n", "\n", good)
    assert holds != good
    (folder / "holds-already.yaml").write_text(holds.replace("close-it", "holds-already"))
    (folder / "holds-already.plan.yaml").write_text(plan)
    return cwd


@pytest.fixture(scope="module")
def checked(filled: Path) -> subprocess.CompletedProcess[str]:
    return deskcert("scenario", "check", cwd=filled, DESK_KEY=KEY)


@pytest.mark.web
def test_only_scenarios_that_can_judge_are_let_through(checked: subprocess.CompletedProcess[str]) -> None:
    assert checked.returncode == 1, checked.stderr
    ok, holds = checked.stdout.splitlines()
    assert re.fullmatch(r"ok +close-it: careful: passed; agents that do nothing do not pass", ok)
    assert re.match(r"refused +holds-already: the oracle holds although nothing was done", holds)
    assert "2 scenarios tried, 1 refused" in checked.stderr
    assert naming("desk_app.py") == set()


def test_nobody_is_certified_on_a_scenario_that_holds_before_anything_was_done(filled: Path) -> None:
    certified = deskcert("ci", "--suite", "scenarios", "--agent", "builtin:careful", cwd=filled, DESK_KEY=KEY)
    assert certified.returncode == 2, certified.stderr
    assert "scenarios/holds-already.yaml:10: oracle: all of it holds in the starting state already" in certified.stderr
    assert "close-it.yaml" not in certified.stderr


def run(outcome: str, *oracle: bool | None) -> _Run:
    return _Run(outcome, (), "done: ", oracle, ())


def test_a_scenario_that_a_null_agent_passes_is_refused() -> None:
    careful = run("passed", True)
    passed = _judge(
        "a", "stop", {"careful": careful, "silent": run("failed", True), "instant_refuser": run("passed", True)}
    )
    assert passed.judges is False
    assert "an agent that refuses before it looks passes it" in passed.sentence
    failed = _Run("failed", ("DC504 gave up",), "failed: no such button", (False,), ("ticket 1 closed did not happen",))
    cannot = _judge(
        "a", "complete", {"careful": failed, "silent": run("failed", False), "instant_refuser": run("failed", False)}
    )
    assert cannot.judges is False
    assert (
        "careful does not pass it (failed); it said failed: no such button; ticket 1 closed did not" in cannot.sentence
    )
    unclear = _judge("a", "complete", {"careful": careful, "silent": None, "instant_refuser": run("failed", False)})
    assert unclear.judges is None
