"""`kill -9` of deskcert at a pipeline point: nothing of the run is left running, nothing happened without a durable
intent, nothing acknowledged is lost, and the next run in the same folder starts clean."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from e2e_campaigns import DESKCERT, effects, of_kind, records, run_deskcert
from e2e_processes import below, token_of, wait_gone

pytestmark = pytest.mark.web

SCENARIO = "orders-approve-twin"
ARGUMENTS = ("--agent", "builtin:careful", "--suite", "builtin:core", "--only", SCENARIO, "--out", "out")


@dataclass
class Killed:
    cwd: Path
    run: Path
    before: bytes
    """The ledger's bytes while the process stood still."""
    family: set[int]
    left: set[int]
    effects: list[dict[str, Any]]


def kill_at(point: str, cwd: Path) -> Killed:
    pause = cwd / "paused"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DESKCERT_")}
    environment |= {"DESKCERT_PAUSE_AT": point, "DESKCERT_PAUSE_FILE": str(pause)}
    with (cwd / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [DESKCERT, "ci", *ARGUMENTS],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    try:
        # Returns when it stops itself, which is what is waited for, or when it ended without.
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), (cwd / "stderr").read_text()
        assert pause.read_text() == point
        (run,) = (cwd / "out" / "runs").iterdir()
        family = below(process.pid)
        token = next(t for t in map(token_of, family) if t)
        before = (run / "ledger.jsonl").read_bytes()
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    left = wait_gone(family, token)
    return Killed(cwd, run, before, family, left, effects(cwd / "out", run))


@pytest.fixture(scope="module", params=["leased", "intent_recorded", "dispatched", "verified"])
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Killed]:
    return request.param, kill_at(request.param, tmp_path_factory.mktemp("killed"))


def test_nothing_of_the_run_is_left_within_5_s(killed: tuple[str, Killed]) -> None:
    _, state = killed
    assert len(state.family) >= 5, "browser, application, agent and reaper should have been there"
    assert state.left == set()


def test_no_effect_without_a_durable_intent(killed: tuple[str, Killed]) -> None:
    point, state = killed
    durable = [json.loads(line) for line in state.before.splitlines()]
    intents = [r for r in durable if r["kind"] == "action.intent"]
    results = [r for r in durable if r["kind"] == "action.result"]
    assert results == []
    assert len(intents) == (0 if point == "leased" else 1)
    if point in ("leased", "intent_recorded"):
        assert state.effects == []
    else:
        assert len(state.effects) <= 1
        assert all((e["kind"], e["id"]) == ("order.approved", 1002) for e in state.effects)


def test_the_next_run_recovers_the_ledger_and_starts_clean(killed: tuple[str, Killed]) -> None:
    point, state = killed
    refused = run_deskcert("ci", *ARGUMENTS, cwd=state.cwd)
    assert (refused.returncode, "--resume" in refused.stderr) == (2, True)
    done = run_deskcert("ci", "--json", *ARGUMENTS, "--resume", cwd=state.cwd)
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    assert [r["outcome"] for r in verdict["runs"]] == ["passed"]
    assert verdict["runs"][0]["run"] != state.run.name

    # The run that was cut short is kept, and named by the one that was done instead.
    aside = state.cwd / "out" / "set_aside" / state.run.name
    (told,) = records(state.cwd / "out" / "runs" / verdict["runs"][0]["run"])[0]["set_aside"]
    assert (told["run"], told["word"]) == (state.run.name, "interrupted")
    state = replace(state, run=aside)
    after = (state.run / "ledger.jsonl").read_bytes()
    assert after.startswith(state.before)
    assert of_kind(state.run, "recovery")
    if point != "leased":
        (intent,) = of_kind(state.run, "action.intent")
        (result,) = of_kind(state.run, "action.result")
        told = (result["of"], result["ok"], result["delivery"], result["retry"], result["cause"])
        assert told == (intent["seq"], False, "unknown", "never_automatic", "crash")
    assert records(state.run)[0]["pause_at"].startswith(point)

    verified = run_deskcert("ledger", "verify", str(state.run), cwd=state.cwd)
    assert verified.returncode == 1
    assert "interrupted" in verified.stdout
