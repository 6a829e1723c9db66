"""Arrow keys without trusted input: they do to a native control what the browser would do, and are judged by that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter
from deskcert_schema.vocabulary import Mode

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

CONTROLS = """
<fieldset><label><input type=radio name=r id=r1 checked> Keep</label>
<label><input type=radio name=r id=rx disabled> None</label><label><input type=radio name=r id=r2> Archive</label>
<label><input type=radio name=r id=r3> Delete it</label></fieldset>
<select id=s aria-label=Ship><option>Post<option disabled>Pigeon<option>Express</select>
<input id=n type=number aria-label=Number value=4 step=2><input id=g type=range aria-label=Gauge value=50>
<input id=t aria-label=Text value=abc><div id=w role=slider tabindex=0 aria-label=Widget aria-valuenow=0>o</div>
<script>window.log=[];
for(const t of ['keydown','keyup','click','input','change'])addEventListener(t,e=>log.push(t+' '+e.target.id));
w.onkeydown=e=>{if(e.key==='ArrowRight')w.setAttribute('aria-valuenow',1+Number(w.getAttribute('aria-valuenow')))}</script>"""


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, timeout_ms=3_000)
    yield made
    made.records()


async def test_arrows_change_what_the_browser_would_change(page: GuardedPage) -> None:
    await page.show(CONTROLS)
    for name, key, reads, expected in (
        ("Keep", "ArrowDown", "r2.checked && document.activeElement.id", "r2"),
        ("Ship", "ArrowDown", "s.value", "Express"),
        ("Number", "ArrowUp", "n.value", "6"),
        ("Gauge", "ArrowLeft", "g.value", "49"),
        ("Widget", "ArrowRight", "w.getAttribute('aria-valuenow')", "1"),
    ):
        await page.script("log.length = 0")
        answer = await page("press", name, key=key)
        assert (answer["ok"], delivery(answer)) == (True, "delivered_unverified"), (name, answer)
        assert await page.script(reads) == expected, name
    await page.script("log.length = 0")
    await page("press", "Ship", key="ArrowUp")
    assert await page.script("s.value") == "Post"
    assert await page.script("log") == ["keydown s", "input s", "change s", "keyup s"]
    await page("press", "Ship", key="ArrowLeft")
    assert await page.script("s.value") == "Post", "there is none before it"


async def test_an_arrow_moves_the_caret(page: GuardedPage) -> None:
    await page.show(CONTROLS)
    await page.script("t.focus();t.setSelectionRange(3,3)")
    await page("press", "Text", key="ArrowLeft")
    assert await page.script("t.selectionStart") == 2
    assert await page.script("t.value") == "abc"


async def test_what_an_arrow_would_choose_is_asked_of_the_policy(page: GuardedPage) -> None:
    await page.show(CONTROLS)
    denied = await page("press", "Archive", key="ArrowDown")
    assert denied["error"]["details"]["source"]["via"] == "focused", denied
    assert delivery(denied) == "not_delivered"
    assert await page.script("log.length") == 0
    await page.script("s.options[2].textContent = 'Delete order'")
    denied = await page("press", "Ship", key="ArrowDown")
    assert (denied["error"]["code"], await page.script("s.value")) == ("POLICY_DENIED", "Post")


async def test_a_rule_about_values_means_arrows_too(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> None:
    policy = {"version": 1, "deny": [{"id": "no-amount", "action": "set-value", "role": "spinbutton", "reason": "no"}]}
    for mode in (Mode.HEADLESS, Mode.FOCUS_FALLBACK):
        (tmp_path / mode.value).mkdir()
        page = GuardedPage(tmp_path / mode.value, adapter, witness, policy=policy, mode=mode, timeout_ms=3_000)
        await page.show(CONTROLS)
        denied = await page("press", "Number", key="ArrowUp")
        assert denied["error"]["code"] == "POLICY_DENIED"
        assert (await page("press", "Gauge", key="ArrowUp"))["ok"]
        assert await page.script("[n.value, g.value]") == ["4", "51"]
        page.records()


async def test_a_page_that_takes_the_key_keeps_its_control(page: GuardedPage) -> None:
    await page.show(CONTROLS + "<script>addEventListener('keydown', e => e.preventDefault())</script>")
    for name in ("Keep", "Ship", "Number", "Gauge"):
        assert (await page("press", name, key="ArrowDown"))["ok"]
    assert await page.script("[r1.checked, s.value, n.value, g.value]") == [True, "Post", "4", "50"]
