"""Physical input: a person's pointer and keys, held back at the very event where they would arrive elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.adapters.web.browser import WebBrowser
from deskcert.ways.shared_page import attach
from deskcert_schema.vocabulary import Mode

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

LOG = (
    "<script>window.log=[];for(const t of ['pointerdown','mousedown','mouseup','click','dblclick','contextmenu',"
    "'wheel','keydown','input','dragstart','drop'])"
    "addEventListener(t,e=>log.push(t+' '+e.target.id+' '+e.isTrusted),true)</script>"
)
TWO = (
    "<style>button{position:absolute;left:20px;width:120px;height:40px}</style>"
    "<button id=a style='top:20px'>Save</button><button id=b style='top:200px'>Burn</button>" + LOG
)


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, mode=Mode.HEADED, timeout_ms=3_000)
    yield made
    made.records()


async def logged(page: GuardedPage) -> list[str]:
    found: list[str] = await page.script("log.splice(0)")
    return found


async def test_the_page_sees_a_persons_pointer(page: GuardedPage) -> None:
    await page.show(TWO + "<div style='height:3000px'></div>")
    answer = await page("click", "Save")
    assert (answer["ok"], delivery(answer), answer["data"]["mode"]) == (True, "delivered_unverified", "headed"), answer
    assert answer["data"]["steps"][-1]["mechanism"] == "physical_synthetic"
    assert answer["data"]["hit"] == {"role": "button", "name": "Save", "same_as_target": True}
    assert await logged(page) == ["pointerdown a true", "mousedown a true", "mouseup a true", "click a true"]
    await page("double-click", "Burn")
    assert (await logged(page))[-1] == "dblclick b true"
    await page("right-click", "Burn")
    assert "contextmenu b true" in await logged(page)
    assert (await page("hover", "Burn"))["ok"]
    assert await page.script("b.matches(':hover')") is True
    assert delivery(await page("scroll", "Save", amount=2)) in ("delivered_unverified", "delivered_verified")
    assert "wheel a true" in await logged(page)


async def test_what_came_under_the_pointer_is_not_pressed(page: GuardedPage) -> None:
    await page.show(TWO)

    async def swap() -> None:
        await page.script("b.style.top = '20px'; a.style.top = '200px'")

    page.hooks["dispatched"] = swap
    stopped = await page("click", "Save", timeout_ms=0)
    # The pointer had come over it by then, or had not.
    expected = {"stopped_midway": "delivered_unverified", "changed_at_dispatch": "not_delivered"}
    assert expected[stopped["error"]["details"]["kind"]] == delivery(stopped)
    assert await logged(page) == [], "the page saw no button go down, on neither"


async def test_what_became_something_else_under_the_pointer_is_not_pressed(page: GuardedPage) -> None:
    await page.show(TWO)

    async def rename() -> None:
        await page.script("a.textContent = 'Delete everything'")

    page.hooks["dispatched"] = rename
    stopped = await page("click", "Save", timeout_ms=0)
    assert stopped["error"]["details"]["differences"] == ["names.accessible", "names.text"]
    assert await logged(page) == []


async def test_a_release_elsewhere_is_no_click(page: GuardedPage) -> None:
    await page.show(TWO + "<script>a.onmousedown = () => { b.style.top = '20px'; a.remove() }</script>")
    stopped = await page("click", "Save")
    assert stopped["error"]["details"]["kind"] == "stopped_midway", stopped
    assert await logged(page) == ["pointerdown a true", "mousedown a true"]


async def test_a_frame_that_comes_over_the_target_gets_nothing(page: GuardedPage) -> None:
    page.witness.pages["/inner"] = (
        "<body style='margin:0'><button id=x style='width:300px;height:300px'>In</button>" + LOG
    )
    await page.show(TWO + "<iframe id=f src=/inner style='position:absolute;top:500px;left:0'></iframe>")

    async def cover() -> None:
        await page.script("f.style.top = '0px'")

    page.hooks["dispatched"] = cover
    stopped = await page("click", "Save", timeout_ms=0)
    assert stopped["error"]["details"]["kind"] in ("stopped_midway", "changed_at_dispatch"), stopped
    assert await logged(page) == []
    assert await page.script("f.contentWindow.log") == []


async def test_a_target_in_a_frame_and_one_out_of_view(page: GuardedPage) -> None:
    page.witness.pages["/inner"] = "<button id=x>In</button>" + LOG
    await page.show(
        "<div style='height:1500px'></div><iframe id=f src=/inner></iframe>"
        "<label>Keep <input type=checkbox id=k></label>"
    )
    clicked = await page("click", "In")
    assert (clicked["ok"], clicked["data"]["steps"][0]["label"]) == (True, "scroll_into_view"), clicked
    assert (await page.script("f.contentWindow.log"))[-1] == "click x true"
    assert (await page("click", "Keep"))["ok"]
    assert await page.script("k.checked") is True


async def test_a_click_that_leads_away_is_no_lost_answer(page: GuardedPage) -> None:
    page.witness.pages["/next"] = "<title>next</title>"
    await page.show("<a href=/next>Next</a>")
    answer = await page("click", "Next")
    assert (answer["ok"], delivery(answer)) == (True, "delivered_unverified"), answer
    assert page.witness.wait_for(lambda log: ("GET", "/next", "") in log)


async def test_a_dialog_that_a_press_opens_is_pending(page: GuardedPage) -> None:
    await page.show("<button onclick=\"alert('Saved')\">Save</button>")
    answer = await page("click", "Save")
    assert answer["data"]["details"]["pending_dialog"]["text"] == "Saved", answer
    assert (await page.ask("dialog-accept"))["ok"]


async def test_a_moving_target_is_waited_for(page: GuardedPage) -> None:
    await page.show(
        TWO + "<script>let y = 20; const t = setInterval(() => { a.style.top = (y = y > 90 ? 20 : y + 7) + 'px' }, 5);"
        "window.halt = () => clearInterval(t)</script>"
    )
    refused = await page("click", "Save", timeout_ms=1_500)
    assert refused["error"]["code"] == "TIMEOUT"
    assert refused["error"]["details"]["last_report"]["why"].startswith("stable"), refused
    assert await logged(page) == []
    await page.script("halt()")
    assert (await page("click", "Save"))["ok"]


async def test_keys_are_a_persons_too(page: GuardedPage) -> None:
    page.witness.pages["/sent"] = "<title>sent</title>"
    await page.show("<form action=/sent method=post><input id=f aria-label=F value=a><button>Go</button></form>" + LOG)
    typed = await page("type", "F", text="bÜ")
    assert (typed["ok"], delivery(typed)) == (True, "delivered_verified"), typed
    assert await page.script("f.value") == "abÜ"
    assert await logged(page) == ["keydown f true", "input f true"] * 2
    pressed = await page("press", "F", key="Enter")
    assert (pressed["ok"], delivery(pressed)) == (True, "delivered_unverified"), pressed
    assert page.witness.wait_for(lambda log: any(method == "POST" for method, _, _ in log))


async def test_a_rule_about_what_enter_presses_holds_for_a_persons_enter(page: GuardedPage) -> None:
    await page.show("<form action=/sent method=post><input id=f aria-label=F><button>Delete all</button></form>" + LOG)
    denied = await page("press", "F", key="Enter")
    assert (denied["error"]["code"], denied["error"]["details"]["source"]["via"]) == (
        "POLICY_DENIED",
        "default_submitter",
    )
    assert await logged(page) == []


async def test_typing_stops_where_the_focus_goes(page: GuardedPage) -> None:
    await page.show(
        "<input id=f aria-label=F><input id=g aria-label=G><script>f.oninput = () => g.focus()</script>" + LOG
    )
    stopped = await page("type", "F", text="abc")
    assert stopped["error"]["details"]["kind"] == "stopped_midway", stopped
    assert await page.script("[f.value, g.value]") == ["a", ""]


BOARD = """<ul id=open><li id=a draggable=true role=button tabindex=0>Task</li></ul>
<ul id=done aria-label=Done style="padding:20px"><li id=slot role=button tabindex=0>Slot</li></ul>
<div id=knob role=button tabindex=0 style="width:40px;height:40px;background:#ccc;touch-action:none">Knob</div>
<div id=rail role=button tabindex=0 style="width:300px;height:40px;margin-top:60px;background:#eee">Rail</div>
<script>
a.ondragstart = (e) => e.dataTransfer.setData('text/plain', 'a');
done.ondragover = (e) => { e.preventDefault(); e.dataTransfer.dropEffect = 'move' };
done.ondrop = (e) => { e.preventDefault(); done.append(document.getElementById(e.dataTransfer.getData('text/plain'))) };
let held = false;
knob.onpointerdown = (e) => { held = true };
addEventListener('pointerup', (e) => { if (held) window.dropped = e.target.id; held = false });
</script>"""


async def drag(page: GuardedPage, source: str, to: str) -> dict[str, object]:
    return await page.ask("drag", ref=page.nodes[source]["ref_id"], to=page.nodes[to]["ref_id"])


async def test_a_persons_drag_arrives(page: GuardedPage) -> None:
    await page.show(BOARD + LOG)
    answer = await drag(page, "Knob", "Rail")
    assert (answer["ok"], await page.script("dropped")) == (True, "rail"), answer
    await page.look()
    answer = await drag(page, "Task", "Slot")
    assert answer["ok"], answer
    assert await page.script("[...done.children].map(e => e.id)") == ["slot", "a"]


async def test_a_drag_whose_end_was_swapped_is_not_dropped(page: GuardedPage) -> None:
    await page.show(BOARD + LOG + "<div id=trap style='position:absolute;display:none'>Trap</div>")
    await page.script(
        "knob.addEventListener('pointerdown', () => { const r = rail.getBoundingClientRect(); trap.style.cssText ="
        " `position:absolute;left:${r.x}px;top:${r.y}px;width:${r.width}px;height:${r.height}px` })"
    )
    stopped = await drag(page, "Knob", "Rail")
    assert stopped["error"]["details"]["kind"] == "stopped_midway", stopped
    assert await page.script("[window.dropped, held]") == ["knob", False], "it was let go where it began"


async def test_a_document_that_was_there_before_the_guard_takes_no_physical_input(
    tmp_path: Path, browser: WebBrowser, witness: Witness
) -> None:
    witness.pages["/page"] = "<title>page</title>" + TWO
    context = (await browser.open()).context
    shown = await context.new_page()
    await shown.goto(witness.url + "/page")
    adapter = await attach(shown)
    page = GuardedPage(tmp_path, adapter, witness, mode=Mode.HEADED, timeout_ms=2_000)
    await page.look()
    late = await page("click", "Save")
    assert late["error"]["details"]["kind"] == "interceptor_late", late
    assert (delivery(late), "reload" in late["error"]["suggestion"]) == ("not_delivered", True)
    assert await page.script("log") == []
    assert (await page.ask("reload"))["ok"]
    await page.look()
    assert (await page("click", "Save"))["ok"]
    assert (await page.script("log"))[-1] == "click a true"
    page.records()
    await adapter.close()
    await context.close()
