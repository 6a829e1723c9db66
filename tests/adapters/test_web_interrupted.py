"""A page that crashes, a browser that is killed, a document that leaves, in the middle of a dispatch: at every event of it
and at every point of the pipeline. What may have been delivered is never said not to have been.

Each handler stands still in a request that the server holds, so the fault comes inside that very event.
"""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.adapters.web.browser import WebBrowser

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

HELD = "const x=new XMLHttpRequest();x.open('GET','/hang/'+event.type,false);try{{x.send()}}catch{{}}"
CLICK_EVENTS = (
    "pointerover",
    "mouseover",
    "pointermove",
    "pointerdown",
    "mousedown",
    "focus",
    "pointerup",
    "mouseup",
    "click",
)
MARKUP = {
    "click": '<button on{0}="' + HELD + '">Target</button>',
    "set-value": '<input aria-label=Target on{0}="' + HELD + '">',
    "press": '<button on{0}="' + HELD + '">Target</button>',
    "check": '<input type=checkbox aria-label=Target on{0}="' + HELD + '">',
    "type": '<input aria-label=Target on{0}="' + HELD + '">',
    "select": '<select aria-label=Target on{0}="' + HELD + '"><option>one<option>two</select>',
}
ARGS: dict[str, dict[str, Any]] = {
    "set-value": {"value": "x"},
    "press": {"key": "Enter"},
    "type": {"text": "ab"},
    "select": {"options": "two"},
}
EVENTS = [
    *(("click", event) for event in CLICK_EVENTS),
    *(("set-value", event) for event in ("focus", "input", "change")),
    *(("press", event) for event in ("keydown", "click", "keyup")),
    *(("check", event) for event in ("click", "change")),
    *(("type", event) for event in ("keydown", "input", "keyup")),
    *(("select", event) for event in ("input", "change")),
]
SENT = ("delivered_unverified", "delivery_uncertain", "delivered_verified")


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, timeout_ms=3_000)
    yield made
    made.records()


async def crash(page: GuardedPage) -> None:
    page.adapter._channel.start("Page.crash", {})


async def leave(page: GuardedPage) -> None:
    session = await page.adapter._context.new_cdp_session(page.adapter._page)
    asyncio.ensure_future(session.send("Page.navigate", {"url": page.witness.url + "/other"})).add_done_callback(
        lambda task: task.cancelled() or task.exception()
    )
    await asyncio.sleep(0)
    page.witness.release.set()


async def processes_of(page: GuardedPage) -> dict[str, int]:
    """Process ids of the browser by what they do; `browser` is the one that all others die with."""
    session = await page.adapter._page.context.browser.new_browser_cdp_session()
    found = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
    return {f"{p['type']} {p['id']}": p["id"] for p in found}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def interrupted(page: GuardedPage, command: str, event: str, fault: Any) -> dict[str, Any]:
    page.witness.pages["/other"] = "<!doctype html><title>other</title>"
    await page.show(MARKUP[command].format(event))

    async def at_the_event() -> None:
        assert await asyncio.to_thread(page.witness.wait_for, lambda log: ("GET", "/hang/" + event, "") in log)
        await fault(page)

    answer, _ = await asyncio.gather(page(command, "Target", **ARGS.get(command, {})), at_the_event())
    return answer


@pytest.mark.parametrize(
    ("fault", "command", "event"), [*((crash, *e) for e in EVENTS), *((leave, *e) for e in EVENTS if e[0] != "type")]
)
async def test_inside_every_event_of_every_kind_of_dispatch(
    page: GuardedPage, fault: Any, command: str, event: str
) -> None:
    answer = await interrupted(page, command, event, fault)
    assert delivery(answer) in SENT, answer
    assert answer["ok"] or "recovery" not in answer["error"]


@pytest.mark.parametrize("fault", [crash, leave])
@pytest.mark.parametrize("point", ["dispatched", "reached", "verified", "intent_recorded", "leased"])
async def test_at_every_point_of_the_pipeline(page: GuardedPage, point: str, fault: Any) -> None:
    page.witness.pages["/other"] = "<!doctype html><title>other</title>"
    await page.show("<button onclick=\"fetch('/hit?n=x',{method:'POST',keepalive:true})\">Target</button>")
    page.hooks[point] = lambda: fault(page)
    answer = await page("click", "Target")
    if point in ("dispatched", "reached", "verified"):
        assert delivery(answer) in SENT, answer
    elif delivery(answer) == "not_delivered":
        assert page.witness.wrote() == []


@pytest.mark.parametrize(
    "where",
    ["intent_recorded", "dispatched", "reached", "verified", "event pointerdown", "event click", "event change"],
)
async def test_r043_a_killed_browser_never_leaves_a_not_delivered_behind(
    tmp_path: Path, witness: Witness, where: str
) -> None:
    browser = await WebBrowser.launch()
    page = GuardedPage(tmp_path, await browser.open(), witness, timeout_ms=3_000)

    pids = await processes_of(page)

    async def kill(_page: object = None) -> None:
        os.kill(next(pid for name, pid in pids.items() if name.startswith("browser ")), signal.SIGKILL)

    try:
        kind, _, event = where.partition(" ")
        if kind == "event":
            answer = await interrupted(page, "check" if event == "change" else "click", event, kill)
        else:
            await page.show("<button onclick=\"fetch('/hit?n=x',{method:'POST',keepalive:true})\">Target</button>")
            page.hooks[where] = kill
            answer = await page("click", "Target")
        if where == "intent_recorded":
            assert witness.wrote() == []
        else:
            assert delivery(answer) in SENT, answer
        lost = await page.ask("snapshot")
        assert lost["error"]["details"]["kind"] == "component_lost", lost
        again = await page("click", "Target")
        assert again["ok"] is False
        assert "recovery" not in again["error"] or again["error"]["recovery"]["requires_fresh_snapshot"]
    finally:
        await browser.close()
        page.records()
    for _ in range(500):
        if not any(map(alive, pids.values())):
            break
        await asyncio.sleep(0.02)  # the kernel has no event for a process that is nobody's child
    else:
        pytest.fail("a process of the browser is left")
