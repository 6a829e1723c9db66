"""Programs, windows and the clipboard as commands of a session: judged before, recorded, read back.

The witnesses are the process table, another connection to the X server, and another program's clipboard.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from desktop_rig import Desktop, Program
from guarded_pages import delivery
from linux_stage import started

from deskcert.adapters.base import DispatchEnd
from deskcert.adapters.desktop import Operation
from deskcert.adapters.linux import AppSelector, LinuxAdapter
from deskcert.adapters.linux.clipboard import Clipboard, text_of_clipboard
from deskcert.adapters.linux.desktop import Programs
from deskcert.adapters.linux.processes import process, state_of
from deskcert.adapters.linux.windows import states
from deskcert.adapters.linux.x11 import Desk, XWindow, windows_of
from deskcert.guard.policy import compile_policy
from deskcert.replay.backtest import back_test
from deskcert.replay.decisions import recompute, recompute_records
from deskcert.session import Options, Session
from deskcert_ledger import ProjectKey, RunLedger, SystemClock, read_records
from deskcert_schema.validate import check

pytestmark = pytest.mark.asyncio(loop_scope="module")

DENY: list[dict[str, Any]] = [
    {"id": "no-player", "name": {"glob": "*player*"}, "action": "launch", "reason": "no players"},
    {"id": "no-sh", "name": "sh", "action": "launch", "reason": "no shells under another name"},
    {"id": "no-secret", "value": {"regex": "secret-[0-9]+"}, "reason": "stays where it is"},
    {"id": "bank", "window": {"glob": "*Bank*"}, "reason": "not the bank's window"},
]
PROGRAMS = {
    "message": ("zenity", "--info", "--title=Launched", "--text=Here"),
    "player": ("zenity", "--info", "--title=Player"),
    "innocent": ("/bin/sh", "-c", "exit 0"),
    "short": ("/bin/false",),
    "bank": ("zenity", "--info", "--title=My Bank", "--text=Money"),
}
WHERE = (40, 30, 600, 700)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def window(desktop: Desktop) -> AsyncIterator[Program]:
    program = await asyncio.to_thread(started, desktop)
    yield program
    program.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def witness(desktop: Desktop) -> AsyncIterator[Desk]:
    """Another client of the X server."""
    desk = Desk(desktop.display)
    yield desk
    desk.close()


class GuardedDesktop:
    def __init__(self, folder: Path, adapter: LinuxAdapter, policy: dict[str, Any]) -> None:
        self.folder = folder / "run"
        self.ledger = RunLedger.create(
            self.folder,
            origin="deskcert/test/1",
            start={"run": "test", "policy": {"digest": "0" * 64, "content": policy}},
            project_key=ProjectKey.load_or_create(folder / "key"),
            clock=SystemClock(),
            rng=os.urandom,
        )
        self.session = Session(
            adapter,
            self.ledger,
            compile_policy(policy, digest="0" * 64),
            clock=SystemClock(),
            rng=os.urandom,
            options=Options(timeout_ms=400),
        )

    async def __call__(self, command: str, **args: Any) -> dict[str, Any]:
        envelope = await self.session.handle(command, args)
        problems = check("envelope", json.loads(json.dumps(envelope)))
        assert problems == [], (problems, envelope)
        return envelope

    async def window_of(self, app: str) -> dict[str, Any]:
        found = (await self("list-windows"))["data"]["windows"]
        (one,) = [w for w in found if w["app"]["name"] == app and "shown" in w["states"]]
        return dict(one)

    def records(self) -> list[dict[str, Any]]:
        """Seals the ledger; every record is as the schemas say, and every decision comes out again."""
        self.ledger.seal()
        lines = [json.loads(r.line) for r in read_records(self.folder)][1:]
        for line in lines:
            assert check("record", line) == [], (check("record", line), line)
        assert recompute(self.folder) == []
        return lines


@pytest_asyncio.fixture(loop_scope="module")
async def guarded(tmp_path: Path, desktop: Desktop, window: Program) -> AsyncIterator[GuardedDesktop]:
    adapter = await LinuxAdapter.open(
        AppSelector(name="qt-window", pid=window.pid),
        bus_address=desktop.bus,
        display=desktop.display,
        wait_ms=30_000,
        programs=Programs(PROGRAMS, desktop.env),
    )
    made = GuardedDesktop(tmp_path, adapter, {"version": 1, "deny": DENY})
    yield made
    await adapter.close()
    made.records()


def programs_with(desktop: Desktop, word: str) -> list[int]:
    """Process ids of this desktop's running programs whose command line holds the word: the process table's view."""
    found, mark = [], f"DISPLAY={desktop.display}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            told = (path / "cmdline").read_bytes(), (path / "environ").read_bytes().split(b"\0")
            if word.encode() in told[0] and mark in told[1] and state_of(int(path.name)) not in ("Z", "X", None):
                found.append(int(path.name))
    return found


async def shown(witness: Desk, pid: int) -> XWindow:
    (one,) = [w for w in await witness.run(windows_of(pid)) if w.shown]
    return one


async def test_a_launched_program_is_seen_and_its_exit_too(guarded: GuardedDesktop, desktop: Desktop) -> None:
    launched = await guarded("launch", app="message", timeout_ms=20_000)
    assert delivery(launched) == "delivered_verified"
    (pid,) = programs_with(desktop, "--title=Launched")
    assert f"process {pid} " in launched["data"]["verification"]["observed"]
    apps = (await guarded("list-apps"))["data"]["apps"]
    assert {a["name"] for a in apps if a["guarded"]} == {"qt-window", "zenity"}
    again = await guarded("launch", app="message")
    assert again["error"]["details"]["kind"] == "unsafe_retry"
    assert programs_with(desktop, "--title=Launched") == [pid]
    closed = await guarded("close-app", pid=pid)
    assert delivery(closed) == "delivered_verified"
    assert closed["data"]["verification"]["observed"] == f"process {pid} ended with code {-signal.SIGTERM}"
    assert process(pid) is None
    assert (await guarded("close-app", pid=pid))["error"]["code"] == "APP_NOT_FOUND"
    kinds = [r["kind"] for r in guarded.records()]
    assert kinds.count("action.intent") == kinds.count("action.result") == 2
    decided = recompute_records(iter(read_records(guarded.folder)))
    assert (decided.decisions, decided.differences) == (5, ())
    stricter = {"version": 1, "deny": [{"id": "no-zenity", "name": "zenity", "action": ["launch", "close-app"]}]}
    again_judged = [(r.command, r.rule_after) for r in back_test(read_records(guarded.folder), stricter, {})]
    assert sorted(set(again_judged)) == [("close-app", "no-zenity"), ("launch", "no-zenity")]


async def test_a_launched_program_that_cannot_say_its_name_keeps_it(guarded: GuardedDesktop, desktop: Desktop) -> None:
    """On a busy machine it may take its time to answer; it was called by the launch's own word then."""
    assert (await guarded("launch", app="message", timeout_ms=20_000))["ok"]
    (pid,) = programs_with(desktop, "--title=Launched")
    os.kill(pid, signal.SIGSTOP)
    try:
        apps = (await guarded("list-apps"))["data"]["apps"]
        assert {a["name"] for a in apps if a["guarded"]} == {"qt-window", "zenity"}
    finally:
        os.kill(pid, signal.SIGCONT)
    assert delivery(await guarded("close-app", pid=pid)) == "delivered_verified"


async def test_a_program_that_ends_at_once_is_no_success(guarded: GuardedDesktop) -> None:
    failed = await guarded("launch", app="short")
    assert failed["error"]["details"]["kind"] == "post_action_verification"
    assert delivery(failed) == "delivered_unverified"
    told = failed["error"]["details"]["after_action"]["verification"]["observed"]
    assert told.endswith("with code 1")


@pytest.mark.parametrize(
    ("app", "rule"), [("player", "no-player"), ("innocent", "no-sh"), ("nobody", None), ("/bin/sh", None)]
)
async def test_a_program_that_is_denied_is_never_started(
    guarded: GuardedDesktop, desktop: Desktop, app: str, rule: str | None
) -> None:
    denied = await guarded("launch", app=app)
    assert (denied["error"]["code"], delivery(denied)) == ("POLICY_DENIED", "not_delivered")
    assert denied["error"]["details"].get("rule") == rule
    assert programs_with(desktop, "--title=Player") == []
    assert [r["kind"] for r in guarded.records() if r["kind"].startswith("action")] == [
        "action.denied" if rule else "action.refused"
    ]


async def test_only_guarded_programs_are_closed_and_not_where_a_rule_says_no(
    guarded: GuardedDesktop, desktop: Desktop
) -> None:
    assert (await guarded("launch", app="bank", timeout_ms=20_000))["ok"]
    (bank,) = programs_with(desktop, "--title=My Bank")
    other = desktop.start("zenity", "--info", "--title=Other", "--text=Else")
    try:
        await _until(guarded, "list-windows", lambda data: data["windows"][-1]["title"] == "My Bank")
        denied = await guarded("close-app", pid=bank, force=True)
        assert denied["error"]["details"]["rule"] == "bank"
        not_ours = {"name": "zenity", "pid": other.pid, "guarded": False}
        await _until(guarded, "list-apps", lambda data: not_ours in data["apps"])
        assert (await guarded("close-app", pid=other.pid))["error"]["details"]["kind"] == "not_allowed"
        assert (await guarded("close-app", app="zenity"))["error"]["code"] == "AMBIGUOUS_TARGET"
        assert (await guarded("close-app"))["error"]["code"] == "INVALID_ARGS"
        assert process(bank) is not None
        assert other.process.poll() is None
    finally:
        other.kill()
        os.kill(bank, signal.SIGKILL)
    guarded.records()


async def _until(guarded: GuardedDesktop, command: str, holds: Callable[[dict[str, Any]], bool], **args: Any) -> None:
    """Programs come onto the screen, and onto the bus, in their own time."""
    async with asyncio.timeout(30):
        while not ((answer := await guarded(command, **args))["ok"] and holds(answer["data"])):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_window_is_moved_and_sized_and_read_back(
    guarded: GuardedDesktop, window: Program, witness: Desk
) -> None:
    target = await guarded.window_of("qt-window")
    moved = await guarded("move-window", window=target["id"], x=WHERE[0], y=WHERE[1])
    sized = await guarded("resize-window", window=target["id"], width=WHERE[2], height=WHERE[3])
    assert (await shown(witness, window.pid)).box == WHERE
    for answer in (moved, sized):
        told = answer["data"]["verification"]
        assert (told["scope"], told["satisfied"], told["tolerance"], told["unit"]) == ("window_geometry", True, 2, "px")
    assert (await guarded.window_of("qt-window"))["bounds"] == {"x": 40, "y": 30, "width": 600, "height": 700}
    assert delivery(await guarded("focus-window", window=target["id"])) == "delivered_verified"
    assert (await guarded("move-window", window="x1", x=0, y=0))["error"]["code"] == "WINDOW_NOT_FOUND"
    none = await guarded("maximize", window=target["id"])
    assert (none["error"]["code"], delivery(none)) == ("ACTION_NOT_SUPPORTED", "not_delivered")
    assert "no window manager" in none["error"]["message"]
    guarded.records()


@pytest.mark.parametrize(
    ("command", "args"),
    [("move-window", {"x": 1, "y": 2}), ("resize-window", {"width": 300, "height": 300}), ("focus-window", {})],
)
async def test_a_window_that_a_rule_names_stays_where_it_is(
    tmp_path: Path, guarded: GuardedDesktop, window: Program, witness: Desk, command: str, args: dict[str, int]
) -> None:
    target = await guarded.window_of("qt-window")
    rule = {"id": "fixed", "window": target["title"], "action": command, "reason": "stays"}
    adapter = guarded.session._desk.adapter
    assert isinstance(adapter, LinuxAdapter)
    strict = GuardedDesktop(tmp_path / "strict", adapter, {"version": 1, "deny": [rule]})
    before = (await shown(witness, window.pid)).box, await witness.run(_focus)
    denied = await strict(command, window=target["id"], **args)
    assert (denied["error"]["details"]["rule"], delivery(denied)) == ("fixed", "not_delivered")
    assert ((await shown(witness, window.pid)).box, await witness.run(_focus)) == before
    assert [r["kind"] for r in strict.records() if r["kind"].startswith("action")] == ["action.denied"]


def _focus(display: Any) -> int:
    focus = display.get_input_focus().focus
    return int(getattr(focus, "id", focus))


async def test_with_a_window_manager_windows_are_minimised_maximised_and_restored(
    guarded: GuardedDesktop, desktop: Desktop, window: Program, witness: Desk
) -> None:
    if shutil.which("openbox") is None:
        pytest.skip("needs openbox: see .ci/run")
    manager = desktop.start("openbox", "--sm-disable")
    try:
        target = await guarded.window_of("qt-window")
        await _until(guarded, "restore", lambda data: data["verification"]["satisfied"], window=target["id"])
        there = await shown(witness, window.pid)
        for command, holds in (("maximize", {"maximized"}), ("restore", set()), ("minimize", {"minimized"})):
            answer = await guarded(command, window=target["id"])
            assert delivery(answer) == "delivered_verified", answer
            assert await states(witness, there) == holds
        assert delivery(await guarded("restore", window=target["id"])) == "delivered_verified"
        assert delivery(await guarded("focus-window", window=target["id"])) == "delivered_verified"
        moved = await guarded("move-window", window=target["id"], x=60, y=80)
        assert delivery(moved) == "delivered_verified", moved
        denied = GuardedDesktop(guarded.folder.parent / "strict", guarded.session._desk.adapter, _NEVER)  # type: ignore[arg-type]
        for command in ("minimize", "maximize", "restore"):
            assert (await denied(command, window=target["id"]))["error"]["details"]["rule"] == "never"
        assert await states(witness, there) == set()
        denied.records()
        guarded.records()
    finally:
        manager.kill()


_NEVER: dict[str, Any] = {
    "version": 1,
    "deny": [{"id": "never", "role": "window", "action": ["minimize", "maximize", "restore"]}],
}


async def test_the_clipboard_is_set_for_others_and_its_text_is_secret(
    guarded: GuardedDesktop, desktop: Desktop, witness: Desk
) -> None:
    assert (await guarded("clipboard-get"))["data"] == {"absent": True}
    answer = await guarded("clipboard-set", text="Jürgen 漢字")
    assert (delivery(answer), "observed" in answer["data"]["verification"]) == ("delivered_verified", False)
    assert await witness.run(text_of_clipboard(budget_s=2), budget_s=5) == "Jürgen 漢字"
    assert (await guarded("clipboard-get"))["data"] == {"text": "Jürgen 漢字"}
    other = Clipboard(desktop.display)
    try:
        await asyncio.to_thread(other.set, "from elsewhere")
        assert (await guarded("clipboard-get"))["data"] == {"text": "from elsewhere"}
        denied = await guarded("clipboard-set", text="secret-17")
        assert (denied["error"]["details"]["rule"], delivery(denied)) == ("no-secret", "not_delivered")
        assert await witness.run(text_of_clipboard(budget_s=2), budget_s=5) == "from elsewhere"
    finally:
        await asyncio.to_thread(other.close)
    told = json.dumps(guarded.records(), ensure_ascii=False)
    assert "Jürgen" not in told
    assert "secret-17" not in told


async def test_a_window_or_process_that_is_another_one_by_then_is_left_alone(
    guarded: GuardedDesktop, window: Program, witness: Desk
) -> None:
    """Compared in the act: what the policy has judged is what is acted on."""
    adapter = guarded.session._desk.adapter
    assert isinstance(adapter, LinuxAdapter)
    desktop = adapter.desktop
    (there,) = [w for w in await desktop.windows() if "shown" in w.states]
    before = (await shown(witness, window.pid)).box
    for judged in (replace(there, title="Another"), replace(there, app=replace(there.app, generation="1@1"))):
        done = await desktop.operate(
            Operation("move-window", window=judged, box=(1, 2, 300, 300)), budget_ms=500, at=_nowhere
        )
        assert (done.dispatch.end, done.read) == (DispatchEnd.CHANGED, None)
    assert (await shown(witness, window.pid)).box == before
    recycled = replace(there.app, generation=f"{there.app.pid}@1")
    closing = await desktop.operate(Operation("close-app", app=recycled, force=True), budget_ms=500, at=_nowhere)
    assert closing.dispatch.end is DispatchEnd.CHANGED
    assert window.process.poll() is None


async def _nowhere(point: str) -> None:
    pytest.fail(f"{point}, although nothing may be sent")


async def test_an_action_that_never_got_the_lease_is_decided_again_without_a_difference(
    guarded: GuardedDesktop, witness: Desk
) -> None:
    lease = guarded.session._desk.driver._lease
    assert (await lease.take(1_000))[0]
    try:
        late = await guarded("clipboard-set", text="too late", timeout_ms=50)
    finally:
        lease.release()
    assert (late["error"]["details"]["kind"], delivery(late)) == ("lease_timeout", "not_delivered")
    assert await witness.run(text_of_clipboard(budget_s=1)) is None
    assert guarded.records()[-1]["kind"] == "action.refused"


async def test_a_batch_with_a_forbidden_entry_begins_nothing(
    guarded: GuardedDesktop, desktop: Desktop, witness: Desk
) -> None:
    entries = [
        {"command": "clipboard-set", "args": {"text": "harmless"}},
        {"command": "launch", "args": {"app": "player"}},
    ]
    answer = await guarded("batch", entries=entries)
    assert [e["execution"] for e in answer["data"]["entries"]] == ["not_started", "completed"]
    assert answer["data"]["entries"][1]["answer"]["error"]["details"]["rule"] == "no-player"
    assert await witness.run(text_of_clipboard(budget_s=1)) is None
    assert programs_with(desktop, "--title=Player") == []


async def test_surfaces_are_listed(guarded: GuardedDesktop) -> None:
    found = (await guarded("list-surfaces"))["data"]
    assert found["complete"] is True
    assert guarded.records()[-1]["kind"] == "observation"
