"""Failures of other tools on pages, as publicly reported, each by its id: what an action causes beyond its element, what
is lost with a process, and where secrets and keys go."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.base import RequestSeen
from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

POLICY = {
    "version": 1,
    "deny": [{"id": "no-delete-link", "destination": {"url": "**/item/*/delete"}, "reason": "irreversible"}],
}


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, policy=POLICY, timeout_ms=3_000)
    yield made
    if made.ledger.poisoned is None:
        made.records()


async def writes(page: GuardedPage, expected: int) -> list[str]:
    await asyncio.to_thread(page.witness.wait_for, lambda log: sum(e[0] != "GET" for e in log) >= expected)
    return [f"{how} {path}" for how, path, _ in page.witness.wrote()]


async def caused(page: GuardedPage, answer: dict[str, Any], state: str = "answered") -> tuple[RequestSeen, ...]:
    """The requests of an action, once each is over."""
    async with asyncio.timeout(5):
        while not (seen := page.adapter.requests(answer["ledger"]["seq"])) or any(r.state != state for r in seen):
            await page.script("0")
    return seen


IMPLICIT = (
    "<select aria-label=Role onchange=\"fetch('/role?v='+value,{method:'PUT'})\"><option>viewer<option>owner</select>"
    "<input aria-label=Draft onblur=\"fetch('/autosave',{method:'POST',body:value})\"><button>Else</button>"
    "<div role=button tabindex=0 onmouseenter=\"fetch('/track',{method:'POST'})\">hover me</div>"
)


@pytest.mark.parametrize(
    ("command", "name", "args", "write"),
    [
        ("select", "Role", {"options": "owner"}, "PUT /role?v=owner"),
        ("focus", "Else", {}, "POST /autosave"),
        ("hover", "hover me", {}, "POST /track"),
    ],
)
async def test_r020_a_write_on_an_implicit_path_is_put_down_to_its_action(
    page: GuardedPage, command: str, name: str, args: dict[str, Any], write: str
) -> None:
    await page.show(IMPLICIT)
    if command == "focus":
        await page("focus", "Draft")
    answer = await page(command, name, **args)
    assert answer["ok"], answer
    assert await writes(page, 1) == [write]
    (seen,) = await caused(page, answer)
    assert (seen.method, seen.how) == (write.partition(" ")[0], "causal")
    assert seen.url == page.witness.url + write.partition(" ")[2]


@pytest.mark.parametrize("roll_back", [False, True])
async def test_r027_a_switch_that_the_server_rejects_is_verified_as_a_control_only(
    page: GuardedPage, roll_back: bool
) -> None:
    back = "&&setTimeout(()=>t.checked=false,600)" if roll_back else ""
    await page.show(
        f"<input type=checkbox id=t role=switch aria-label=Alerts onchange=\"fetch('/pref',{{method:'PUT'}}).then(r=>!r.ok{back})\">"
    )
    answer = await page("check", "Alerts")
    assert delivery(answer) == "delivered_verified"
    assert answer["data"]["verification"]["scope"] == "element_state"
    assert answer["data"]["details"]["application_commit"] == "not_verified"
    (seen,) = await caused(page, answer)
    assert (seen.method, seen.status) == ("PUT", 404)
    if roll_back:
        waited = await page("wait", "Alerts", predicate="unchecked", timeout_ms=3_000)
        assert waited["ok"], waited
    assert (await page("is", "Alerts", property="checked"))["data"]["result"] is not roll_back


async def test_r027_a_roll_back_within_the_settle_time_is_no_success(page: GuardedPage) -> None:
    await page.show(
        "<input type=checkbox id=t role=switch aria-label=Alerts onchange='queueMicrotask(()=>t.checked=false)'>"
    )
    assert (await page("check", "Alerts"))["error"]["details"]["kind"] == "post_action_verification"


async def test_r043_what_died_in_the_act_is_told_and_nothing_is_sent_again(page: GuardedPage) -> None:
    await page.show(
        "<button onclick=\"const x=new XMLHttpRequest();x.open('POST','/hang/slow',false);x.send()\">Pay</button>"
    )

    async def die() -> None:
        assert await asyncio.to_thread(page.witness.wait_for, lambda log: ("POST", "/hang/slow", "") in log)
        page.adapter._channel.start("Page.crash", {})

    answer, _ = await asyncio.gather(page("click", "Pay"), die())
    assert delivery(answer) in {"delivered_unverified", "delivery_uncertain"}, answer
    assert answer["error"]["disposition"]["retry"] != "safe"
    for command in ("snapshot", "tabs"):
        assert (await page.ask(command))["error"]["details"]["kind"] == "component_lost"
    again = await page("click", "Pay")
    assert (again["ok"], delivery(again)) == (False, "not_delivered")
    assert await writes(page, 1) == ["POST /hang/slow"]


@pytest.mark.parametrize("event", ["keydown", "keypress", "input", "keyup"])
async def test_r046_keys_stop_when_the_focus_is_taken_away(page: GuardedPage, event: str) -> None:
    await page.show(
        f"<input id=a aria-label=Other><input id=b aria-label=Amount on{event}=\"if(event.type!='input'||value.length==2)a.focus()\">"
    )
    answer = await page("type", "Amount", text="12345")
    assert (answer["error"]["details"]["kind"], delivery(answer)) == ("stopped_midway", "delivered_unverified"), answer
    assert await page.script("a.value") == ""
    assert len(await page.script("b.value")) <= 2


async def test_r046_what_is_written_into_a_region_goes_nowhere_else(page: GuardedPage) -> None:
    await page.show(
        "<input id=a aria-label=Other value=kept><div contenteditable role=textbox aria-label=Region onfocus='queueMicrotask(()=>a.focus());a.focus()'>x</div>"
    )
    answer = await page("set-value", "Region", value="new")
    assert not answer["ok"], answer
    assert await page.script("a.value") == "kept"


async def test_r058_an_address_is_judged_whatever_the_link_is_called(page: GuardedPage) -> None:
    await page.show(
        "<a href='/item/5/delete'>x</a><a href='/item/5/show'>y</a><link rel=prefetch href='/item/6/delete'>"
    )
    denied = await page("click", "x")
    assert (denied["error"]["code"], denied["error"]["details"]["kind"]) == ("POLICY_DENIED", "forbidden_destination")
    assert (await page("press", "x", key="Enter"))["error"]["code"] == "POLICY_DENIED"
    assert (await page.ask("navigate", url=page.witness.url + "/item/5/delete"))["error"]["code"] == "POLICY_DENIED"
    assert (await page("hover", "x"))["ok"]
    assert not any("/item/5/" in path for _, path, _ in page.witness.log)


SECRET = "S3cr3t-\u00e9-Zq9"


async def test_r077_a_secret_is_in_no_answer_and_no_record(page: GuardedPage) -> None:
    await page.show(
        "<input type=password aria-label=Pin><input id=t aria-label=Flips><select aria-label=List><option>a</select><input aria-label=Plain>"
        "<button onclick=\"prompt('Code?')\">Ask</button>"
    )
    answers = [
        await page("set-value", "Pin", value=SECRET),
        await page("type", "Flips", text=SECRET),
        await page("select", "List", options=SECRET),
        await page("set-value", "Plain", value=SECRET),
    ]
    await page.script("t.type='password'")
    answers += [await page.ask("snapshot"), await page("get", "Flips", property="value"), await page("click", "Ask")]
    answers.append(await page.ask("dialog-accept", text=SECRET))
    page.records()
    told = json.dumps([a for a in answers if a["command"] not in ("snapshot", "get")], ensure_ascii=False)
    kept = [p for p in page.folder.rglob("*") if p.is_file() and p.name != "disclosures.jsonl"]
    assert len(kept) > 2
    raw = SECRET.encode()
    for form in (
        raw,
        json.dumps(SECRET)[1:-1].encode(),
        quote(SECRET).encode(),
        base64.b64encode(raw)[:-4],
        raw[::-1],
        raw[:6],
        raw[-6:],
    ):
        assert form.decode("utf-8", "replace") not in told
        assert [p.name for p in kept if form in p.read_bytes()] == [], form
    flipped = next(a for a in answers if a["command"] == "get")
    assert SECRET not in json.dumps(flipped, ensure_ascii=False)
