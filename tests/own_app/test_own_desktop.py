"""A user's own desktop program, here a text editor from Debian's packages: started on a private desktop for each run,
judged by its file, and nothing of it is left."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from own_processes import deskcert, naming, records, wait_gone

from deskcert.adapters.linux.desktop_session import lacking
from deskcert.certify.own_preflight import try_own
from deskcert.certify.suite import load_suites
from deskcert_schema.errors import ConfigError

LACKS = [*map(str, lacking()), *(p for p in ("mousepad", "zenity") if shutil.which(p) is None)]
pytestmark = pytest.mark.skipif(bool(LACKS), reason=f"no desktop: {', '.join(LACKS)}")

MOUSEPAD = Path(__file__).parent / "mousepad"
BEFORE, AFTER = "Dear Ada,\n", "Dear Grace, the engine works."
CLIENT = Path(__file__).parents[2] / "docs" / "clients" / "client.py"
LAUNCHER = """
import json, sys
from client import Desk
desk = Desk()
told = [desk.ask("launch", app="other"), desk.ask("launch", app="notice", timeout_ms=20000), desk.ask("list-windows"),
        desk.ask("close-app", app="zenity", force=True, timeout_ms=20000)]
open(sys.argv[1], "w").write(json.dumps({"task": desk.task, "told": told}))
desk.ask("finish", outcome="failed")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(MOUSEPAD, tmp_path / "letters")
    return tmp_path


def change(project: Path, file: str, old: str, new: str) -> None:
    path = project / "letters" / file
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def certify(project: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any], list[Path]]:
    done = deskcert("ci", "--suite", "letters", "--json", "--out", "out", *arguments, cwd=project)
    assert done.stdout, done.stderr
    return done, json.loads(done.stdout), sorted((project / "out" / "runs").iterdir())


def test_the_letters_of_the_documentation_can_judge(tmp_path: Path) -> None:
    """Nothing but what docs/desktop.md shows, typed off it."""
    page = (Path(__file__).parents[2] / "docs" / "desktop.md").read_text("utf-8")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter.txt").write_text(BEFORE)
    shown = re.findall(r"```yaml\n# ([a-z.-]+\.yaml)(?:: [^\n]*)?\n(.*?)```", page, re.DOTALL)
    assert [name for name, _ in shown] == ["suite.yaml", "policy.yaml", "write-letter.yaml", "write-letter.plan.yaml"]
    for name, text in shown:
        (tmp_path / "letters" / name).write_text(text)
    done = deskcert("scenario", "check", "letters", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_careful_is_certified_on_a_program_that_knows_nothing_of_deskcert(project: Path) -> None:
    done, verdict, runs = certify(project, "--agent", "builtin:careful")
    assert (done.returncode, verdict["certified"]) == (0, True), done.stdout + done.stderr
    assert [(project / "out" / "app" / run.name / "letter.txt").read_text() for run in runs] == [AFTER, AFTER]
    started = [records(run)[0] for run in runs]
    assert [(s["desktop"]["adapter"], s["desktop"]["private"], "browser" in s) for s in started] == [
        ("linux", True, False)
    ] * 2
    assert [records(run, "run.end")[0]["effects_log"] for run in runs] == ["none", "none"]
    plain, restarted = sorted(runs, key=lambda run: "restarted" in run.name)
    assert records(plain, "perturbation") == []
    assert [p["applied"] for p in records(restarted, "perturbation")] == [True]
    assert "STALE_REF" in [r["code"] for r in records(restarted, "action.refused")]
    assert wait_gone(naming(str(project / "out"))) == set()


def test_who_acts_on_what_was_before_the_restart_is_caught(project: Path) -> None:
    done, verdict, runs = certify(project, "--agent", "builtin:stale_replayer", "--only", "write-letter-restarted")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "DC201" in {finding["rule"] for finding in verdict["findings"]}
    assert (project / "out" / "app" / runs[0].name / "letter.txt").read_text() == BEFORE


def test_an_agent_launches_what_the_suite_names_and_nothing_else(project: Path) -> None:
    change(
        project,
        "suite.yaml",
        "  ready:",
        "  programs: {notice: [zenity, --info, --title, Notice, --text, hello]}\n  ready:",
    )
    (project / "agent.py").write_text(LAUNCHER)
    shutil.copy(CLIENT, project)
    agent = ("--", sys.executable, "agent.py", "told.json")
    done, _, runs = certify(project, "--only", "write-letter", *agent)
    assert done.returncode == 1
    told = json.loads((project / "told.json").read_text())
    assert told["task"]["start_url"] == "desktop://mousepad/"
    other, notice, windows, closed = told["told"]
    assert (other["ok"], notice["ok"], closed["ok"]) == (False, True, True), told
    assert "Notice" in [w["title"] for w in windows["data"]["windows"]]
    intents = [(r["command"], r["args"].get("app")) for r in records(runs[0], "action.intent")]
    assert intents == [("launch", "notice"), ("close-app", "zenity")]


WRONG = {
    "a page": (
        "write-letter.yaml",
        "start: {",
        "start: {page: /, ",
        r"write-letter\.yaml:5: start\.page: a window has",
    ),
    "another change": (
        "write-letter-restarted.yaml",
        "do: restart",
        "do: recycle_row",
        r"write-letter-restarted\.yaml:9: perturb\[0\]: .*hang, restart",
    ),
    "an unknown key": (
        "suite.yaml",
        "  setup:",
        "  databse: x\n  setup:",
        r"suite\.yaml:\d+:\d+: app\.databse: unknown",
    ),
    "a port": ("suite.yaml", "{seconds: 40}", "{port: true}", r"suite\.yaml:\d+:\d+: app\.ready"),
    "effects": (
        "write-letter.yaml",
        "oracle:\n",
        "oracle:\n  - {no_effect: {kind: a.b}}\n",
        r"write-letter\.yaml:9: oracle\[0\]: .*effect log",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_word_is_told_with_file_and_line(project: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    file, old, new, said = WRONG[what]
    change(project, file, old, new)
    monkeypatch.chdir(project)
    with pytest.raises(ConfigError) as told:
        load_suites(["letters"], base=project, policy=None)
    assert re.search(said, "\n".join(told.value.problems)), told.value.problems


def test_a_name_that_no_program_has_is_told_with_those_there_are(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(project, "suite.yaml", "desktop: mousepad", "desktop: Editor")
    change(project, "suite.yaml", "seconds: 40", "seconds: 3")
    monkeypatch.chdir(project)
    suite = load_suites(["letters"], base=project, policy=None)
    assert suite.app is not None
    with pytest.raises(ConfigError) as told:
        asyncio.run(try_own(suite.app, suite.scenarios[:1], suite.secrets, token="own-desktop-test"))
    assert re.search(
        r"suite\.yaml:4: app: .*not ready within 3 s .*'Editor'.*on the accessibility bus: .*'mousepad'",
        "\n".join(told.value.problems),
    ), told.value.problems
    assert wait_gone(naming("own-desktop-test")) == set()
