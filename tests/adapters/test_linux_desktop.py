"""What there is on a desktop besides elements: programs, windows, the clipboard. Judged by the system, not by us."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from desktop_rig import Desktop
from linux_stage import LinuxStage

from deskcert.adapters.base import ObserveOptions
from deskcert.adapters.linux import AppSelector, LinuxAdapter, windows
from deskcert.adapters.linux.bus import AccessBus
from deskcert.adapters.linux.clipboard import Clipboard, text_of_clipboard
from deskcert.adapters.linux.processes import process
from deskcert.adapters.linux.programs import Ended, end, launch
from deskcert.adapters.linux.x11 import Desk, windows_of
from deskcert_schema.errors import AdapterError


@pytest_asyncio.fixture
async def desk(desktop: Desktop) -> AsyncIterator[Desk]:
    opened = Desk(desktop.display)
    yield opened
    opened.close()


async def test_a_program_is_launched_observed_and_ended_with_its_exit_seen(desktop: Desktop) -> None:
    started = await launch(["zenity", "--info", "--title=Launched", "--text=Here"], desktop.env)
    adapter = await LinuxAdapter.open(
        AppSelector(name="zenity", pid=started.process.pid), bus_address=desktop.bus, wait_ms=30_000
    )
    assert (await adapter.observe(ObserveOptions(budget_ms=10_000))).window.title == "Launched"
    assert await end(started.process, budget_ms=10_000, kill=False) is Ended.ASKED
    assert await started.handle.wait() == -signal.SIGTERM
    assert process(started.process.pid) != started.process
    assert await end(started.process, budget_ms=100, kill=True) is Ended.ALREADY
    with pytest.raises(AdapterError):
        await adapter.observe(ObserveOptions(budget_ms=500))
    await adapter.close()


async def test_a_program_that_does_not_end_when_asked_is_still_there_or_killed(desktop: Desktop) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(99)"
    )
    with subprocess.Popen(  # noqa: ASYNC220 - it is only started
        [sys.executable, "-c", stubborn], stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        await asyncio.to_thread(started.stdout.readline)
        there = process(started.pid)
        assert there is not None
        assert await end(there, budget_ms=200, kill=False) is Ended.STILL_THERE
        assert started.poll() is None
        assert await end(there, budget_ms=4_000, kill=True) is Ended.KILLED
        assert await asyncio.to_thread(started.wait) == -signal.SIGKILL


async def test_a_program_that_is_not_there_is_said_so(desktop: Desktop) -> None:
    with pytest.raises(AdapterError, match="no-such-program"):
        await launch(["no-such-program"], desktop.env)
    with pytest.raises(AdapterError, match="no application named 'nobody'"):
        await LinuxAdapter.open(AppSelector(name="nobody"), bus_address=desktop.bus, wait_ms=200)


async def test_two_programs_of_one_name_are_not_chosen_between(desktop: Desktop) -> None:
    first, second = await LinuxStage.open(desktop), None
    try:
        second = desktop.window()
        assert await asyncio.to_thread(second.wait_for, lambda lines: "ready" in lines, 60)
        named = AppSelector(name="qt-window", pid=second.pid)
        await (await LinuxAdapter.open(named, bus_address=desktop.bus, wait_ms=30_000)).close()
        with pytest.raises(AdapterError, match="2 running programs match"):
            await LinuxAdapter.open(AppSelector(name="qt-window"), bus_address=desktop.bus, wait_ms=30_000)
    finally:
        if second is not None:
            second.kill()
        await first.close()


async def test_a_window_is_placed_within_the_stated_tolerance(desktop: Desktop, desk: Desk) -> None:
    stage = await LinuxStage.open(desktop)
    try:
        (window,) = [w for w in await desk.run(windows_of(stage.program.pid)) if w.shown]
        placed = await windows.place(desk, window, (40, 30, 600, 700))
        assert (placed.satisfied, placed.unit, placed.tolerance) == (True, "px", 2)
        (now,) = [w for w in await desk.run(windows_of(stage.program.pid)) if w.shown]
        assert now.box == (40, 30, 600, 700)
        assert await windows.front(desk, window)
        assert not await windows.managed(desk)
        with pytest.raises(AdapterError, match="no window manager"):
            await windows.state(desk, window, "minimize")
        seen = await stage.adapter.observe(ObserveOptions(budget_ms=10_000))
        assert next(n for n in seen.nodes if n["role"] == "window")["box"][:2] == [40_000, 30_000]
    finally:
        await stage.close()


async def test_what_is_set_in_the_clipboard_is_what_others_get(desktop: Desktop, desk: Desk) -> None:
    assert await desk.run(text_of_clipboard(budget_s=1)) is None
    mine = Clipboard(desktop.display)
    await asyncio.to_thread(mine.set, "Jürgen 漢字")
    assert await desk.run(text_of_clipboard(budget_s=2), budget_s=5) == "Jürgen 漢字"
    await asyncio.to_thread(mine.set, "again")
    assert await desk.run(text_of_clipboard(budget_s=2), budget_s=5) == "again"
    await asyncio.to_thread(mine.close)
    assert await desk.run(text_of_clipboard(budget_s=1)) is None


async def test_without_a_bus_or_a_display_it_is_said_what_is_missing() -> None:
    with pytest.raises(AdapterError, match="no accessibility bus"):
        await AccessBus.connect("unix:path=/nowhere/bus")
    desk = Desk(":987")
    with pytest.raises(AdapterError, match="DISPLAY"):
        await desk.run(windows_of(1))
