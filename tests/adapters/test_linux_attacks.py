"""Names that nobody would choose, windows that close in the act, and a desktop that dies or stops under the session."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from desktop_rig import Desktop, Program, missing
from guarded_pages import GuardedPage, walk
from linux_stage import LinuxStage, started

from deskcert.adapters.linux.desktop_session import DesktopSession
from deskcert.certify.processes import child_environment
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import PipelinePoint

UNCERTAIN = {"delivery": "delivery_uncertain", "retry": "never_automatic"}
NOT_SENT = {"delivery": "not_delivered", "retry": "safe"}


@pytest_asyncio.fixture
async def stage(desktop: Desktop) -> AsyncIterator[LinuxStage]:
    opened = await LinuxStage.open(desktop)
    yield opened
    await opened.close()


@pytest.fixture
def guarded(tmp_path: Path, stage: LinuxStage) -> GuardedPage:
    return GuardedPage(tmp_path, stage.adapter, None)  # type: ignore[arg-type]


def _first_button(shown: dict[str, Any]) -> dict[str, Any]:
    return next(n for n in walk(shown["tree"]) if n["role"] == "button")


async def test_a_name_is_read_as_a_person_sees_it_and_no_odd_one_breaks_the_reading(
    stage: LinuxStage, guarded: GuardedPage
) -> None:
    """Its ledger, too, holds only what the schemas allow: `ask` and `records` look."""
    for told in (r"\ud800lone", r"nul\u0000here", r"\U0010ffff\ufffe", r"bell\u0007\u001b[31m"):
        await stage.do("rename", "Buy", told)
        shown = await guarded.look()
        assert shown["complete"], told
    acted = await guarded.ask("click", ref=_first_button(shown)["ref_id"], timeout_ms=5_000)
    assert acted["ok"]
    for disguised in (r"\u202eeteled", r"d\u0435l\u0435t\u0435", r"de\u200blete"):
        await stage.do("rename", "Buy", disguised)
        denied = await guarded.ask("click", ref=_first_button(await guarded.look())["ref_id"])
        assert (denied["error"]["code"], denied["error"]["details"]["rule"]) == ("POLICY_DENIED", "no-delete")
    assert await stage.until("buy")
    assert await stage.effects() == ["buy"]
    guarded.records()


async def test_a_name_too_long_to_be_compared_is_unknown_and_not_acted_on(
    stage: LinuxStage, guarded: GuardedPage
) -> None:
    await stage.do("long", "Buy", "200000")
    shown = await guarded.look()
    assert not shown["complete"]
    assert "longer than 100000 characters" in shown["reasons"][0]
    await stage.do("long", "Buy", "5000")
    button = _first_button(await guarded.look())
    assert len(button["name"]) == 5_000
    refused = await guarded.ask("click", ref=button["ref_id"], timeout_ms=0)
    assert (refused["error"]["code"], refused["error"]["disposition"]) == ("APP_UNRESPONSIVE", NOT_SENT)
    assert "longer than 4000 characters" in refused["error"]["message"]
    assert await stage.effects() == []


async def test_a_window_that_closes_while_its_button_is_pressed_was_pressed_once(
    stage: LinuxStage, guarded: GuardedPage
) -> None:
    await stage.do("second")
    await guarded.look()
    pressed = await guarded("click", "Send and close", timeout_ms=5_000)
    assert pressed["data"]["disposition"]["delivery"] == "delivered_unverified"
    again = await guarded("click", "Send and close", timeout_ms=0)
    assert again["error"]["disposition"]["delivery"] == "not_delivered"
    assert await stage.effects() == ["sent"]


async def test_of_two_programs_with_the_name_of_one_that_ended_none_is_taken(
    desktop: Desktop, stage: LinuxStage, guarded: GuardedPage
) -> None:
    await guarded.look()
    others = [await asyncio.to_thread(started, desktop) for _ in range(2)]
    try:
        assert (await guarded("click", "Buy", timeout_ms=5_000))["ok"]
        assert await stage.until("buy")
        stage.program.kill()
        assert (await guarded("click", "Buy"))["error"]["code"] == "STALE_REF"
        refused = await guarded.ask("snapshot")
        assert "2 running programs match" in refused["error"]["message"]
        assert [p.effects() for p in others] == [[], []]
    finally:
        for program in others:
            program.kill()


def _xvfb(desktop: Desktop) -> subprocess.Popen[Any]:
    return next(p for p in desktop._started if "Xvfb" in p.args)


async def test_a_stopped_x_server_keeps_nobody_but_the_one_who_asks_it(
    desktop: Desktop, stage: LinuxStage, guarded: GuardedPage
) -> None:
    await guarded.look()
    windows = (await guarded.ask("list-windows"))["data"]["windows"]
    xvfb = _xvfb(desktop)
    xvfb.send_signal(signal.SIGSTOP)
    try:
        desk = stage.adapter._desk
        silent = await asyncio.gather(
            *(desk.run(lambda display: display.sync(), budget_s=0.2) for _ in range(40)), return_exceptions=True
        )
        assert {type(error) for error in silent} == {AdapterError}
        # The ledger is sealed, and pictures are packed, in the same process's pool of threads.
        assert await asyncio.wait_for(asyncio.to_thread(int), 20) == 0
        refused = await guarded.ask("list-windows")
        assert refused["error"]["details"]["kind"] == "component_lost"
    finally:
        xvfb.send_signal(signal.SIGCONT)
    async with asyncio.timeout(20):
        while not (again := await guarded.ask("list-windows"))["ok"]:
            pass
    assert again["data"] == {**again["data"], "windows": windows}
    assert (await guarded("click", "Buy", timeout_ms=10_000))["ok"]
    assert await stage.until("buy")


@pytest.mark.parametrize("headed", [False, True], ids=["the session bus", "the X server"])
async def test_a_desktop_that_dies_in_the_act_leaves_it_uncertain(tmp_path: Path, *, headed: bool) -> None:
    if lacking := missing():
        pytest.skip(f"a desktop needs {', '.join(lacking)}: see .ci/run")
    with Desktop() as desktop:
        stage = await LinuxStage.open(desktop, headed=headed)
        guarded = GuardedPage(tmp_path, stage.adapter, None)  # type: ignore[arg-type]
        victims = {True: [_xvfb(desktop)], False: [p for p in desktop._started if "--session" in p.args]}[headed]
        await guarded.look()

        async def die() -> None:
            for victim in victims:
                victim.kill()
                await asyncio.to_thread(victim.wait)

        if headed:
            guarded.hooks[PipelinePoint.DISPATCHED.value] = die
        before: Callable[..., Any] = stage.adapter._bus.send

        async def slowly(ref: Any, interface: str, member: str, *args: Any, **more: Any) -> Any:
            if member != "DoAction":
                return await before(ref, interface, member, *args, **more)
            await stage.do("freeze")
            call = asyncio.ensure_future(before(ref, interface, member, *args, **more))
            for _ in range(3):  # it is on its way, and its answer never comes
                await asyncio.sleep(0)
            await die()
            return await call

        stage.adapter._bus.send = slowly  # type: ignore[method-assign]
        acted = await guarded("click", "Buy", timeout_ms=3_000)
        assert acted["error"]["disposition"] == UNCERTAIN, acted
        stage.program.go()
        after = await guarded.ask("clipboard-set" if headed else "click", **_next(guarded, headed=headed))
        assert (after["error"]["code"], after["error"]["disposition"]) == ("APP_UNRESPONSIVE", NOT_SENT), after
        assert guarded.records()[-1]["kind"] in ("action.refused", "action.result")
        await stage.adapter.close()
        await _ended(stage.program)


def _next(guarded: GuardedPage, *, headed: bool) -> dict[str, Any]:
    return {"text": "x"} if headed else {"ref": guarded.nodes["Express"]["ref_id"], "timeout_ms": 0}


async def _ended(program: Program) -> None:
    await asyncio.to_thread(program.kill)


async def test_a_run_whose_x_server_ended_was_not_the_agents_fault() -> None:
    if lacking := missing():
        pytest.skip(f"a desktop needs {', '.join(lacking)}: see .ci/run")
    session = await DesktopSession.start(child_environment("lost-desktop"))
    try:
        assert session.lost is None
        server = session._started[0]
        os.kill(server.pid, signal.SIGKILL)
        await server.wait()
        assert session.lost == "the X server of the run has ended"
    finally:
        await session.close()
