"""A recorded run driven again on a fresh application: what comes out is compared, and nothing else is ever a target."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from replay_histories import application, as_session, records

from deskcert.audit.story import read_whole
from deskcert.cli.replay import replay
from deskcert.replay.live import compare
from deskcert.replay.script import script_of
from deskcert.testing import SimulatedRun
from deskcert_ledger import openings
from deskcert_schema.errors import UsageError


async def a_run(folder: Path) -> Path:
    session, ledger = as_session(folder, application())
    seen = await session.handle("snapshot", {})
    _, other, note, delete, pin = (f"@{seen['data']['snapshot_id']}:e{n}" for n in range(1, 6))
    await session.handle("click", {"ref": other, "timeout_ms": 0})
    await session.handle("set-value", {"ref": note, "value": "call twelve", "timeout_ms": 0})
    await session.handle("set-value", {"ref": pin, "value": "hush", "timeout_ms": 0})
    await session.handle("click", {"ref": delete, "timeout_ms": 0})
    await session.handle("click", {"ref": "@snothere0:e1"})
    await session.handle("finish", {"outcome": "done", "message": "x"})
    ledger.seal()
    return folder / "run"


async def test_the_script_has_every_command_its_target_and_its_value(tmp_path: Path) -> None:
    folder = await a_run(tmp_path)
    nodes = [{"ref": n, "role": "button", "name": "Approve"} for n in (1, 2)]
    script = script_of(read_whole(folder), openings(folder), lambda _: nodes)
    assert [m["command"] for m in script.moves] == [
        "snapshot", "click", "set-value", "set-value", "click", "click", "finish",
    ]  # fmt: skip
    assert (script.moves[1]["snapshot"], script.moves[1]["n"]) == (0, 2)
    assert (script.moves[1]["place"], script.moves[1]["alike"]) == (1, 2)
    assert [m["args"].get("value") for m in script.moves[2:4]] == ["call twelve", "replayed"]
    assert [n for n in script.notes if "no opening" in n]
    assert script.moves[5]["args"]["ref"] == "@snothere0:e1"


def test_what_came_out_otherwise_is_found_and_explained() -> None:
    run = SimulatedRun(application(), {"version": 1, "deny": [{"id": "no-delete", "name": "Delete account"}]})
    run.act("click", run.snapshot()[0])
    told = records(run)
    assert compare(told, told) == []
    result = next(r for r in told if r.kind == "action.result")
    other = [replace(r, data=r.data | {"delivery": "uncertain", "ok": False}) if r is result else r for r in told]
    (found,) = compare(told, other)
    assert (found.recorded, found.now) == ("delivered_unverified", "uncertain")
    assert "a matter of time" in found.why
    (missing,) = compare(told, told[:2])
    assert missing.now == "not done"


async def test_another_target_than_the_fixture_is_refused(tmp_path: Path) -> None:
    session, ledger = as_session(tmp_path, application())
    await session.handle("snapshot", {})
    ledger.seal()
    start = json.loads((tmp_path / "run" / "ledger.jsonl").read_bytes().splitlines()[0])
    assert "suite" not in start
    done = CliRunner().invoke(replay, [str(tmp_path / "run"), "--live"], standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert "a replay" in str(done.exception).lower()


@pytest.mark.web
def test_a_run_driven_again_comes_out_as_recorded(tmp_path: Path) -> None:
    deskcert = str(Path(sys.executable).with_name("deskcert"))
    only = ["--only", "orders-changed-at-dispatch", "--out", "out"]
    ci = [deskcert, "ci", "--agent", "builtin:careful", "--suite", "builtin:core", *only]
    subprocess.run(ci, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    live = [deskcert, "replay", "out", "--live", "--out", "again", "--json"]
    done = subprocess.run(live, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=120)
    told = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, told["differences"]) == (0, [])
    assert (tmp_path / told["again"] / "ledger.jsonl").exists()

    # Stopped at the last look before the first action: the page shows the order as it was, and nothing was sent.
    (run,) = (tmp_path / "out" / "runs").iterdir()
    kinds = [json.loads(line)["kind"] for line in (run / "ledger.jsonl").read_bytes().splitlines()]
    seq = kinds.index("action.intent") - 1
    until = [deskcert, "replay", "out", "--until", str(seq), "--out", "until"]
    env = {k: v for k, v in os.environ.items() if k not in {"DISPLAY", "WAYLAND_DISPLAY"}}
    done = subprocess.run(
        until, cwd=tmp_path, env=env, check=False, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    assert "not visible" in done.stderr
    folder = tmp_path / "until" / run.name
    assert (folder / f"until-{seq}.png").read_bytes().startswith(b"\x89PNG")
    assert "Approve" in (folder / f"until-{seq}.txt").read_text()
    (again,) = (folder / "runs").iterdir()
    assert "action.intent" not in [json.loads(x)["kind"] for x in (again / "ledger.jsonl").read_bytes().splitlines()]
    assert (folder / "app" / again.name / "effects.jsonl").read_text() == ""


def test_a_record_that_is_not_there_cannot_be_stopped_at(tmp_path: Path) -> None:
    run = tmp_path / "run"
    asyncio.run(a_run(tmp_path))
    done = CliRunner().invoke(replay, [str(run), "--until", "4000"], standalone_mode=False)
    assert isinstance(done.exception, UsageError)


@pytest.mark.parametrize("option", [["--allow-target", "http://127.0.0.1:1"], ["--suite", "x"], ["--out", "x"]])
def test_options_of_a_live_replay_mean_nothing_without_it(tmp_path: Path, option: list[str]) -> None:
    done = CliRunner().invoke(replay, [str(tmp_path), *option], standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert "--live" in str(done.exception)
