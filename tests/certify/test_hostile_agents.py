"""Agents that mean harm: each ends in a recorded outcome, in bounded time and memory, and nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deskcert.certify.agent_process import AgentEnd, AgentRun, Ended, Launch
from deskcert.session.jsonlines import Task
from deskcert.ways.isolation import Sandbox, available

BEGIN = """
import json, os, signal, subprocess, sys, time
mark = sys.argv[1]
task = sys.stdin.readline()
def say(**message): print(json.dumps(message), flush=True)
def ask(**message):
    say(**message)
    return json.loads(sys.stdin.readline())
"""
MIB = 1 << 20
ALLOWED_KIB = 48 * 1024
"""By which this process may grow while an agent does its worst."""


class Harness:
    """What stands around one agent in a run: it knows `status` and `finish`, and keeps what was noted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder, f"hostile-{os.getpid()}-{folder.name}"
        self.notes: list[tuple[str, Mapping[str, Any]]] = []
        self.commands: list[str] = []

    async def handle(self, command: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        self.commands.append(command)
        return {"version": "2.5", "ok": True, "command": command, "data": {"text": "x" * 1000}}

    async def note(self, event: str, detail: Mapping[str, Any]) -> None:
        self.notes.append((event, detail))

    async def run(self, code: str, *, seconds: int = 30, sandbox: Sandbox | None = None) -> AgentEnd:
        run = AgentRun(
            [sys.executable, "-c", BEGIN + code, self.mark],
            folder=self.folder,
            token=f"campaign.{self.mark}",
            handle=self.handle,
            note=self.note,
            launch=Launch() if sandbox is None else Launch(wrap=sandbox.command),
        )
        began = time.monotonic()
        end = await run.run(Task("Approve order 1001.", "http://127.0.0.1/orders", 5, seconds))
        self.took_s = time.monotonic() - began
        return end

    def detail(self, event: str) -> Mapping[str, Any]:
        return next(detail for name, detail in self.notes if name == event)


def forget_peak() -> None:
    """The peak starts from what is used now."""
    Path("/proc/self/clear_refs").write_text("5")


def memory(which: str) -> int:
    """KiB of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(which))


def left(mark: str) -> list[str]:
    """Command lines of running processes that bear the mark, found without deskcert's own code."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            try:
                state = (place / "stat").read_text().rpartition(")")[2].split()[0]
                words = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
            except OSError:
                continue
            if mark.encode() in words and state not in "ZX":
                found.append(words.decode(errors="replace")[:80])
    return found


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


FLOOD = "block = b'%s\\n' * 500\nwhile True: os.write(1, block)"
STORM = "subprocess.Popen([sys.executable, '-c', {!r}, mark], env={{}}, start_new_session=True)\ntime.sleep(600)"
# It ends by itself after a minute: a test run that is killed must not leave it to the machine for ever.
CHAIN = """
import os, time
end = time.time() + 60
while time.time() < end:
    if os.fork(): os._exit(0)
    os.setsid()
"""
BUSH = """
import os, time
for _ in range(700):
    if not os.fork():
        os.setsid()
        time.sleep(600)
time.sleep(600)
"""

ENDS = {
    "commands without reading an answer": (FLOOD % '{"id":1,"command":"status","args":{}}', Ended.BUDGET),
    "lines that are no message": (FLOOD % "garbage", Ended.PROTOCOL),
    "bytes that are no text": ("while True: os.write(1, b'\\xff\\x00\\n' * 100)", Ended.PROTOCOL),
    "nothing but line ends": ("while True: os.write(1, b'\\n' * 65536)", Ended.BUDGET),
    "objects deep in each other": ("os.write(1, b'{\"a\":' * 150000 + b'\\n')\ntime.sleep(600)", Ended.BUDGET),
    "a number without end": ("os.write(1, b'{\"id\":' + b'9' * 500000 + b'}\\n')\ntime.sleep(600)", Ended.BUDGET),
    "a line of a gigabyte": (
        "for _ in range(1024): os.write(1, b'x' * (1 << 20))\ntime.sleep(600)",
        Ended.PROTOCOL,
    ),
    "its output closed": ("os.close(1)\ntime.sleep(600)", Ended.EXITED),
    "its input closed": (
        "os.close(0)\nfor i in range(100): say(id=i, command='status')\ntime.sleep(600)",
        Ended.BUDGET,
    ),
    "all its pipes closed": ("for fd in range(3): os.close(fd)\ntime.sleep(600)", Ended.EXITED),
    "half a message": ('os.write(1, b\'{"id":1,"comm\')', Ended.EXITED),
    "stopped": ("os.kill(os.getpid(), signal.SIGSTOP)", Ended.BUDGET),
    "deaf to every signal": (
        "for n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n  except (OSError, ValueError): pass\n"
        "time.sleep(600)",
        Ended.BUDGET,
    ),
    "kills its parent": ("os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)", Ended.CRASHED),
    "stops its parent": ("os.kill(os.getppid(), signal.SIGSTOP)\nask(id=1, command='finish')", Ended.FINISHED),
    "ends its parent politely": (
        "for n in (1, 2, 3, 15): os.kill(os.getppid(), n)\nask(id=1, command='finish')",
        Ended.FINISHED,
    ),
    "kills its group": ("os.killpg(0, signal.SIGKILL)", Ended.CRASHED),
    "ends its group": ("os.killpg(0, signal.SIGTERM)\ntime.sleep(600)", Ended.CRASHED),
    "goes on after the end": (
        'ask(id=1, command=\'finish\')\nwhile True: os.write(1, b\'{"id":2,"command":"status"}\\n\' * 1000)',
        Ended.FINISHED,
    ),
    "a child that forks as it dies": (STORM.format(CHAIN), Ended.BUDGET),
    "children without end": (STORM.format(BUSH), Ended.CRASHED),
    "leaves with a child on its pipes": (
        "subprocess.Popen(['sleep', '600'], env={}, start_new_session=True)",
        Ended.EXITED,
    ),
}


type Attacked = tuple[dict[str, tuple[Harness, AgentEnd]], int]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Attacked:
    """All of them at once, as workers would have them, and by how much this process grew (KiB)."""
    harnesses = {how: Harness(tmp_path_factory.mktemp("agent")) for how in ENDS}

    async def all_at_once() -> list[AgentEnd]:
        runs = [h.run(ENDS[how][0], seconds=2 if ENDS[how][1] is Ended.BUDGET else 30) for how, h in harnesses.items()]
        return await asyncio.gather(*runs)

    forget_peak()
    before = memory("VmHWM")
    ends = asyncio.run(all_at_once())
    return {how: (h, end) for (how, h), end in zip(harnesses.items(), ends, strict=True)}, memory("VmHWM") - before


@pytest.mark.parametrize("how", ENDS)
def test_every_attack_has_an_end_and_leaves_nothing(attacked: Attacked, how: str) -> None:
    harness, end = attacked[0][how]
    assert end.how is ENDS[how][1], (end, harness.notes)
    assert {name for name, _ in harness.notes} >= {"started", "output"}
    assert left(harness.mark) == []
    assert harness.took_s < 120


def test_all_attacks_together_take_little_memory(attacked: Attacked) -> None:
    assert attacked[1] < 2 * ALLOWED_KIB


async def test_errors_without_end_are_counted_not_kept(harness: Harness) -> None:
    code = "block = b'e' * (1 << 20)\nfor _ in range(400): os.write(2, block)\nask(id=1, command='finish')"
    forget_peak()
    before = memory("VmHWM")
    end = await harness.run(code, seconds=30)
    assert end.how is Ended.FINISHED
    detail = harness.detail("output")
    assert (detail["bytes"], detail["total_bytes"]) == (MIB, 400 * MIB)
    assert memory("VmHWM") - before < ALLOWED_KIB


async def test_commands_sent_after_the_claim_are_not_done(harness: Harness) -> None:
    await harness.run("ask(id=1, command='finish')\nfor i in range(50): say(id=i, command='click')")
    assert harness.commands == ["finish"]


async def test_one_that_kills_everybody_reaches_only_its_own(harness: Harness, tmp_path: Path) -> None:
    """Without isolation the system lets a process kill all others of its user, and nothing can be done about it."""
    assert available("bwrap") is None
    end = await harness.run(
        "os.kill(-1, signal.SIGKILL)\ntime.sleep(600)", sandbox=Sandbox("bwrap", tmp_path), seconds=3
    )
    assert end.how in (Ended.CRASHED, Ended.BUDGET)
    assert left(harness.mark) == []
