"""Which situation ends in which disposition: a test for each row of the table that the contract was made from, numbered as
the rows are there, on real pages. What only a desktop has says where it is tested instead."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from guarded_pages import GuardedPage
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter
from deskcert_ledger import read_records

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

HIT = "<script>const hit=(n)=>fetch('/hit?n='+n,{method:'POST',keepalive:true})</script>"
BUY = HIT + "<button id=b onclick=\"hit('buy')\">Buy</button>"

type Answer = dict[str, Any]
type Row = Callable[[GuardedPage], Awaitable[Answer]]

ROWS: dict[str, tuple[Row, str | None, str]] = {}
"""Row: what is done, and the code (None for ok) and the delivery in which it must end."""

ELSEWHERE = {
    "2": "permissions of a desktop: there is nothing to be granted for a page",
    "8": "the focus of a desktop's window: tests/adapters/test_linux_physical.py",
    "19": "no command here steps a value up or down",
    "20": "scrolling is one step of the page's own scroller, never k of n",
    "22": "tests/adapters/test_web_drag.py",
    "30": "a document without a window is no document",
    "31": "programs of a desktop: tests/adapters/test_linux_programs.py",
    "32": "programs of a desktop: tests/adapters/test_linux_programs.py",
    "33": "tests/ways/test_ways_attached.py",
    "36": "the caller's own channel: tests/session/test_session_jsonlines.py",
}


def row(number: str, code: str | None, delivery: str) -> Callable[[Row], Row]:
    def put(test: Row) -> Row:
        ROWS[number] = (test, code, delivery)
        return test

    return put


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, timeout_ms=3_000, kept_snapshots=3)
    yield made
    if made.ledger.poisoned is None:
        made.records()


@row("1a bad arguments", "INVALID_ARGS", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    return await page("click", "Buy", speed="fast")


@row("1b a bad ref", "INVALID_ARGS", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    return await page.ask("click", ref="e1")


@row("3a a ref that its snapshot does not have", "STALE_REF", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    return await page.ask("click", ref=page.nodes["Buy"]["ref_id"].partition(":")[0] + ":e99")


@row("3b a snapshot that is not kept any more", "SNAPSHOT_NOT_FOUND", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    ref = page.nodes["Buy"]["ref_id"]
    for _ in range(3):
        await page.look()
    return await page.ask("click", ref=ref)


@row("4a gone", "STALE_REF", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    await page.script("b.remove()")
    return await page("click", "Buy")


@row("4b its identity cannot be read in time", "APP_UNRESPONSIVE", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    await page.script("setTimeout(()=>{const t=Date.now();while(Date.now()-t<1200);},0)")
    return await page("click", "Buy", timeout_ms=200)


@row("5 not actionable in time", "TIMEOUT", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY + "<script>b.disabled=true</script>")
    return await page("click", "Buy", timeout_ms=200)


@row("6a policy", "POLICY_DENIED", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY + "<script>b.textContent='Delete'</script>")
    return await page("click", "Delete")


@row("6b the mode", "ACTION_NOT_SUPPORTED", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show("<input aria-label=F>")
    return await page("press", "F", key="Tab")


@row("6c not editable", "ACTION_NOT_SUPPORTED", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show("<input aria-label=F readonly>")
    return await page("set-value", "F", value="x")


@row("7 no lease in time", "TIMEOUT", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    lease = page.session._desk.driver._lease
    await lease.take(100)
    try:
        return await page("click", "Buy", timeout_ms=200)
    finally:
        lease.release()


@row("9 the asked state holds already", None, "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show("<input type=checkbox aria-label=C checked onclick=\"fetch('/hit',{method:'POST'})\">")
    answer = await page("check", "C")
    assert [step["outcome"] for step in answer["data"]["steps"]] == ["skipped"]
    return answer


@row("10 nothing can be read back", None, "delivered_unverified")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    return await page("click", "Buy")


@row("11 the read-back bears it out", None, "delivered_verified")
async def _(page: GuardedPage) -> Answer:
    await page.show("<input aria-label=F>")
    return await page("set-value", "F", value="x")


@row("12 a step that is not verified", None, "delivered_unverified")
async def _(page: GuardedPage) -> Answer:
    await page.show("<input type=password aria-label=F>")
    answer = await page("set-value", "F", value="secret")
    assert answer["data"]["details"]["verification_reason"] == "secure_field"
    return answer


@row("13 the platform has no way to do it", "ACTION_NOT_SUPPORTED", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    return await page("set-value", "Buy", value="x")


@row("14 the call has no answer and nobody saw it arrive", "TIMEOUT", "delivery_uncertain")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)

    async def hang() -> None:
        await page.script("setTimeout(()=>{const t=Date.now();while(Date.now()-t<2600);},0)")

    page.hooks["intent_recorded"] = hang
    answer = await page("click", "Buy")
    assert await asyncio.to_thread(page.witness.wait_for, lambda log: log[-1][0] == "POST"), "it lands late"
    return answer


@row("15 the element is gone when the call comes", "STALE_REF", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    page.hooks["intent_recorded"] = lambda: page.script("b.remove()")
    return await page("click", "Buy")


@row("16 a box that jumps back", "ACTION_FAILED", "delivered_unverified")
async def _(page: GuardedPage) -> Answer:
    await page.show("<input type=checkbox aria-label=C onclick='event.preventDefault()'>")
    return await page("check", "C")


@row("17 a field that is not empty after clear", "ACTION_FAILED", "delivered_unverified")
async def _(page: GuardedPage) -> Answer:
    await page.show("<input aria-label=F value=x oninput=\"value='x'\">")
    return await page("clear", "F")


@row("18 the time ends after something went out", "TIMEOUT", "delivered_unverified")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY + "<script>b.onclick=()=>{hit('buy');const t=Date.now();while(Date.now()-t<2400);}</script>")
    return await page("click", "Buy")


@row("21 typing that is cut short", "ACTION_FAILED", "delivered_unverified")
async def _(page: GuardedPage) -> Answer:
    await page.show("<input aria-label=F oninput=\"if(value.length==3)setAttribute('aria-label','Other')\">")
    answer = await page("type", "F", text="123456")
    assert answer["error"]["details"]["kind"] == "stopped_midway"
    assert await page.script("document.querySelector('input').value") == "123"
    return answer


@row("23 what was waited for afterwards does not come", "TIMEOUT", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    entries = [
        {"command": "click", "args": {"ref": page.nodes["Buy"]["ref_id"]}},
        {"command": "wait", "args": {"text": "never", "timeout_ms": 100}},
    ]
    answers = (await page.ask("batch", entries=entries))["data"]["entries"]
    clicked = answers[0]["answer"]
    assert clicked["data"]["disposition"] == {"delivery": "delivered_unverified", "retry": "unsafe"}
    waited: Answer = answers[1]["answer"]
    return waited


@row("24 the result cannot be recorded", "LEDGER_UNAVAILABLE", "delivered_unverified")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)

    async def full() -> None:
        page.ledger._sequencer._poisoned_by(OSError(28, "No space left on device"))

    page.hooks["reached"] = full
    answer = await page("click", "Buy")
    assert any(r.kind == "action.intent" for r in read_records(page.folder))
    assert not any(r.kind == "action.result" for r in read_records(page.folder))
    return answer


@row("25 the release of the button fails", "ACTION_FAILED", "delivered_unverified")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY + "<script>b.onmousedown=()=>b.remove()</script>")
    return await page("click", "Buy")


@row("26 an entry that was not reached", "TIMEOUT", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY + "<button disabled id=c>Closed</button>")
    refs = [page.nodes[name]["ref_id"] for name in ("Closed", "Buy")]
    answers = (
        await page.ask("batch", entries=[{"command": "click", "args": {"ref": r, "timeout_ms": 0}} for r in refs])
    )["data"]["entries"]
    assert answers[1] == {"command": "click", "execution": "not_started"}
    first: Answer = answers[0]["answer"]
    return first


@row("27 a connection that is refused", "ACTION_FAILED", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    return await page.ask("navigate", url="http://127.0.0.1:1/")


@row("28 a server that was asked and does not answer", "TIMEOUT", "delivery_uncertain")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    return await page.ask("navigate", url=page.witness.url + "/hang/for-ever", timeout_ms=300)


@row("29 an answer without a document", "ACTION_FAILED", "delivered_unverified")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    return await page.ask("navigate", url=page.witness.url + "/none")


@row("35 the answer is lost on its way to the caller", None, "delivered_unverified")
async def _(page: GuardedPage) -> Answer:
    await page.show(BUY)
    reached = asyncio.Event()

    async def stand_still() -> None:
        reached.set()
        await asyncio.Event().wait()

    page.hooks["reached"] = stand_still
    call = asyncio.ensure_future(page("click", "Buy"))
    await reached.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    result = [r.data for r in read_records(page.folder) if r.kind == "action.result"]
    assert [r["delivery"] for r in result] == ["delivered_unverified"]
    assert (await page("click", "Buy"))["error"]["details"]["kind"] == "unsafe_retry"
    return {"ok": True, "data": {"disposition": {"delivery": result[0]["delivery"], "retry": result[0]["retry"]}}}


@row("34a something that nobody foresaw, before there is an intent", "INTERNAL", "not_delivered")
async def _(page: GuardedPage) -> Answer:
    return await unforeseen(page, "leased")


@row("34b something that nobody foresaw, when the call was made", "INTERNAL", "delivery_uncertain")
async def _(page: GuardedPage) -> Answer:
    return await unforeseen(page, "dispatched")


async def unforeseen(page: GuardedPage, point: str) -> Answer:
    await page.show(BUY)

    async def defect() -> None:
        raise KeyError("unforeseen")

    page.hooks[point] = defect
    return await page("click", "Buy")


@row("37 contradicted after one delivery", "ACTION_FAILED", "delivered_unverified")
async def _(page: GuardedPage) -> Answer:
    await page.show("<input aria-label=F id=f oninput=\"n=(window.n??0)+1;value=''\">")
    answer = await page("set-value", "F", value="x")
    assert answer["error"]["details"]["kind"] == "post_action_verification"
    assert await page.script("n") == 1
    return answer


@row("38 no evidence either way", None, "delivered_unverified")
async def _(page: GuardedPage) -> Answer:
    await page.show("<button id=t aria-pressed=true onclick=\"removeAttribute('aria-pressed')\">T</button>")
    answer = await page("toggle", "T")
    assert answer["data"]["details"]["application_commit"] == "not_verified"
    return answer


@pytest.mark.parametrize("number", ROWS)
async def test_row(page: GuardedPage, number: str) -> None:
    done, code, delivery = ROWS[number]
    answer = await done(page)
    found = (answer.get("error") or {}).get("code"), (answer.get("data") or answer["error"])["disposition"]
    retry = {"not_delivered": "safe", "delivered_unverified": "unsafe", "delivered_verified": "unsafe"}.get(
        delivery, "never_automatic"
    )
    assert found == (code, {"delivery": delivery, "retry": retry}), answer
    if code == "POLICY_DENIED":
        assert answer["error"]["details"]["retryable"] is False


async def test_every_row_is_here_or_says_where() -> None:
    for where in ELSEWHERE.values():
        _, colon, file = where.rpartition("tests/")
        assert not colon or (Path(__file__).parents[1] / file).is_file(), where
    here = {int("".join(c for c in number.split()[0] if c.isdigit())) for number in ROWS}
    assert sorted({*here, *map(int, ELSEWHERE)}) == list(range(1, 39))
    assert here.isdisjoint(map(int, ELSEWHERE))
