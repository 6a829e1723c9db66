"""Compared in the act, and every way in which an answer can be lost. The server's log is the witness."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from web_pages import CLICK, Witness, act, find, look, nowhere, script, show

from deskcert.adapters.base import Action, DispatchEnd, Gone, ObserveOptions, Unreadable
from deskcert.adapters.web.adapter import WebAdapter
from deskcert.adapters.web.browser import WebBrowser
from deskcert_schema.errors import AdapterError

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

HIT = "fetch('/hit?n=%s',{method:'POST',keepalive:true})"


def button(name: str, extra: str = "") -> str:
    return f'<button {extra} onclick="{HIT % name.replace(" ", "")}">{name}</button>'


async def test_a_click_is_the_full_sequence_and_arrives_once(adapter: WebAdapter, witness: Witness) -> None:
    events = "pointerover mouseover pointerdown mousedown focus pointerup mouseup click"
    listen = (
        f"<script>for(const t of '{events}'.split(' '))b.addEventListener(t,e=>(window.log??=[]).push(e.type))</script>"
    )
    seen = await show(adapter, witness, button("Buy", "id=b") + listen)
    points: list[str] = []

    async def at(point: str) -> None:
        points.append(point)

    handle = find(seen, name="Buy")
    expected = await look(adapter, handle)
    found = await adapter.perform(handle, CLICK, expected, number=7, budget_ms=5_000, at=at)
    assert (found.end, found.reached, found.error) == (DispatchEnd.COMPLETED, True, None)
    assert found.hit is not None
    assert (found.hit.role, found.hit.name, found.hit.same_as_target) == (
        "button",
        "Buy",
        True,
    )
    assert points == ["dispatched", "reached"]
    assert await script(adapter, "window.log") == events.split(" ")
    assert await asyncio.to_thread(witness.wait_for, lambda log: ("POST", "/hit?n=Buy", "") in log)
    assert witness.wrote() == [("POST", "/hit?n=Buy", "")]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ("b.textContent='Delete all'", "names.text"),
        ("b.setAttribute('aria-label','Delete')", "names.accessible"),
        ("b.title='Delete'", "names.title"),
        ("b.setAttribute('role','link')", "role"),
        ("b.form.action='/elsewhere'", "destination"),
        ("b.disabled=true", "states.enabled"),
        ("b.style.opacity=0", "states.visible"),
        ("cell.textContent='Order 2'", "context"),
        ("l.textContent='Delete'", "paths"),
        ("history.pushState(0,'','/other')", "url"),
        ("o.style.display='block'", "hit_test"),
    ],
)
async def test_changed_between_check_and_dispatch_sends_nothing(
    adapter: WebAdapter, witness: Witness, change: str, part: str
) -> None:
    body = (
        "<form action=/order method=post><table><tr><td id=cell>Order 1<td><button id=b>Approve</button></table>"
        "<label for=b id=l>Okay</label></form><script>window.log=[];for(const t of ['pointerover','mousedown','click'])"
        "addEventListener(t,e=>e.isTrusted||log.push(t),true)</script>"
        "<div id=o style='display:none;position:fixed;inset:0;background:#fff'>Cover</div>"
    )
    seen = await show(adapter, witness, body)
    handle = find(seen, id="b")
    expected = await look(adapter, handle)
    await script(adapter, change)
    found = await adapter.perform(handle, CLICK, expected, number=7, budget_ms=5_000, at=nowhere)
    assert found.end is DispatchEnd.CHANGED
    assert part in found.differences
    assert found.live is not None
    assert (found.events_sent, found.reached, found.hit) == ((), False, None)
    assert await script(adapter, "log") == []
    assert witness.wrote() == []


@pytest.mark.parametrize(
    ("on", "change", "difference"),
    [
        ("pointerdown", "this.textContent='Delete'", "names.accessible"),
        ("mousedown", "this.remove()", "attached"),
        ("pointerup", "this.disabled=true", "states.enabled"),
        ("pointerover", "late.style.display='block'", "hit_test"),
        ("focus", "this.setAttribute('aria-label','Delete')", "names.accessible"),
    ],
)
async def test_changed_by_its_own_events_stops_the_rest(
    adapter: WebAdapter, witness: Witness, on: str, change: str, difference: str
) -> None:
    cover = "<div id=late style='display:none;position:fixed;inset:0;background:#fff'>Late</div>"
    seen = await show(adapter, witness, button("Contact", f'on{on}="{change}"') + cover)
    found = await act(adapter, find(seen, name="Contact"))
    assert found.end is DispatchEnd.STOPPED
    assert difference in found.differences
    assert found.events_sent[-1] == on
    assert found.stopped_before is not None
    assert "click" not in found.events_sent
    assert await script(adapter, "performance.getEntriesByType('resource').length") == 0
    assert witness.wrote() == []


async def test_a_menu_button_that_opens_on_pointerdown_is_no_other_target(
    adapter: WebAdapter, witness: Witness
) -> None:
    seen = await show(
        adapter, witness, button("Menu", "aria-expanded=false onpointerdown=\"this.ariaExpanded='true'\"")
    )
    assert (await act(adapter, find(seen, name="Menu"))).end is DispatchEnd.COMPLETED


async def test_a_handler_that_hangs_is_reached_and_has_no_answer(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, '<button onclick="const t=Date.now()+1500;while(Date.now()<t);">Hang</button>')
    handle = find(seen, name="Hang")
    expected = await look(adapter, handle)
    points: list[str] = []

    async def at(point: str) -> None:
        points.append(point)

    found = await adapter.perform(handle, CLICK, expected, number=7, budget_ms=200, at=at)
    assert (found.end, found.reached) == (DispatchEnd.NO_ANSWER, True)
    assert "click" in found.events_sent
    assert points == ["dispatched", "reached"]
    with pytest.raises(AdapterError) as caught:
        await adapter.observe(ObserveOptions(budget_ms=50))
    assert caught.value.kind == "observation_incomplete"
    assert isinstance(await adapter.probe(handle, CLICK, budget_ms=50), Unreadable)


@pytest.mark.parametrize("kind", ["confirm", "alert", "prompt"])
async def test_a_dialog_that_blocks_is_an_answer_at_once(
    browser: WebBrowser, adapter: WebAdapter, witness: Witness, kind: str
) -> None:
    seen = await show(
        adapter, witness, f"<button onclick=\"if({kind}('Delete 3 invoices?')){HIT % 'yes'}\">Clean up</button>"
    )
    handle = find(seen, name="Clean up")
    found = await act(adapter, handle)
    assert (found.end, found.reached) == (DispatchEnd.NO_ANSWER, True)
    assert found.dialog is not None
    assert (found.dialog.type, found.dialog.text) == (kind, "Delete 3 invoices?")
    await (await browser.open()).close()  # time enough for anybody who would answer it by themselves
    assert adapter.dialog() == found.dialog
    # Nobody answered it, and nothing else is possible until somebody does.
    assert isinstance(await adapter.probe(handle, CLICK, budget_ms=200), Unreadable)
    with pytest.raises(AdapterError) as caught:
        await adapter.observe(ObserveOptions())
    assert caught.value.kind == "pending_dialog"
    assert (await adapter.window()).title == "page"
    assert witness.wrote() == []


async def test_a_server_that_commits_and_hangs_is_a_pending_request(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(
        adapter, witness, "<form action=/hang/order method=post><input name=q value=1><button>Order</button></form>"
    )
    found = await act(adapter, find(seen, name="Order"), number=41)
    assert (found.end, found.reached) == (DispatchEnd.COMPLETED, True)
    assert await asyncio.to_thread(witness.wait_for, lambda log: any(e[0] == "POST" for e in log))
    await adapter.window()  # one round trip behind the act, everything it started is known
    assert [(r.method, r.url, r.how, r.state, r.status) for r in adapter.requests(41)] == [
        ("POST", witness.url + "/hang/order", "window", "pending", None)
    ]
    # The page is loaded again: what was asked before is still known, and still unanswered.
    await adapter.navigate(witness.url + "/page", number=42, budget_ms=5_000, at=nowhere)
    assert [(r.state, r.status) for r in adapter.requests(41)] == [("failed", None)]
    assert len(witness.wrote()) == 1


async def test_set_value_is_an_edit_that_the_page_notices(adapter: WebAdapter, witness: Witness) -> None:
    body = (
        "<input id=f aria-label=Amount value=1><script>window.log=[];for(const t of ['beforeinput','input','change'])"
    )
    seen = await show(adapter, witness, body + "f.addEventListener(t,e=>log.push([t,f.value]))</script>")
    found = await act(adapter, find(seen, id="f"), Action("set-value", value="1000"))
    assert (found.end, found.reached) == (DispatchEnd.COMPLETED, True)
    assert await script(adapter, "log") == [["beforeinput", "1"], ["input", "1000"], ["change", "1000"]]
    again = await look(adapter, find(seen, id="f"), Action("set-value", value="2"))
    assert again.value.value == "1000"  # type: ignore[union-attr]
    assert (await act(adapter, find(seen, id="f"), Action("set-value", value="2"))).end is DispatchEnd.COMPLETED


async def test_set_value_in_an_editable_region(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, "<div contenteditable role=textbox aria-label=Text id=f>old <b>words</b></div>")
    found = await act(adapter, find(seen, id="f"), Action("set-value", value="new"))
    assert (found.end, found.reached) == (DispatchEnd.COMPLETED, True)
    assert await script(adapter, "f.innerText") == "new"


async def test_a_value_is_no_identity_and_a_secret_is_not_read(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(
        adapter, witness, "<input id=f aria-label=Note value=a><input id=p type=password aria-label=Pin value=hunter2>"
    )
    before = await look(adapter, find(seen, id="f"))
    await script(adapter, "f.value='b'")
    after = await look(adapter, find(seen, id="f"))
    assert before.digest == after.digest
    assert before.value != after.value
    assert "hunter2" not in repr(await look(adapter, find(seen, id="p")))
    assert "hunter2" not in repr(seen.nodes)


@pytest.mark.parametrize("action", [Action("set-value", value="x"), Action("press", key="F5"), Action("drag")])
async def test_what_cannot_be_done_is_not_sent(adapter: WebAdapter, witness: Witness, action: Action) -> None:
    seen = await show(adapter, witness, button("Plain"))
    handle = find(seen, name="Plain")
    found = await adapter.perform(handle, action, await look(adapter, handle), number=7, budget_ms=2_000, at=nowhere)
    assert (found.end, found.reached, found.events_sent) == (DispatchEnd.NOT_SENT, False, ())


async def test_a_renderer_that_crashes_in_the_act_gives_no_answer(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, '<button onclick="const t=Date.now()+9000;while(Date.now()<t);">Hang</button>')
    handle = find(seen, name="Hang")
    expected = await look(adapter, handle)

    async def crash(point: str) -> None:
        if point == "reached":
            adapter._channel.start("Page.crash", {})

    started = time.monotonic()
    found = await adapter.perform(handle, CLICK, expected, number=7, budget_ms=1_000, at=crash)
    assert (found.end, found.reached) == (DispatchEnd.NO_ANSWER, True)
    assert time.monotonic() - started < 8


async def test_after_a_crash_nothing_is_sent_any_more(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, button("Buy"))
    handle = find(seen, name="Buy")
    expected = await look(adapter, handle)
    adapter._channel.start("Page.crash", {})
    await asyncio.wait_for(adapter._alive.wait(), 10)
    assert await adapter.probe(handle, CLICK, budget_ms=200) == Gone("process_changed")
    found = await adapter.perform(handle, CLICK, expected, number=7, budget_ms=1_000, at=nowhere)
    assert (found.end, found.reached) == (DispatchEnd.NOT_SENT, False)
    with pytest.raises(AdapterError) as caught:
        await adapter.observe(ObserveOptions())
    assert caught.value.kind == "component_lost"


async def test_a_browser_killed_in_the_act_gives_no_answer(witness: Witness) -> None:
    browser = await WebBrowser.launch()
    try:
        adapter = await browser.open()
        seen = await show(
            adapter, witness, '<button onclick="const t=Date.now()+9000;while(Date.now()<t);">Hang</button>'
        )
        handle = find(seen, name="Hang")
        expected = await look(adapter, handle)
        session = await adapter._page.context.browser.new_browser_cdp_session()
        processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
        browser_pid = next(p["id"] for p in processes if p["type"] == "browser")

        async def kill(point: str) -> None:
            if point == "reached":
                os.kill(browser_pid, signal.SIGKILL)

        found = await adapter.perform(handle, CLICK, expected, number=7, budget_ms=3_000, at=kill)
        assert (found.end, found.reached) == (DispatchEnd.NO_ANSWER, True)
        await asyncio.wait_for(browser._life.wait(), 10)
        assert browser.lost == "the browser is gone"
        with pytest.raises(AdapterError):
            await adapter.window()
    finally:
        await browser.close()
