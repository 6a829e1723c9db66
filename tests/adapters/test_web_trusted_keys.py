"""Trusted keys: only where the mode allows them, only to the element that was judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.session.commands.element import TRUSTED
from deskcert_schema.vocabulary import Mode

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

LOG = (
    "<script>window.log=[];for(const t of ['keydown','keypress','keyup','input'])addEventListener(t,"
    "e=>log.push([t,e.key??'',e.target.id,e.isTrusted,e.ctrlKey].join(' ')))</script>"
)


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, mode=Mode.FOCUS_FALLBACK)
    yield made
    made.records()


async def test_the_page_sees_a_persons_keys(page: GuardedPage) -> None:
    await page.show("<input id=f aria-label=F value=abc><input id=g aria-label=G>" + LOG)
    answer = await page("press", "F", key="Ctrl+A")
    assert (answer["ok"], delivery(answer), answer["data"]["hit"]["same_as_target"]) == (
        True,
        "delivered_unverified",
        True,
    )
    assert await page.script("log") == ["keydown a f true true", "keyup a f true true"]
    assert await page.script("[f.selectionStart,f.selectionEnd]") == [0, 3]
    await page("press", "F", key="Delete")
    assert await page.script("f.value") == ""
    await page("press", "F", key="x")
    assert await page.script("f.value") == "x"
    assert (await page("press", "F", key="Tab"))["ok"]
    assert await page.script("document.activeElement.id") == "g"


async def test_arrows_move_what_the_browser_moves(page: GuardedPage) -> None:
    await page.show(
        "<input id=r type=range aria-label=R value=50><select id=s aria-label=S><option>a<option>b</select>" + LOG
    )
    await page("press", "R", key="ArrowRight")
    assert await page.script("r.value") == "51"


async def test_a_key_that_would_arrive_elsewhere_is_stopped(page: GuardedPage) -> None:
    await page.show("<input id=f aria-label=F onfocus='queueMicrotask(()=>g.focus())'><input id=g aria-label=G>" + LOG)
    refused = await page("press", "F", key="x")
    assert delivery(refused) == "not_delivered", refused
    assert await page.script("log") == []
    assert await page.script("g.value") == ""


async def test_a_rule_about_keys_is_asked(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> None:
    policy = {"version": 1, "deny": [{"id": "no-save", "key": "ctrl+s", "reason": "not now"}]}
    page = GuardedPage(tmp_path, adapter, witness, policy=policy, mode=Mode.FOCUS_FALLBACK)
    await page.show("<input id=f aria-label=F>" + LOG)
    denied = await page("press", "F", key="Control+S")
    assert (denied["error"]["code"], denied["error"]["details"]["rule"]) == ("POLICY_DENIED", "no-save")
    assert await page.script("log") == []
    page.records()


async def test_headless_has_no_trusted_keys_and_no_combination_presses_a_button(
    page: GuardedPage, tmp_path: Path, adapter: WebAdapter, witness: Witness
) -> None:
    (tmp_path / "h").mkdir()
    headless = GuardedPage(tmp_path / "h", adapter, witness)
    await headless.show("<input id=f aria-label=F>" + LOG)
    assert (await headless("press", "F", key="x"))["error"]["code"] == "ACTION_NOT_SUPPORTED"
    await page.show("<input id=f aria-label=F>" + LOG)
    for key in ("Ctrl+Enter", "Hyper+x", "NoKey"):
        assert (await page("press", "F", key=key))["error"]["code"] == "ACTION_NOT_SUPPORTED"
    assert await page.script("log") == []


async def test_session_and_adapter_know_the_same_keys() -> None:
    from deskcert.adapters.web.trusted import TRUSTED_KEYS

    assert TRUSTED == TRUSTED_KEYS
