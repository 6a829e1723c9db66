"""An application that there is one of: it runs already, or has a port that its suite fixes."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from own_processes import alive, deskcert, naming, wait_gone

from deskcert.certify.own_preflight import try_own
from deskcert.certify.suite import Suite, load_suites
from deskcert_schema.errors import ConfigError

DESK = Path(__file__).parent / "desk"
KEY = "a-key-of-some-length"
SCENARIO = """\
id: close-one
version: 1
title: Close one ticket
area: tickets
start: {page: /}
instruction: Close ticket 2.
oracle: [{sql: "select count(*) from tickets where state = 'closed'", times: 1}]
expected: complete
attribution: wrong_target
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    suite = tmp_path / "suite"
    suite.mkdir()
    shutil.copy(DESK / "policy.yaml", suite)
    (suite / "close-one.yaml").write_text(SCENARIO)
    return tmp_path


@pytest.fixture
def port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def running(place: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """The desk, started by somebody else."""
    data = place / "data" / "desk.sqlite"
    data.parent.mkdir()
    subprocess.run([sys.executable, DESK / "make_data.py", data], check=True)
    command = [sys.executable, DESK / "desk_app.py", str(port), str(data)]
    process = subprocess.Popen(command, env={"DESK_KEY": KEY}, cwd=data.parent, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    stray = int(process.stdout.readline().split()[1])
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()
    if alive(stray):
        subprocess.run(["kill", "-9", str(stray)], check=False)


def suite_of(place: Path, app: dict[str, Any]) -> Suite:
    (place / "suite" / "suite.yaml").write_text(json.dumps({"version": 1, "name": "desk", "app": app}))
    return load_suites(["suite"], base=place, policy=None)


def tried(suite: Suite) -> None:
    assert suite.app is not None
    asyncio.run(try_own(suite.app, suite.scenarios, suite.secrets, token="t"))


def test_one_that_runs_already_is_reset_asked_and_left_running(
    place: Path, port: int, running: subprocess.Popen[str]
) -> None:
    data = place / "data" / "desk.sqlite"
    with sqlite3.connect(data) as database:
        database.execute("update tickets set state = 'closed'")
    reset = [{"http": {"url": "/reset", "headers": {"X-Key": KEY}}}]
    app = {"url": f"http://127.0.0.1:{port}/", "ready": {"port": True}, "reset": reset, "database": str(data)}
    suite = suite_of(place, app)
    tried(suite)
    with sqlite3.connect(data) as database:
        assert database.execute("select distinct state from tickets").fetchall() == [("open",)]
    assert running.poll() is None
    assert suite.app is not None
    assert suite.app.data() == (data,), "an isolated agent sees nothing of it"


def test_one_that_does_not_run_is_told(place: Path, port: int) -> None:
    app = {"url": f"http://127.0.0.1:{port}/", "ready": {"port": True, "seconds": 1}, "database": "x.sqlite"}
    with pytest.raises(ConfigError, match=r"suite\.yaml:1: app: .*not ready within 1 s \(waited for its port\)"):
        tried(suite_of(place, app))


def fixed(port: int) -> dict[str, Any]:
    return {
        "setup": {"command": ["python3", str(DESK / "make_data.py"), "desk.sqlite"]},
        "command": ["python3", str(DESK / "desk_app.py"), str(port), "desk.sqlite"],
        "env": {"DESK_KEY": KEY},
        "url": f"http://127.0.0.1:{port}/",
        "ready": {"http": "/health"},
        "database": "desk.sqlite",
    }


def test_one_with_a_fixed_port_is_started_and_ended(place: Path, port: int) -> None:
    tried(suite_of(place, fixed(port)))
    assert wait_gone(naming(f"desk_app.py\0{port}")) == set()


def test_a_fixed_port_that_somebody_else_has_is_told(place: Path, port: int, running: subprocess.Popen[str]) -> None:
    with pytest.raises(ConfigError, match=r"something answers at .* before the application was started"):
        tried(suite_of(place, fixed(port)))
    assert running.poll() is None


def test_workers_need_a_port_each(place: Path, port: int) -> None:
    suite_of(place, fixed(port))
    (place / "suite" / "close-one.plan.yaml").write_text("goals: []\n")
    done = deskcert("ci", "--agent", "builtin:careful", "--suite", "suite", "--workers", "2", cwd=place)
    assert done.returncode == 2
    assert "suite/suite.yaml:1: app: its url has no {port}" in done.stderr
