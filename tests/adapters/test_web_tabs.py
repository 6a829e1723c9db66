"""Tabs: those that pages open are guarded and recorded, one is acted on; the server's log is the witness."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.browser import WebBrowser
from deskcert.adapters.web.tabs import WebTabs

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

OPENER = (
    "<a href=/other target=_blank>Open other</a><a href=/wire target=_blank>Open wire</a>"
    "<button onclick=\"window.child=window.open('/asks')\">Open asking</button>"
    "<button onclick=\"fetch('/effect?main',{method:'POST'})\">Here</button>"
)
OTHER = (
    "<title>Other</title><button onclick=\"fetch('/effect?other',{method:'POST'})\">There</button>"
    '<button onclick="window.close()">Close me</button>'
)
ASKS = "<title>Asks</title><button>Edit</button><script>onbeforeunload=e=>{e.preventDefault();return 'x'}</script>"
POLICY = {"version": 1, "deny": [{"id": "wire", "action": "tab-focus", "destination": {"url": "**/wire"}}]}


class TabbedPage(GuardedPage):
    adapter: Any

    async def tabs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.ask("tabs"))["data"]["tabs"]
        return found

    async def script(self, text: str) -> Any:
        return await self.adapter.current.shown.evaluate(text)


@pytest_asyncio.fixture(loop_scope="module")
async def page(tmp_path: Path, browser: WebBrowser, witness: Witness) -> AsyncIterator[TabbedPage]:
    witness.pages |= {"/other": OTHER, "/asks": ASKS, "/wire": "<title>Wire</title><button>Send</button>"}
    opened: WebTabs = await browser.open_tabs()
    made = TabbedPage(tmp_path, opened, witness, policy=POLICY, timeout_ms=3_000)
    await made.show(OPENER)
    yield made
    made.records()
    await opened.close()


async def one_is_left(page: TabbedPage) -> None:
    async with asyncio.timeout(10):
        while len(await page.tabs()) == 2:
            await page.ask("wait", ms=20)


async def test_a_tab_that_a_click_opened_is_told_recorded_and_not_followed(page: TabbedPage) -> None:
    answer = await page("click", "Open other")
    [tab] = answer["data"]["surfaces"]
    assert (tab["type"], tab["title"], tab["url"]) == ("tab", "Other", page.witness.url + "/other")
    assert [(t["title"], t["guarded"]) for t in await page.tabs()] == [("page", True), ("Other", False)]
    await page("click", "Here")
    assert page.witness.wait_for(lambda log: any("/effect" in p for _, p, _ in log))
    assert [p for _, p, _ in page.witness.wrote()] == ["/effect?main"]
    opened = [r for r in page.records() if r["kind"] == "surface"]
    assert [(r["event"], r["url"], r["by"]) for r in opened] == [
        ("tab_opened", page.witness.url + "/other", answer["ledger"]["seq"])
    ]


async def test_a_focused_tab_is_acted_on_and_refs_keep_their_tab(page: TabbedPage) -> None:
    await page("click", "Open other")
    here = page.nodes["Here"]["ref_id"]
    first, other = [t["id"] for t in await page.tabs()]
    answer = await page.ask("tab-focus", tab=other)
    assert (answer["ok"], delivery(answer)) == (True, "delivered_verified"), answer
    assert answer["data"]["target"] == {"url": page.witness.url + "/other", "tab": {"id": other, "title": "Other"}}
    await page.look()
    await page("click", "There")
    assert (await page.ask("click", ref=here, timeout_ms=0))["error"]["code"] == "STALE_REF"
    assert page.witness.wait_for(lambda log: ("POST", "/effect?other", "") in log)
    await page.ask("tab-focus", tab=first)
    assert (await page.ask("click", ref=here))["ok"], "the element is where it was, in its own tab"
    assert page.witness.wait_for(lambda log: ("POST", "/effect?main", "") in log)
    assert len(page.witness.wrote()) == 2


async def test_a_tab_at_a_forbidden_address_is_not_gone_to(page: TabbedPage) -> None:
    await page("click", "Open wire")
    wire = next(t["id"] for t in await page.tabs() if not t["guarded"])
    denied = await page.ask("tab-focus", tab=wire)
    assert (denied["error"]["code"], denied["error"]["details"]["rule"]) == ("POLICY_DENIED", "wire")
    assert delivery(denied) == "not_delivered"
    batch = [{"command": "click", "args": {"ref": page.nodes["Here"]["ref_id"]}}]
    both = await page.ask("batch", entries=[*batch, {"command": "tab-focus", "args": {"tab": wire}}])
    assert both["data"]["entries"][0]["execution"] == "not_started", "every entry is judged before the first one runs"
    assert (await page.ask("tab-focus", tab="nowhere"))["error"]["code"] == "WINDOW_NOT_FOUND"
    assert [t["guarded"] for t in await page.tabs()] == [True, False]


async def test_a_closed_tab_is_gone_and_the_last_one_stays(page: TabbedPage) -> None:
    await page("click", "Open other")
    other = next(t["id"] for t in await page.tabs() if not t["guarded"])
    await page.ask("tab-focus", tab=other)
    closed = await page.ask("tab-close", tab=other)
    assert (closed["ok"], delivery(closed)) == (True, "delivered_verified"), closed
    [left] = await page.tabs()
    assert (left["title"], left["guarded"]) == ("page", True)
    assert (await page.ask("tab-close", tab=left["id"]))["error"]["code"] == "ACTION_NOT_SUPPORTED"
    assert (await page.ask("tab-close", tab=other))["error"]["code"] == "WINDOW_NOT_FOUND"
    await page.look()
    assert (await page("click", "Here"))["ok"]


async def test_a_tab_that_asks_before_it_is_left_is_closed_when_that_is_answered(page: TabbedPage) -> None:
    clicked = await page("click", "Open asking")
    assert clicked["ok"], clicked
    asks = next(t["id"] for t in await page.tabs() if not t["guarded"])
    await page.ask("tab-focus", tab=asks)
    await page.look()
    await page("click", "Edit")
    closing = await page.ask("tab-close", tab=asks)
    assert closing["data"]["details"]["pending_dialog"]["type"] == "beforeunload", closing
    assert (await page("click", "Edit"))["error"]["details"]["kind"] == "pending_dialog"
    assert (await page.ask("dialog-dismiss"))["ok"]
    assert len(await page.tabs()) == 2
    assert (await page.ask("tab-close", tab=asks))["ok"]
    assert (await page.ask("dialog-accept"))["ok"]
    await one_is_left(page)


async def test_a_page_that_closes_itself_leaves_a_typed_refusal(page: TabbedPage) -> None:
    await page.script("window.child = open('/other')")
    await page.ask("status")
    first, other = [t["id"] for t in await page.tabs()]
    await page.ask("tab-focus", tab=other)
    await page.look()
    await page("click", "Close me")
    await one_is_left(page)
    gone = await page.ask("snapshot")
    assert (gone["error"]["code"], gone["error"]["details"]["kind"]) == ("APP_UNRESPONSIVE", "component_lost")
    assert "tab-focus" in gone["error"]["message"]
    assert (await page.ask("tab-focus", tab=first))["ok"]
    await page.look()
    assert (await page("click", "Here"))["ok"]


async def test_a_dialog_of_another_tab_is_seen_and_answered(page: TabbedPage) -> None:
    page.witness.pages["/shouts"] = (
        "<title>Shouts</title><script>setTimeout(() => window.got = confirm('Sure?'))</script>"
    )
    await page.script("void open('/shouts')")
    assert (await page.ask("wait", dialog=True))["data"]["dialog"]["text"] == "Sure?"
    assert (await page("click", "Here"))["error"]["details"]["kind"] == "pending_dialog"
    assert (await page.ask("dialog-accept"))["ok"]
    assert (await page("click", "Here"))["ok"]
