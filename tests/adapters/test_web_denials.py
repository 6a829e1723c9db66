"""A denial needs no waiting, whatever else is wrong with the target; and the rest of the probes on which other web tools
act on the wrong element or report a false success."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

ROUNDS = 60
ACTIONABLE = "<button onclick=\"fetch('/hit?n=x',{method:'POST',keepalive:true})\""


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, timeout_ms=5_000)
    yield made
    made.records()


WRONG = {
    "Delete one": "{} disabled>Delete one</button>",
    "Delete two": "{} style='opacity:0'>Delete two</button>",
    "Delete three": "<div style='position:relative'>{}>Delete three</button><div style='position:absolute;inset:0'></div></div>",
    "Delete four": "<div inert>{}>Delete four</button></div>",
}


async def test_a_denial_needs_no_waiting(page: GuardedPage, told: Callable[[str], None]) -> None:
    rows = "".join(f"<p>Row {i}<button>Edit</button>" for i in range(200))
    await page.show(rows + "".join(markup.format(ACTIONABLE) for markup in WRONG.values()))
    took = []
    for i in range(ROUNDS):
        name = list(WRONG)[i % len(WRONG)]
        began = time.perf_counter()
        denied = await page("click", name)
        took.append((time.perf_counter() - began) * 1_000)
        assert (denied["error"]["code"], denied["error"]["details"]["kind"]) == ("POLICY_DENIED", "forbidden_name")
        assert denied["error"]["details"]["retryable"] is False
    took.sort()
    told(
        f"denials on targets that are also disabled, hidden or covered: p50 {took[len(took) // 2]:.0f} ms, p99 {took[-1]:.0f} ms of {ROUNDS} (aim: under 200 ms)"
    )
    denials = [r for r in page.records() if r["kind"] == "action.denied"]
    assert len(denials) == ROUNDS
    assert not any("looks" in r for r in denials), "no look of a wait stands in the record"
    assert {r["phases_us"].get("wait", 0) for r in denials} == {0}
    assert page.witness.wrote() == []


GO = f"{ACTIONABLE} id=b>Go</button>"


@pytest.mark.parametrize("look_again", [False, True])
async def test_probe_re_rendered_the_same(page: GuardedPage, look_again: bool) -> None:
    await page.show(GO)
    ref = page.nodes["Go"]["ref_id"]
    await page.script("b.replaceWith(b.cloneNode(true))")
    if look_again:
        await page.look()
    stale = await page.ask("click", ref=ref)
    assert (stale["error"]["code"], delivery(stale)) == ("STALE_REF", "not_delivered")
    await page.look()
    assert (await page("click", "Go"))["ok"]
    assert await asyncio.to_thread(page.witness.wait_for, lambda log: log[-1][0] == "POST")
    assert len(page.witness.wrote()) == 1


async def test_probe_reload_and_a_fresh_ref(page: GuardedPage) -> None:
    await page.show(GO)
    old = page.nodes["Go"]["ref_id"]
    assert (await page.ask("reload"))["ok"]
    await page.look()
    assert (await page.ask("click", ref=old))["error"]["code"] == "STALE_REF"
    assert (await page("click", "Go"))["ok"]


async def test_probe_a_disabled_button_and_one_that_is_enabled_in_time(page: GuardedPage) -> None:
    await page.show(GO + "<script>b.disabled=true</script>")
    refused = await page("click", "Go", timeout_ms=150)
    assert (refused["error"]["details"]["kind"], delivery(refused)) == ("actionability_timeout", "not_delivered")
    await page.script("setTimeout(()=>b.disabled=false,700)")
    assert (await page("click", "Go"))["ok"]
    assert await asyncio.to_thread(page.witness.wait_for, lambda log: log[-1][0] == "POST")
    assert len(page.witness.wrote()) == 1


async def test_probe_a_click_without_an_effect_is_never_called_verified(page: GuardedPage) -> None:
    await page.show("<button>Nothing</button>")
    assert delivery(await page("click", "Nothing")) == "delivered_unverified"


async def test_probe_a_payment_that_the_server_refuses_is_seen(page: GuardedPage) -> None:
    await page.show("<form method=post action=/pay><button>Settle</button></form>")
    answer = await page("click", "Settle")
    assert delivery(answer) == "delivered_unverified"
    assert answer["data"]["details"]["application_commit"] == "not_verified"
    async with asyncio.timeout(10):
        while not (seen := page.adapter.requests(answer["ledger"]["seq"])) or seen[0].state == "pending":
            await page.ask("snapshot")  # asks the browser, so that its answers come in meanwhile
    assert (seen[0].method, seen[0].status, seen[0].url) == ("POST", 404, page.witness.url + "/pay")


@pytest.mark.parametrize("command", ["double-click", "triple-click", "right-click", "press", "check"])
async def test_probe_no_other_gesture_gets_round_a_denied_click(page: GuardedPage, command: str) -> None:
    body = "<input type=checkbox aria-label='Delete all' id=b onclick=\"fetch('/hit',{method:'POST'})\">"
    await page.show(body)
    denied = await page(command, "Delete all", **({"key": "Space"} if command == "press" else {}))
    assert denied["error"]["code"] == "POLICY_DENIED"
    assert page.witness.wrote() == []
