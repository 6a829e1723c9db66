"""Ctrl-C: the open ledger is sealed and says so, what was not run is named, the exit code is 3, nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from e2e_campaigns import DESKCERT, of_kind, records, run_deskcert
from e2e_processes import below, token_of, wait_gone

pytestmark = pytest.mark.web

ARGUMENTS = ("--agent", "builtin:careful", "--suite", "builtin:core", "--only", "orders-*", "--out", "out")


@pytest.fixture(scope="module", params=[signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def interrupted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, int, str, set[int]]:
    """Interrupted in the middle of an action of the first run, where the process is known to be."""
    cwd = tmp_path_factory.mktemp("interrupted")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DESKCERT_")}
    environment |= {"DESKCERT_PAUSE_AT": "actionable", "DESKCERT_PAUSE_FILE": str(cwd / "paused")}
    with (cwd / "stdout").open("wb") as stdout, (cwd / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [DESKCERT, "ci", "--json", *ARGUMENTS],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), (cwd / "stderr").read_text()
        family = below(process.pid)
        token = next(t for t in map(token_of, family) if t)
        os.kill(process.pid, request.param)
        os.kill(process.pid, signal.SIGCONT)
        code = process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()
    return cwd, code, (cwd / "stderr").read_text(), wait_gone(family, token)


def test_exit_code_3_and_the_rest_is_named(interrupted: tuple[Path, int, str, set[int]]) -> None:
    cwd, code, stderr, _ = interrupted
    assert code == 3, stderr
    verdict = json.loads((cwd / "stdout").read_text())
    outcomes = [r["outcome"] for r in verdict["runs"]]
    assert outcomes.count("inconclusive") == 1
    assert outcomes.count("not_run") == verdict["totals"]["planned"] - 1 > 0
    missing = [r["scenario"] for r in verdict["runs"] if r["outcome"] == "not_run"]
    assert all(f"{name} (trial 1)" in stderr for name in missing)


def test_the_open_ledger_is_sealed(interrupted: tuple[Path, int, str, set[int]]) -> None:
    cwd, _, _, _ = interrupted
    (run,) = (cwd / "out" / "runs").iterdir()
    last = records(run)[-1]
    assert (last["kind"], last["outcome"]) == ("run.end", "interrupted")
    answered = {r["of"] for r in of_kind(run, "action.result")}
    assert {r["seq"] for r in of_kind(run, "action.intent")} <= answered
    verified = run_deskcert("ledger", "verify", str(run), cwd=cwd)
    assert verified.returncode == 0, verified.stdout


def test_nothing_is_left_running(interrupted: tuple[Path, int, str, set[int]]) -> None:
    assert interrupted[3] == set()
