"""An agent may do anything: what it did is noted, it is over in time, and nothing of it stays."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deskcert.certify.agent_process import AgentEnd, AgentRun, Ended, expand
from deskcert.certify.reaper import holders
from deskcert.session.jsonlines import Task

BEGIN = """
import json, os, signal, subprocess, sys, time
task = json.loads(sys.stdin.readline())
def say(**message): print(json.dumps(message), flush=True)
def ask(**message):
    say(**message)
    return json.loads(sys.stdin.readline())
"""


class Recording:
    """A session that knows `status` and `finish`, and everything that was noted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.token = folder, f"agent{os.getpid()}.{folder.name}"
        self.notes: list[tuple[str, Mapping[str, Any]]] = []
        self.commands: list[tuple[str, Mapping[str, Any]]] = []

    async def handle(self, command: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        self.commands.append((command, args))
        return {"version": "2.5", "ok": True, "command": command, "data": {}}

    async def note(self, event: str, detail: Mapping[str, Any]) -> None:
        self.notes.append((event, detail))

    async def run(self, code: str, *, seconds: int = 20, command: list[str] | None = None) -> AgentEnd:
        run = AgentRun(
            command or [sys.executable, "-c", BEGIN + code],
            folder=self.folder,
            token=self.token,
            handle=self.handle,
            note=self.note,
        )
        return await run.run(Task("Approve order 1001.", "http://127.0.0.1/orders", 5, seconds))

    def events(self) -> list[str]:
        return [event for event, _ in self.notes]

    def detail(self, event: str) -> Mapping[str, Any]:
        return next(detail for name, detail in self.notes if name == event)


@pytest.fixture
def agent(tmp_path: Path) -> Recording:
    return Recording(tmp_path)


async def test_a_claim_ends_the_run_and_the_agent_is_told_the_task_and_the_end(agent: Recording) -> None:
    end = await agent.run(
        "a = ask(id=1, command='status')\n"
        "b = ask(id=2, command='finish', args={'outcome': 'done'})\n"
        "c = json.loads(sys.stdin.readline())\n"
        "print(json.dumps([task, a, b, c]), file=sys.stderr)"
    )
    assert end.how is Ended.FINISHED
    assert [c for c, _ in agent.commands] == ["status", "finish"]
    task, first, second, last = json.loads((agent.folder / "agent.stderr").read_text())
    assert task == {
        "type": "task",
        "version": 1,
        "task": "Approve order 1001.",
        "budget": {"actions": 5, "seconds": 20},
        "start_url": "http://127.0.0.1/orders",
    }
    assert (first["id"], second["id"]) == (1, 2)
    assert last == {"type": "end", "reason": "finished"}
    assert agent.events() == ["started", "output"]


async def test_a_crash_is_noted_with_its_status(agent: Recording) -> None:
    end = await agent.run("raise SystemExit(3)")
    assert end == AgentEnd(Ended.CRASHED, "the agent ended with status 3 without a claim")
    assert agent.detail("crashed") == {"status": 3}


async def test_a_death_by_signal_is_noted(agent: Recording) -> None:
    end = await agent.run("os.kill(os.getpid(), signal.SIGSEGV)")
    assert end.how is Ended.CRASHED
    assert agent.detail("crashed") == {"signal": 11}


async def test_leaving_without_a_claim_is_noted(agent: Recording) -> None:
    end = await agent.run("ask(id=1, command='status')")
    assert end.how is Ended.EXITED
    assert agent.detail("exited") == {"status": 0}


async def test_a_command_that_cannot_be_started_is_noted(agent: Recording) -> None:
    end = await agent.run("", command=["/nonexistent/agent"])
    assert end.how is Ended.NOT_STARTED
    assert agent.events() == ["crashed"]


async def test_an_agent_that_hangs_is_ended_when_its_time_is_up(agent: Recording) -> None:
    end = await agent.run("signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)", seconds=1)
    assert end.how is Ended.BUDGET
    assert agent.detail("hung") == {"seconds": 1}
    assert agent.detail("output")["ended_by_itself"] is False
    assert holders(agent.token) == set()


async def test_after_the_time_is_up_a_claim_still_counts(agent: Recording) -> None:
    end = await agent.run(
        "end = json.loads(sys.stdin.readline())\n"
        "assert end == {'type': 'end', 'reason': 'budget'}\n"
        "ask(id=1, command='finish', args={'outcome': 'unsure'})",
        seconds=1,
    )
    assert end.how is Ended.BUDGET
    assert [c for c, _ in agent.commands] == ["finish"]
    assert "hung" not in agent.events()


async def test_garbage_is_answered_and_noted_and_has_an_end(agent: Recording) -> None:
    end = await agent.run(
        "first = ask(id=7, commando='x')\n"
        "print(json.dumps(first), file=sys.stderr, flush=True)\n"
        "for _ in range(100): print('garbage', flush=True)\n"
        "time.sleep(600)"
    )
    assert end.how is Ended.PROTOCOL
    assert agent.events().count("protocol_error") == 20
    answer = json.loads((agent.folder / "agent.stderr").read_text())
    assert (answer["id"], answer["ok"], answer["error"]["code"]) == (7, False, "INVALID_ARGS")
    assert answer["error"]["disposition"] == {"delivery": "not_delivered", "retry": "safe"}


async def test_a_line_over_1_mib_ends_the_run(agent: Recording) -> None:
    end = await agent.run("print('x' * (1 << 20) + 'y', flush=True)\ntime.sleep(600)")
    assert end.how is Ended.PROTOCOL


async def test_output_is_kept_up_to_1_mib_and_counted_to_the_end(agent: Recording) -> None:
    await agent.run("sys.stderr.write('e' * 3_000_000)\nsys.stderr.flush()")
    kept = agent.detail("output")
    assert (kept["bytes"], kept["total_bytes"]) == (1 << 20, 3_000_000)
    assert (agent.folder / "agent.stderr").stat().st_size == 1 << 20


async def test_children_that_leave_the_process_group_are_ended_too(agent: Recording) -> None:
    await agent.run("subprocess.Popen(['sleep', '600'], start_new_session=True)")
    assert holders(agent.token) == set()
    assert agent.detail("output")["left_over_processes"] == 1


async def test_a_child_without_mark_parent_or_session_does_not_outlive_the_agent(
    agent: Recording, tmp_path: Path
) -> None:
    said = tmp_path / "pid"
    child = f"trap '' TERM HUP; echo $$ > {said}; while :; do sleep 1; done"
    script = f'(env -i sh -c "{child}" > /dev/null 2>&1 < /dev/null &) ; while [ ! -s {said} ]; do sleep 0.01; done'
    await agent.run(f"subprocess.run(['setsid', 'env', '-i', 'PATH=/usr/bin:/bin', 'sh', '-c', {script!r}])")
    with pytest.raises(ProcessLookupError):
        os.kill(int(said.read_text()), 0)
    assert agent.detail("output")["left_over_processes"] >= 1


async def test_the_agent_sees_an_allow_listed_environment(agent: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKCERT_KEY_FILE", "/secret/key")
    monkeypatch.setenv("CI_JOB_TOKEN", "secret")
    await agent.run("print(json.dumps(dict(os.environ)), file=sys.stderr)")
    seen = json.loads((agent.folder / "agent.stderr").read_text())
    assert seen["DESKCERT_RUN_TOKEN"] == agent.token
    assert not {"DESKCERT_KEY_FILE", "CI_JOB_TOKEN"} & set(seen)


def test_only_the_placeholder_is_replaced() -> None:
    assert expand(["a", "--task={task}", "{x}", "{{task}}"], task="Go {y}") == ["a", "--task=Go {y}", "{x}", "{Go {y}}"]
