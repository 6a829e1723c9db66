"""As a new user would: init, an agent of one's own, ci, a verdict; and what helps when something is wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ways_world import DESKCERT, simulated

from deskcert.certify.agent_process import AgentRun, Ended
from deskcert.session.jsonlines import Task
from deskcert.ways.meanings import ATTRIBUTIONS, CODES, DELIVERIES, KINDS
from deskcert_schema.disposition import Delivery
from deskcert_schema.vocabulary import Attribution, Code, DetailKind

ROOT = Path(__file__).parents[2]


def call(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    # The project's Python first on the path, as in an activated environment.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [DESKCERT, *arguments],
        cwd=cwd,
        env=os.environ | {"PATH": path},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.web
def test_from_nothing_to_a_verdict_with_an_agent_of_thirty_lines(tmp_path: Path) -> None:
    assert call("init", "project", cwd=tmp_path).returncode == 0
    project = tmp_path / "project"
    assert "deskcert agent new" in call("init", "project", "--force", cwd=tmp_path).stdout
    refused = call("init", cwd=project)
    assert refused.returncode == 2
    assert "deskcert.yaml" in refused.stderr
    assert ".deskcert/" in (project / ".gitignore").read_text()
    assert call("agent", "new", cwd=project).returncode == 0
    assert len((project / "my_agent.py").read_text().splitlines()) <= 30
    assert call("agent", "new", cwd=project).returncode == 2, "an agent somebody worked on is not written over"
    done = call("ci", "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    assert (verdict["certified"], [r["outcome"] for r in verdict["runs"]]) == (True, ["passed"])


@pytest.mark.web
def test_an_agent_over_mcp_is_as_short(tmp_path: Path) -> None:
    assert call("init", cwd=tmp_path).returncode == 0
    assert call("agent", "new", "--transport", "mcp-http", cwd=tmp_path).returncode == 0
    assert len((tmp_path / "my_agent.py").read_text().splitlines()) <= 30
    done = call("ci", "--json", "--transport", "mcp-http", "--out", "out", "--", "python3", "my_agent.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "out" / "runs").iterdir()
    first = json.loads((run / "ledger.jsonl").read_bytes().splitlines()[0])
    assert first["agent"]["transport"] == "mcp-http"


@pytest.mark.parametrize(("program", "file"), [(sys.executable, "client.py"), ("node", "client.mjs")])
async def test_the_clients_in_the_documentation_speak_json_lines(program: str, file: str, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip("node is not installed")
    source = ROOT / "docs" / "clients" / file
    assert len(source.read_text().splitlines()) <= 40
    events: list[str] = []

    async def note(event: str, _detail: Any) -> None:
        events.append(event)

    async with simulated(tmp_path / "w", "jsonl") as world:
        run = AgentRun([program, str(source)], folder=tmp_path, token="docs", handle=world.opened.handle, note=note)
        end = await run.run(Task("Look at the orders.", "http://127.0.0.1:1/", 5, 30))
        assert end.how is Ended.FINISHED, (end, (tmp_path / "agent.stderr").read_text())
        assert "protocol_error" not in events
        assert "claim" in world.kinds()
    assert 'button "Approve"' in (tmp_path / "agent.stderr").read_text()


def test_doctor_says_what_is_there_and_what_is_not(tmp_path: Path) -> None:
    done = call("doctor", "--json", cwd=tmp_path)
    found = {f["name"]: f for f in json.loads(done.stdout)}
    assert {"python", "browser", "web adapter", "mcp", "proxy", "isolation", "desktop", "project key"} <= found.keys()
    assert found["project key"]["state"] == "optional"
    (tmp_path / "deskcert.yaml").write_text("version: 1\ntrails: 2\n")
    (tmp_path / ".deskcert").mkdir()
    (tmp_path / ".deskcert" / "key").write_text("nonsense")
    done = call("doctor", cwd=tmp_path)
    assert done.returncode == 2
    assert "trials" in done.stdout
    assert "!!  project key" in done.stdout


def test_doctor_repairs_only_after_saying_what_it_will_do(tmp_path: Path) -> None:
    import stat

    from deskcert_ledger import ProjectKey

    key = tmp_path / ".deskcert" / "key"
    ProjectKey.load_or_create(key)
    key.chmod(0o644)
    declined = call("doctor", "--fix", cwd=tmp_path, stdin="n\n")
    assert f"chmod 600 {key}" in declined.stdout
    assert stat.S_IMODE(key.stat().st_mode) == 0o644


def test_every_word_of_the_contract_is_explained(tmp_path: Path) -> None:
    assert set(CODES) == {c.value for c in Code}
    assert set(KINDS) >= {k.value for k in DetailKind}
    assert set(DELIVERIES) == {d.value for d in Delivery}
    assert set(ATTRIBUTIONS) == {a.value for a in Attribution}
    assert "snapshot" in call("explain", "stale_ref", cwd=tmp_path).stdout
    assert "DC401" in call("explain", "dc401", cwd=tmp_path).stdout
    near = call("explain", "STALE_REFF", cwd=tmp_path)
    assert (near.returncode, "STALE_REF?" in near.stderr) == (2, True)


@pytest.mark.parametrize(("typed", "meant"), [("snapsht", "snapshot"), ("docter", "doctor"), ("clikc", "click")])
def test_a_mistyped_command_names_the_near_one(typed: str, meant: str, tmp_path: Path) -> None:
    done = call(typed, cwd=tmp_path)
    assert done.returncode == 2
    assert f"Did you mean {meant}?" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, tmp_path: Path) -> None:
    assert "_DESKCERT_COMPLETE" in call("completion", shell, cwd=tmp_path).stdout
    if shell == "bash":
        environment = os.environ | {
            "_DESKCERT_COMPLETE": "bash_complete",
            "COMP_WORDS": "deskcert snap",
            "COMP_CWORD": "1",
        }
        done = subprocess.run([DESKCERT], env=environment, capture_output=True, text=True, check=False)
        assert done.stdout.split() == ["plain,snapshot"]
