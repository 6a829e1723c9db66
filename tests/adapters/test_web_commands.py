"""Every command on an element, through the whole guard on a real page; the page's own script is the witness."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

LOG = (
    "<script>window.log=[];for(const t of ['click','dblclick','contextmenu','auxclick','change','input','focus',"
    "'mouseover','keydown','scroll'])addEventListener(t,e=>e.target.id&&log.push(t+' '+e.target.id),true)</script>"
)


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness)
    yield made
    made.records()


async def times(page: GuardedPage, event: str) -> int:
    log: list[str] = await page.script("log")
    return log.count(event)


@pytest.mark.parametrize(
    ("markup", "state"),
    [
        ("<input type=checkbox id=b aria-label=B {on}>", "b.checked"),
        (
            "<div role=checkbox id=b aria-label=B tabindex=0 aria-checked={aria} {flip}>x</div>",
            "b.ariaChecked==='true'",
        ),
        ("<div role=switch id=b aria-label=B tabindex=0 aria-checked={aria} {flip}>x</div>", "b.ariaChecked==='true'"),
    ],
)
async def test_check_and_uncheck_say_which_state_they_want(page: GuardedPage, markup: str, state: str) -> None:
    flip = "onclick=\"ariaChecked=String(ariaChecked!=='true')\""
    await page.show(markup.format(on="", aria="false", flip=flip) + LOG)
    first = await page("check", "B")
    assert (first["ok"], delivery(first)) == (True, "delivered_verified")
    assert await page.script(state) is True
    again = await page("check", "B")
    assert (again["ok"], delivery(again)) == (True, "not_delivered")
    assert again["data"]["steps"][0]["outcome"] == "skipped"
    back = await page("uncheck", "B")
    assert delivery(back) == "delivered_verified"
    assert (await page.script(state), await times(page, "click b")) == (False, 2)


async def test_toggle_must_change_the_state(page: GuardedPage) -> None:
    await page.show(
        "<button id=b aria-pressed=false onclick=\"ariaPressed=String(ariaPressed!=='true')\">Bold</button>"
        "<button id=n aria-pressed=false>Never</button><input type=radio id=r aria-label=Radio>" + LOG
    )
    assert delivery(await page("toggle", "Bold")) == "delivered_verified"
    assert await page.script("b.ariaPressed") == "true"
    failed = await page("toggle", "Never")
    assert (failed["error"]["code"], failed["error"]["details"]["kind"]) == (
        "ACTION_FAILED",
        "post_action_verification",
    )
    assert delivery(failed) == "delivered_unverified"
    assert (await page("toggle", "Radio"))["error"]["code"] == "ACTION_NOT_SUPPORTED"
    assert delivery(await page("check", "Radio")) == "delivered_verified"
    assert await times(page, "click n") == 1


async def test_a_box_that_jumps_back_is_a_failure_and_is_tried_once(page: GuardedPage) -> None:
    await page.show("<input type=checkbox id=b aria-label=B onclick='setTimeout(()=>checked=false)'>" + LOG)
    failed = await page("check", "B")
    assert failed["error"]["details"]["kind"] == "post_action_verification"
    assert await times(page, "click b") == 1


async def test_a_box_that_is_half_checked_is_neither(page: GuardedPage) -> None:
    await page.show("<input type=checkbox id=b aria-label=B><script>b.indeterminate=true</script>" + LOG)
    assert delivery(await page("uncheck", "B")) in ("delivered_verified", "delivered_unverified")
    assert await times(page, "click b") == 1


async def test_expand_and_collapse(page: GuardedPage) -> None:
    await page.show(
        "<details id=d><summary>More</summary>body</details>"
        "<button id=m aria-expanded=false onclick=\"ariaExpanded=String(ariaExpanded!=='true')\">Menu</button>"
        "<button>Plain</button>" + LOG
    )
    assert delivery(await page("expand", "More")) == "delivered_verified"
    assert await page.script("d.open") is True
    assert delivery(await page("expand", "More")) == "not_delivered"
    assert delivery(await page("collapse", "More")) == "delivered_verified"
    assert await page.script("d.open") is False
    assert delivery(await page("expand", "Menu")) == "delivered_verified"
    assert (await page("expand", "Plain"))["error"]["code"] == "ACTION_NOT_SUPPORTED"


SELECTS = (
    "<select id=s aria-label=Colour><option>Red<option value=g>Green<option disabled>Grey<option>Twin<option>Twin</select>"
    "<select id=m aria-label=Many multiple><option selected>A<option>B<option>C, D</select>"
    "<select id=j aria-label=Jumps onchange=\"setTimeout(()=>value='x')\"><option>x<option>y</select>"
    "<select id=d aria-label=Danger><option>Keep<option>Delete all</select>"
)


async def test_select_chooses_by_label_or_value_and_reads_back(page: GuardedPage) -> None:
    await page.show(SELECTS + LOG)
    assert delivery(await page("select", "Colour", options="Green")) == "delivered_verified"
    assert (await page.script("s.value"), await times(page, "change s")) == ("g", 1)
    assert delivery(await page("select", "Colour", options="Green")) == "not_delivered"
    assert delivery(await page("select", "Many", options=["C, D", "B"])) == "delivered_verified"
    assert await page.script("[...m.selectedOptions].map(o=>o.label)") == ["B", "C, D"]
    failed = await page("select", "Jumps", options="y")
    assert failed["error"]["details"]["kind"] == "post_action_verification"
    await page.look()
    assert delivery(await page("select", "Colour", options="Red")) == "delivered_verified"
    assert delivery(await page("select", "Colour", options="g")) == "delivered_verified"


@pytest.mark.parametrize(
    ("asked", "code"),
    [("Blue", "ELEMENT_NOT_FOUND"), ("Grey", "ELEMENT_NOT_FOUND"), ("Twin", "AMBIGUOUS_TARGET")],
)
async def test_select_guesses_nothing(page: GuardedPage, asked: str, code: str) -> None:
    await page.show(SELECTS + LOG)
    refused = await page("select", "Colour", options=asked)
    assert (refused["error"]["code"], delivery(refused)) == (code, "not_delivered")
    assert await page.script("log") == []


async def test_a_forbidden_option_is_denied_like_a_forbidden_button(page: GuardedPage) -> None:
    await page.show(SELECTS + LOG)
    denied = await page("select", "Danger", options="Delete all")
    assert (denied["error"]["code"], denied["error"]["details"]["rule"]) == ("POLICY_DENIED", "no-delete")
    assert (await page.script("d.value"), await page.script("log")) == ("Keep", [])
    assert delivery(await page("select", "Danger", options="Keep")) == "not_delivered"


@pytest.mark.parametrize(
    "command", ["double-click", "triple-click", "check", "toggle", "right-click", "hover", "expand"]
)
async def test_no_other_gesture_gets_round_a_forbidden_name(page: GuardedPage, command: str) -> None:
    await page.show(
        "<div id=b role=switch tabindex=0 aria-checked=false aria-expanded=false onclick='log.push(1)'>Delete account</div>"
        + LOG
    )
    denied = await page(command, "Delete account")
    assert (denied["error"]["code"], delivery(denied)) == ("POLICY_DENIED", "not_delivered")
    assert await page.script("log") == []


async def test_typing_looks_like_typing_and_goes_to_the_end(page: GuardedPage) -> None:
    await page.show(
        "<input id=f aria-label=Field value='ab'><textarea id=t aria-label=Area></textarea>"
        "<div id=e contenteditable role=textbox aria-label=Rich>x</div><input id=p type=password aria-label=Pass>"
        "<input id=n type=number aria-label=Number value=1><input id=u aria-label=Upper oninput='value=value.toUpperCase()'>"
        + LOG
    )
    assert delivery(await page("type", "Field", text="cé𝄞")) == "delivered_verified"
    assert (await page.script("f.value"), await times(page, "keydown f"), await times(page, "input f")) == (
        "abcé𝄞",
        3,
        3,
    )
    assert delivery(await page("type", "Area", text="one\ntwo")) == "delivered_verified"
    assert await page.script("t.value") == "one\ntwo"
    assert await times(page, "keydown t") == 6  # a line end is no Enter
    assert delivery(await page("type", "Rich", text="yz")) == "delivered_verified"
    assert delivery(await page("type", "Number", text="23")) == "delivered_verified"
    assert (await page.script("e.innerText"), await page.script("n.value")) == ("xyz", "123")
    secret = await page("type", "Pass", text="hunter2")
    assert (delivery(secret), secret["data"]["details"]["verification_reason"]) == (
        "delivered_unverified",
        "secure_field",
    )
    assert await page.script("p.value") == "hunter2"
    assert (await page("type", "Upper", text="x"))["error"]["details"]["kind"] == "post_action_verification"


async def test_clear_empties_and_says_so(page: GuardedPage) -> None:
    await page.show(
        "<input id=f aria-label=Field value=old><input id=r aria-label=Fixed value=old readonly>"
        "<input id=k aria-label=Keeps value=old oninput='setTimeout(()=>value=\"old\")'>" + LOG
    )
    assert delivery(await page("clear", "Field")) == "delivered_verified"
    assert await page.script("f.value") == ""
    assert delivery(await page("clear", "Field")) == "not_delivered"
    assert (await page("clear", "Fixed"))["error"]["code"] == "ACTION_NOT_SUPPORTED"
    assert (await page("clear", "Keeps"))["error"]["details"]["kind"] == "post_action_verification"


async def test_other_clicks_are_what_a_mouse_would_send(page: GuardedPage) -> None:
    await page.show("<button id=b>B</button><button id=c>C</button><button id=d>D</button>" + LOG)
    assert delivery(await page("double-click", "B")) == "delivered_unverified"
    assert (await times(page, "click b"), await times(page, "dblclick b")) == (2, 1)
    await page("triple-click", "C")
    assert (await times(page, "click c"), await times(page, "dblclick c")) == (3, 1)
    menu = await page("right-click", "D")
    assert menu["data"]["hit"]["same_as_target"] is True
    assert (await times(page, "click d"), await times(page, "contextmenu d"), await times(page, "auxclick d")) == (
        0,
        1,
        1,
    )


async def test_another_kind_of_click_is_a_repeat_as_well(page: GuardedPage) -> None:
    await page.show("<button id=b>Pay</button>" + LOG)
    await page("click", "Pay")
    again = await page("double-click", "Pay")
    assert again["error"]["details"]["kind"] == "unsafe_retry"
    assert await times(page, "click b") == 1


async def test_hover_and_focus_may_be_repeated(page: GuardedPage) -> None:
    await page.show("<button id=b>B</button><input id=f aria-label=F><button id=x disabled>X</button>" + LOG)
    assert [delivery(await page("hover", "B")) for _ in range(2)] == ["delivered_unverified"] * 2
    assert await times(page, "mouseover b") == 2
    assert delivery(await page("hover", "X")) == "delivered_unverified"
    assert [delivery(await page("focus", "F")) for _ in range(2)] == ["delivered_verified", "not_delivered"]
    assert await page.script("document.activeElement.id") == "f"


async def test_scrolling_through_nested_scrollers(page: GuardedPage) -> None:
    tall = "<div style='height:3000px'></div>"
    await page.show(
        f"<div id=o style='height:300px;overflow:auto'>{tall}<div id=i style='height:200px;overflow:auto'>"
        f"<button id=top>Top</button>{tall}<button id=b>Deep</button></div></div>{tall}" + LOG
    )
    assert delivery(await page("scroll-to", "Deep")) == "delivered_verified"
    seen = "(()=>{const r=b.getBoundingClientRect();return document.elementFromPoint(r.x+3,r.y+3)===b})()"
    assert await page.script(seen) is True
    before = await page.script("i.scrollTop")
    assert delivery(await page("scroll", "Deep", direction="up", amount=3)) == "delivered_verified"
    assert await page.script("i.scrollTop") == before - 300
    wrong: dict[str, Any] = await page("scroll", "Deep", direction="sideways")
    assert wrong["error"]["code"] == "INVALID_ARGS"


async def test_what_covers_a_box_covers_it_for_check_as_well(page: GuardedPage) -> None:
    await page.show(
        "<input type=checkbox id=b aria-label=B><div role=dialog aria-label=Cookies style='position:fixed;inset:0;background:#fff'></div>"
        + LOG
    )
    refused = await page("check", "B", timeout_ms=0)
    assert (refused["error"]["details"]["kind"], delivery(refused)) == ("actionability_timeout", "not_delivered")
    assert await page.script("b.checked") is False
