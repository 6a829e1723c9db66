"""A user's own application: started, reset and asked as its suite says, with two runs at a time; its key is nowhere in
what deskcert wrote; and nothing of it is left."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from own_processes import DESKCERT, alive, below, command_of, deskcert, environment, naming, records, wait_gone

pytestmark = pytest.mark.web

DESK = Path(__file__).parent / "desk"
KEY = 's3cr3t/"ü x-42'
FORMS = (KEY, quote(KEY), quote(KEY, safe=""), quote_plus(KEY), json.dumps(KEY)[1:-1])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("desk")
    shutil.copytree(DESK, cwd / "desk")
    return cwd


@pytest.fixture(scope="module")
def certified(project: Path) -> subprocess.CompletedProcess[str]:
    """Two trials side by side, behind the proxy, and the report of them."""
    asked = ("--suite", "desk", "--proxy", "required", "--trials", "2", "--workers", "2", "--out", "out")
    done = deskcert("ci", "--agent", "builtin:careful", *asked, cwd=project, DESK_KEY=KEY)
    assert deskcert("report", "out", "--out", "report.html", cwd=project).returncode == 0
    return done


def runs(project: Path) -> list[Path]:
    return sorted((project / "out" / "runs").iterdir())


def test_careful_passes_each_run_on_an_application_of_its_own(
    project: Path, certified: subprocess.CompletedProcess[str]
) -> None:
    assert certified.returncode == 0, certified.stderr
    oracles = [records(run, "oracle") for run in runs(project)]
    assert [[o["holds"] for o in answers] for answers in oracles] == [[True] * 7] * 2
    assert {r["kind"] for run in runs(project) for r in records(run)} >= {"net.allowed", "canary"}
    assert [records(run, "run.end")[0]["effects_log"] for run in runs(project)] == ["none", "none"]
    closed = [(project / "out" / "app" / run.name / "closed.txt").read_text() for run in runs(project)]
    assert closed == ["ticket 2\n"] * 2
    ports = {records(run, "net.allowed")[0]["url_class"].split("/")[2] for run in runs(project)}
    assert len(ports) == 2


def test_no_byte_of_the_key_is_in_what_was_written(project: Path, certified: subprocess.CompletedProcess[str]) -> None:
    files = [p for p in project.rglob("*") if p.is_file() and p.name != "desk.sqlite"]
    assert {"ledger.jsonl", "run.log", "verdict.json", "report.html", "agent.stderr", "log.txt"} <= {
        p.name for p in files
    }
    told = [p.read_bytes() for p in files] + [certified.stdout.encode(), certified.stderr.encode()]
    assert [form for form in FORMS for content in told if form.encode() in content] == []
    # And it would have been: the page showed it, the agent typed it, the application printed it.
    blobs = b"".join(p.read_bytes() for run in runs(project) for p in (run / "blobs").iterdir())
    assert b"Your key is ${ENV:DESK_KEY}" in blobs
    assert (
        "listening with the key ${ENV:DESK_KEY}"
        in (project / "out/app" / runs(project)[0].name / "log.txt").read_text()
    )
    assert "with the password ${ENV:DESK_KEY}" in records(runs(project)[0])[0]["instruction"]


def test_what_the_application_left_behind_is_ended(project: Path, certified: subprocess.CompletedProcess[str]) -> None:
    logs = [(project / "out" / "app" / run.name / "log.txt").read_text() for run in runs(project)]
    strays = {int(re.findall(r"^stray (\d+)$", log, re.MULTILINE)[0]) for log in logs}
    assert len(strays) == 2
    assert not {p for p in strays if alive(p)}
    assert naming("desk_app.py") == set()


def test_decisions_are_replayed_and_a_live_replay_is_refused(
    project: Path, certified: subprocess.CompletedProcess[str]
) -> None:
    again = deskcert("replay", "out", cwd=project)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "2 runs: 16 decisions" in again.stdout
    live = deskcert("replay", "out", "--live", "--suite", "desk", cwd=project, DESK_KEY=KEY)
    assert live.returncode == 2
    assert "a replay repeats what was delivered" in live.stderr.lower()


def test_failing_hook_that_repeats_the_key_does_not_betray_it(tmp_path: Path) -> None:
    shutil.copytree(DESK, tmp_path / "desk")
    suite = tmp_path / "desk" / "suite.yaml"
    suite.write_text(suite.read_text().replace('X-Key: "${ENV:DESK_KEY}"', "X-Key: wrong"))
    done = deskcert("ci", "--agent", "builtin:careful", "--suite", "desk", cwd=tmp_path, DESK_KEY=KEY)
    assert done.returncode == 2
    assert (
        "desk/suite.yaml:3: app: reset: http: the answer was 403: the key is ${ENV:DESK_KEY}, not wrong" in done.stderr
    )
    assert not [form for form in FORMS if form in done.stderr + done.stdout]


SLEEPER = """
import os, subprocess, sys, time
sys.stdin.readline()
code = "import os, sys, time; os.setsid(); os.write(os.open('up', os.O_WRONLY), b'up'); time.sleep(600)"
subprocess.Popen(["sh", "-c", '"$@" &', "sh", sys.executable, "-c", code, *sys.argv[1:]], env={}).wait()
time.sleep(600)
"""


@pytest.mark.parametrize("isolation", ["none", "bwrap"])
def test_after_kill_9_nothing_of_agent_and_application_is_left(tmp_path: Path, isolation: str) -> None:
    """The agent's child has no environment, no parent and a session of its own; so has the application's."""
    shutil.copytree(DESK, tmp_path / "desk")
    (tmp_path / "agent.py").write_text(SLEEPER)
    os.mkfifo(tmp_path / "up")
    mark = f"mark-{os.getpid()}-{tmp_path.name}"
    up = os.open(tmp_path / "up", os.O_RDONLY | os.O_NONBLOCK)
    process = subprocess.Popen(
        [DESKCERT, "ci", "--suite", "desk", "--isolation", isolation, "--", sys.executable, "agent.py", mark],
        cwd=tmp_path,
        env=environment({"DESK_KEY": KEY}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        select.select([up], [], [], 90)
        family = (naming(mark) | naming(str(tmp_path / "desk")) | below(process.pid)) - {process.pid}
        assert len([p for p in family if b"os.setsid" in command_of(p)]) == 1
        process.kill()
        process.wait()
        assert wait_gone(family) == set()
        assert naming(mark) == naming(str(tmp_path / "desk")) == set()
    finally:
        os.close(up)
        process.kill()
        process.wait()
