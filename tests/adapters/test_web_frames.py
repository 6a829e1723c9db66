"""Frames: of the same origin, of another one, in another process, nested, in shadow roots, and such as go away.

Once in the browser as it is started for a run, and once where every site has a process of its own.
"""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.adapters.web.browser import WebBrowser
from deskcert_schema.vocabulary import Mode

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

HIT = "<script>const hit=(n)=>fetch('/hit?n='+n,{method:'POST',keepalive:true,mode:'no-cors'})</script>"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["as started", "every site apart"])
async def browser(request: pytest.FixtureRequest) -> AsyncIterator[WebBrowser]:
    apart = request.param == "every site apart"
    started = await WebBrowser.launch(arguments=["--site-per-process"] if apart else [])
    yield started
    await started.close()


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, mode=Mode.FOCUS_FALLBACK, timeout_ms=3_000)
    yield made
    made.records()


def elsewhere(page: GuardedPage) -> str:
    """The same server under the name of another site."""
    return page.witness.url.replace("127.0.0.1", "localhost")


def put(page: GuardedPage, path: str, body: str) -> None:
    page.witness.pages[path] = f"<!doctype html><title>{path}</title>{HIT}{body}"


async def hits(page: GuardedPage, expected: int) -> list[str]:
    await asyncio.to_thread(page.witness.wait_for, lambda log: sum(e[0] == "POST" for e in log) >= expected)
    return [path.partition("n=")[2] for _, path, _ in page.witness.wrote()]


async def until(page: GuardedPage, *names: str) -> dict[str, Any]:
    """Looks until everything called so is there."""
    async with asyncio.timeout(10):
        while True:
            data = await page.look()
            if set(names) <= set(page.nodes):
                return data


BUY = "<button onclick=\"hit('buy')\">Buy</button>"


async def test_a_button_in_a_frame_of_another_origin_is_clicked_and_put_down_to_the_click(page: GuardedPage) -> None:
    put(page, "/in", BUY)
    await page.show(
        f"<iframe src={elsewhere(page)}/in style='margin:40px;border:5px solid'></iframe><button>Buy it</button>"
    )
    data = await until(page, "Buy")
    assert data["complete"], data["reasons"]
    clicked = await page("click", "Buy")
    assert (clicked["ok"], delivery(clicked)) == (True, "delivered_unverified"), clicked
    assert clicked["data"]["hit"] == {"role": "button", "name": "Buy", "same_as_target": True}
    assert await hits(page, 1) == ["buy"]
    async with asyncio.timeout(5):
        while not (seen := page.adapter.requests(clicked["ledger"]["seq"])):
            await page.script("0")
    assert (seen[0].method, seen[0].how) == ("POST", "causal")


async def test_nested_frames_of_several_origins_below_the_fold(page: GuardedPage) -> None:
    put(page, "/deep", f"<p style='height:900px'>tall</p>{BUY}")
    put(page, "/mid", f"<p style='height:700px'>tall</p><iframe src={page.witness.url}/deep></iframe>")
    await page.show(f"<p style='height:2000px'>tall</p><iframe src={elsewhere(page)}/mid></iframe>")
    await until(page, "Buy")
    clicked = await page("click", "Buy")
    assert (clicked["ok"], clicked["data"]["hit"]["same_as_target"]) == (True, True), clicked
    assert await hits(page, 1) == ["buy"]


async def test_every_kind_of_action_works_in_a_frame_of_another_origin(page: GuardedPage) -> None:
    put(
        page,
        "/in",
        "<input aria-label=Note><select aria-label=Size><option>small<option>large</select><input type=checkbox aria-label=Agree>"
        f"<form onsubmit=\"hit('sent');return false\"><input aria-label=Query><button>Go</button></form>{BUY}",
    )
    await page.show(f"<iframe src={elsewhere(page)}/in width=600 height=300></iframe>")
    await until(page, "Buy")
    assert delivery(await page("set-value", "Note", value="one")) == "delivered_verified"
    assert delivery(await page("type", "Note", text=" two")) == "delivered_verified"
    assert (await page("get", "Note", property="value"))["data"]["value"] == "one two"
    chosen = await page("select", "Size", options="large")
    assert delivery(chosen) == "delivered_verified", chosen
    assert delivery(await page("check", "Agree")) == "delivered_verified"
    assert delivery(await page("focus", "Note")) == "delivered_verified"
    pressed = await page("press", "Note", key="Ctrl+A")
    assert (pressed["ok"], pressed["data"]["hit"]["same_as_target"]) == (True, True), pressed
    await page("press", "Note", key="Backspace")
    assert (await page("get", "Note", property="value"))["data"].get("value", "") == ""
    assert (await page("press", "Query", key="Enter"))["ok"]
    assert await hits(page, 1) == ["sent"]


EAGER = (
    "<script>for(const t of ['pointerdown','mousedown','click'])"
    "addEventListener(t,e=>{if(e.isTrusted)hit('heard-'+t)},{capture:true})</script>"
)


@pytest_asyncio.fixture(loop_scope="module")
async def headed(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> AsyncIterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, mode=Mode.HEADED, timeout_ms=3_000)
    yield made
    made.records()


@pytest.mark.parametrize("deep", [False, True], ids=["in a frame", "in a frame in a frame"])
async def test_the_first_document_of_a_frame_takes_the_pointer(headed: GuardedPage, deep: bool) -> None:
    page = headed
    put(page, "/in", f"{EAGER}{BUY}")
    put(page, "/mid", f"<iframe src={page.witness.url}/in></iframe>")
    await page.show(f"<iframe src={elsewhere(page)}/{'mid' if deep else 'in'}></iframe>")
    await until(page, "Buy")
    clicked = await page("click", "Buy")
    assert (clicked["ok"], delivery(clicked)) == (True, "delivered_unverified"), clicked
    assert clicked["data"]["steps"][-1]["mechanism"] == "physical_synthetic", clicked
    assert sorted(await hits(page, 4)) == ["buy", "heard-click", "heard-mousedown", "heard-pointerdown"]


async def test_what_strays_in_the_first_document_of_a_frame_is_heard_by_nobody(headed: GuardedPage) -> None:
    trap = "Object.assign(document.createElement('button'),{textContent:'Trap',style:'position:fixed;inset:0'})"
    put(
        headed,
        "/in",
        f"{EAGER}{BUY}<script>addEventListener('mousemove',()=>document.body.append({trap}),{{once:true}})</script>",
    )
    await headed.show(f"<iframe src={elsewhere(headed)}/in></iframe>")
    await until(headed, "Buy")
    strayed = await headed("click", "Buy", timeout_ms=0)
    assert strayed["error"]["details"]["kind"] in ("changed_at_dispatch", "stopped_midway"), strayed
    await until(headed, "Trap")
    assert await hits(headed, 0) == []


async def test_a_page_that_the_guard_let_go_of_shows_new_frames(browser: WebBrowser, witness: Witness) -> None:
    other = witness.url.replace("127.0.0.1", "localhost")
    witness.pages |= {"/page": f"<iframe id=f src={other}/one></iframe>", "/one": "one", "/two": "two"}
    opened = await browser.open()
    shown = opened.shown
    await shown.goto(witness.url + "/page")
    await opened.let_go()
    await shown.evaluate(
        "u=>document.body.insertAdjacentHTML('beforeend',`<iframe id=g src=${u}></iframe>`)", f"{other}/two"
    )
    async with asyncio.timeout(10):
        await shown.frame_locator("#g").get_by_text("two").wait_for()
    await opened.context.close()


COVER = "<div role=dialog aria-label=Consent style='position:fixed;inset:0' onclick=\"hit('cover')\"></div>"


async def test_what_covers_the_frame_covers_what_is_in_it_and_is_named(page: GuardedPage) -> None:
    put(page, "/in", BUY)
    await page.show(f"{HIT}<iframe src={elsewhere(page)}/in></iframe>{COVER}")
    await until(page, "Buy")
    refused = await page("click", "Buy", timeout_ms=0)
    check = [c for c in refused["error"]["details"]["last_report"]["checks"] if c["check"] == "receives_events"]
    assert (refused["error"]["code"], check[0]["occluder"]) == ("TIMEOUT", {"role": "dialog", "name": "Consent"})
    assert await hits(page, 0) == []


async def test_a_cover_that_comes_after_the_decision_is_met_in_the_act(page: GuardedPage) -> None:
    put(page, "/in", BUY)
    await page.show(f"{HIT}<iframe src={elsewhere(page)}/in></iframe>")
    await until(page, "Buy")

    async def cover() -> None:
        await page.script(f"document.body.insertAdjacentHTML('beforeend',{COVER!r})")

    page.hooks["intent_recorded"] = cover
    refused = await page("click", "Buy", timeout_ms=1_500)
    assert (refused["error"]["code"], delivery(refused)) == ("TIMEOUT", "not_delivered"), refused
    assert refused["error"]["details"]["earlier"]
    assert await hits(page, 0) == []


async def test_a_forbidden_name_is_forbidden_in_every_frame(page: GuardedPage) -> None:
    put(page, "/in", "<button onclick=\"hit('gone')\">Delete account</button>")
    await page.show(f"<iframe src={elsewhere(page)}/in></iframe>")
    await until(page, "Delete account")
    assert (await page("click", "Delete account"))["error"]["code"] == "POLICY_DENIED"
    assert await hits(page, 0) == []


@pytest.mark.parametrize("how", ["to another site", "in its site", "to the same address", "removed"])
async def test_a_frame_that_leaves_between_the_look_and_the_act_makes_its_refs_stale(
    page: GuardedPage, how: str
) -> None:
    put(page, "/in", BUY)
    put(page, "/next", "<button onclick=\"hit('wrong')\">Buy</button>")
    await page.show(f"<iframe id=f src={elsewhere(page)}/in></iframe><button>Stays</button>")
    await until(page, "Buy")
    ref = page.nodes["Buy"]["ref_id"]
    leave = {
        "to another site": f"f.src='{page.witness.url}/next'",
        "in its site": f"f.src='{elsewhere(page)}/next'",
        "to the same address": f"f.src='{elsewhere(page)}/in'",
        "removed": "f.remove()",
    }[how]
    then = "Promise.resolve()" if how == "removed" else "new Promise(r=>f.onload=r)"
    await page.script(f"(()=>{{{leave};return {then}}})()")
    stale = await page.ask("click", ref=ref)
    assert (stale["error"]["code"], delivery(stale)) == ("STALE_REF", "not_delivered"), stale
    assert await hits(page, 0) == []
    if how != "removed":
        await until(page, "Buy")
        assert page.nodes["Buy"]["ref_id"] != ref
        assert (await page("click", "Buy"))["ok"]
        assert await hits(page, 1) == ["wrong" if "next" in leave else "buy"]


async def test_a_frame_that_leaves_in_the_middle_of_the_act_is_never_undone(page: GuardedPage) -> None:
    put(
        page,
        "/in",
        "<button onclick=\"hit('buy');parent.postMessage('go','*');const t=Date.now();while(Date.now()-t<300);\">Buy</button>",
    )
    put(page, "/next", "<p>gone</p>")
    await page.show(
        f"<iframe id=f src={elsewhere(page)}/in></iframe><script>onmessage=()=>f.src='{page.witness.url}/next'</script>"
    )
    await until(page, "Buy")
    clicked = await page("click", "Buy")
    assert delivery(clicked) == "delivered_unverified", clicked
    assert await hits(page, 1) == ["buy"]


async def test_a_frame_in_a_shadow_root_is_read_and_one_in_a_closed_root_is_told(page: GuardedPage) -> None:
    put(page, "/in", BUY)
    await page.show("<div><template shadowrootmode=open><iframe src=/in></iframe></template></div>")
    data = await until(page, "Buy")
    assert data["complete"]
    assert (await page("click", "Buy"))["ok"]
    assert await hits(page, 1) == ["buy"]
    await page.show(
        "<div><template shadowrootmode=closed><iframe src=/in></iframe></template></div><p hidden><iframe src=/in></iframe>"
    )
    data = await page.look()
    assert data["complete"] is False
    assert any("frame could not be read" in reason for reason in data["reasons"]), data["reasons"]


async def test_a_hidden_frame_takes_nothing_from_a_complete_page(page: GuardedPage) -> None:
    put(page, "/in", BUY)
    await page.show(
        f"<p hidden><iframe src=/in></iframe></p><div aria-hidden=true><iframe src={elsewhere(page)}/in></iframe></div><button>Top</button>"
    )
    async with asyncio.timeout(10):
        while not (data := await page.look())["complete"]:
            pass
    assert set(page.nodes) == {"Top"}, data


async def test_frames_that_are_scaled_sandboxed_or_written_in_place(page: GuardedPage) -> None:
    other = elsewhere(page)
    put(page, "/scaled", "<p style='height:60px'></p><button onclick=\"hit('scaled')\">Scaled</button>")
    put(page, "/boxed", "<button onclick=\"hit('boxed')\">Boxed</button>")
    put(page, "/object", "<button onclick=\"hit('object')\">In object</button>")
    await page.show(
        f"{HIT}<iframe src={other}/scaled style='transform:scale(.5);transform-origin:0 0'></iframe>"
        f"<iframe sandbox=allow-scripts src={other}/boxed></iframe><iframe srcdoc=\"<button onclick=fetch('/hit?n=doc',{{method:'POST'}})>Written</button>\"></iframe>"
        f"<object data={other}/object type=text/html></object>"
    )
    await until(page, "Scaled", "Boxed", "Written", "In object")
    for name in ("Scaled", "Boxed", "Written", "In object"):
        answer = await page("click", name)
        assert (answer["ok"], answer["data"]["hit"]["same_as_target"]) == (True, True), answer
    assert sorted(await hits(page, 4)) == ["boxed", "doc", "object", "scaled"]


async def test_a_dialog_of_a_frame_blocks_and_is_answered(page: GuardedPage) -> None:
    put(page, "/in", "<button onclick=\"if(confirm('Really?'))hit('yes')\">Ask</button>")
    await page.show(f"<iframe src={elsewhere(page)}/in></iframe>")
    await until(page, "Ask")
    asked = await page("click", "Ask")
    assert asked["data"]["details"]["pending_dialog"]["text"] == "Really?", asked
    assert (await page.ask("dialog-accept"))["ok"]
    assert await hits(page, 1) == ["yes"]


async def test_a_frame_whose_process_dies_in_the_act_leaves_the_page_alive(page: GuardedPage) -> None:
    put(page, "/in", "<button onclick=\"hit('buy');const t=Date.now();while(Date.now()-t<9000);\">Buy</button>")
    await page.show(f"<iframe id=f src={elsewhere(page)}/in></iframe><button>Top</button>")
    await until(page, "Buy")
    frame = next(f for f in page.adapter._frames.children(page.adapter._frames.main))
    own_process = frame.channel is not page.adapter._channel

    async def crash() -> None:
        await hits(page, 1)
        frame.channel.start("Page.crash", {})

    page.hooks["reached"] = crash
    lost = await page("click", "Buy")
    assert delivery(lost) == "delivered_unverified", lost
    assert await hits(page, 1) == ["buy"]
    again = await page.ask("click", ref=page.nodes["Buy"]["ref_id"])
    assert (again["error"]["code"], delivery(again)) == ("STALE_REF", "not_delivered")
    if own_process:
        hovered = await page("hover", "Top")
        assert hovered["ok"], hovered
        data = await page.look()
        assert (data["complete"], [r for r in data["reasons"] if "frame" in r] != []) == (False, True), data
