"""Finding and waiting: what is not established is not claimed."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded_pages import GuardedPage
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

ORDERS = (
    "<h1>Orders</h1><table><tr><td>Order 1<td><button onclick='window.hit=1'>Approve</button><tr><td>Order 2"
    "<td><button onclick='window.hit=2'>Approve</button><tr><td>Order 3<td><button disabled>Approve all</button></table>"
    "<input type=checkbox aria-label=News checked><input aria-label=Note value='Straße 5'><p>Nothing  to see</p>"
)


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness)
    yield made
    made.records()


async def test_find_lists_counts_and_picks(page: GuardedPage) -> None:
    await page.show(ORDERS)
    found = (await page.ask("find", role="button", name="approve"))["data"]
    assert (found["total_matches"], found["complete"], found["truncated"]) == (3, True, False)
    assert [m["context"] for m in found["matches"]] == [[["row", f"Order {i}"]] for i in (1, 2, 3)]
    assert (await page.ask("find", role="button", name="approve", exact=True, count=True))["data"]["count"] == 2
    assert (await page.ask("find", states=["enabled=false"], first=True))["data"]["match"]["name"] == "Approve all"
    assert (await page.ask("find", role="checkbox", states=["checked"], count=True))["data"]["count"] == 1
    assert (await page.ask("find", value="STRASSE", count=True))["data"]["count"] == 1
    assert (await page.ask("find", text="nothing to see", first=True))["data"]["match"]["role"] == "statictext"
    second = (await page.ask("find", name="Approve", nth=2))["data"]["match"]
    assert (await page.ask("click", ref=second["ref_id"]))["ok"]
    assert await page.script("hit") == 2


async def test_find_leaves_older_refs_alone(page: GuardedPage) -> None:
    await page.show(ORDERS)
    old = page.nodes["News"]["ref_id"]
    await page.ask("find", role="button")
    assert (await page.ask("get", ref=old, property="name"))["data"]["value"] == "News"


async def test_nothing_found_says_what_is_there(page: GuardedPage) -> None:
    await page.show(ORDERS)
    assert (await page.ask("find", role="link"))["data"]["roles_present"] == ["button", "checkbox", "textbox"]
    missing = await page.ask("find", role="link", first=True)
    assert missing["error"]["code"] == "ELEMENT_NOT_FOUND"
    wrong = await page.ask("find", role="buton")
    assert wrong["error"]["code"] == "INVALID_ARGS"
    assert (await page.ask("find", first=True, last=True, role="button"))["error"]["code"] == "INVALID_ARGS"
    assert (await page.ask("find"))["error"]["code"] == "INVALID_ARGS"


async def test_in_a_page_that_was_not_read_completely_only_the_first_is_established(page: GuardedPage) -> None:
    await page.show(
        "<button>Early</button><div role=grid aria-rowcount=1000><div role=row><button>Seen</button></div></div>"
    )
    assert (await page.ask("find", name="Early", first=True))["ok"]
    for how in ({"count": True}, {"last": True}, {"first": True, "name": "Missing"}):
        answer = await page.ask("find", **{"name": "Early", **how})
        assert (answer["error"]["code"], answer["error"]["details"]["kind"]) == (
            "APP_UNRESPONSIVE",
            "observation_incomplete",
        )
    assert (await page.ask("find", name="Seen"))["data"]["complete"] is False


async def test_waiting_for_states_texts_and_their_absence(page: GuardedPage) -> None:
    await page.show(
        "<button id=b disabled>Go</button><p id=p>Loading</p><script>window.change=()=>setTimeout(()=>{b.disabled=false;p.textContent='Ready'},250)</script>"
    )
    assert (await page("wait", "Go", predicate="disabled"))["ok"]
    late = await page("wait", "Go", predicate="enabled", timeout_ms=0)
    assert (late["error"]["code"], late["error"]["details"]["kind"]) == ("TIMEOUT", "wait_timeout")
    assert late["error"]["details"]["last_seen"] == "its state enabled is false"
    await page.script("change()")
    assert (await page("wait", "Go", predicate="enabled"))["ok"]
    assert (await page.ask("wait", text="ready"))["ok"]
    assert (await page.ask("wait", text_gone="Loading"))["ok"]
    assert (await page.ask("wait", text_gone="Ready", timeout_ms=300))["error"]["details"][
        "last_seen"
    ] == "the text is still there"
    await page.script("b.remove()")
    assert (await page("wait", "Go", predicate="gone"))["ok"]
    assert (await page("wait", "Go", predicate="exists"))["error"]["code"] == "STALE_REF"


async def test_a_text_is_not_gone_from_a_page_that_was_not_read_completely(page: GuardedPage) -> None:
    await page.show("<div role=grid aria-rowcount=1000><div role=row>One</div></div>")
    answer = await page.ask("wait", text_gone="Two", timeout_ms=200)
    assert answer["error"]["details"]["last_seen"] == "the page was not read completely"


async def test_waiting_for_a_navigation_a_dialog_and_a_quiet_network(page: GuardedPage) -> None:
    page.witness.pages["/next"] = "<title>next</title><p>Next</p>"
    await page.show("<button onclick=\"setTimeout(()=>location='/next',200)\">Go</button>")
    await page("click", "Go")
    assert (await page.ask("wait", navigation=True))["ok"]
    assert (await page.ask("wait", text="Next"))["ok"]
    await page.script("void setTimeout(()=>alert('Late'),200)")
    seen = await page.ask("wait", dialog=True)
    assert seen["data"]["dialog"]["text"] == "Late"
    surfaces = (await page.ask("list-surfaces"))["data"]
    assert [s["type"] for s in surfaces["surfaces"]] == ["alert_dialog"]
    assert (await page.ask("dialog-accept"))["ok"]
    await page.script("void fetch('/hang')")
    busy = await page.ask("wait", network_quiet_ms=50, timeout_ms=300)
    assert busy["error"]["details"]["last_seen"] == "1 requests are under way"
    page.witness.release.set()
    assert (await page.ask("wait", network_quiet_ms=50))["ok"]


async def test_wait_takes_exactly_one_condition(page: GuardedPage) -> None:
    await page.show("<p>x</p>")
    for args in ({}, {"text": "a", "dialog": True}):
        assert (await page.ask("wait", **args))["error"]["code"] == "INVALID_ARGS"
    assert (await page.ask("wait", ms=20))["data"]["elapsed_ms"] >= 20


async def test_surfaces_are_what_is_open(page: GuardedPage) -> None:
    await page.show("<dialog open aria-label=Settings>x</dialog><div role=menu hidden>m</div><dialog>closed</dialog>")
    assert (await page.ask("list-surfaces"))["data"]["surfaces"] == [{"type": "dialog", "title": "Settings"}]
