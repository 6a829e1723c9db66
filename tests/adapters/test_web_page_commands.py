"""History and dialogs, judged before and read back after; the server and the page's own script are the witnesses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, timeout_ms=1_000)
    yield made
    made.records()


async def url(page: GuardedPage) -> str:
    found: str = await page.script("location.pathname+location.hash")
    return found


async def test_back_and_forward_lead_where_they_say(page: GuardedPage) -> None:
    await page.show("<button>One</button>", path="/one")
    old = page.nodes["One"]
    await page.show("<button>Two</button>", path="/two")
    answer = await page.ask("back")
    assert (answer["ok"], delivery(answer)) == (True, "delivered_verified")
    assert answer["data"]["target"]["url"] == page.witness.url + "/one"
    assert await url(page) == "/one"
    assert (await page.ask("click", ref=old["ref_id"]))["error"]["code"] == "STALE_REF"
    await page.look()
    assert (await page.ask("forward"))["ok"]
    assert await url(page) == "/two"
    await page.look()
    missing = await page.ask("forward")
    assert (missing["error"]["code"], delivery(missing)) == ("ELEMENT_NOT_FOUND", "not_delivered")


async def test_back_inside_one_document_keeps_its_generation(page: GuardedPage) -> None:
    await page.show("<button>One</button>", path="/one")
    await page.script("location.hash='x'")
    assert delivery(await page.ask("back")) == "delivered_verified"
    assert await url(page) == "/one"
    assert delivery(await page("click", "One")) == "delivered_unverified"


async def test_an_address_that_is_forbidden_is_not_gone_back_to(
    tmp_path: Path, adapter: WebAdapter, witness: Witness
) -> None:
    policy = {"version": 1, "deny": [{"id": "wire", "destination": {"url": "**/wire"}, "reason": "no"}]}
    page = GuardedPage(tmp_path, adapter, witness, policy=policy)
    await page.show("<button>One</button>", path="/wire")
    await page.show("<button>Two</button>", path="/two")
    denied = await page.ask("back")
    assert (denied["error"]["code"], denied["error"]["details"]["rule"]) == ("POLICY_DENIED", "wire")
    assert await url(page) == "/two"
    page.records()


async def test_reload_is_a_new_document_and_never_a_second_post(page: GuardedPage) -> None:
    page.witness.pages["/answer"] = "<title>a</title><button>Done</button>"
    await page.show("<form method=post action=/answer><button>Send</button></form>")
    assert delivery(await page.ask("reload")) == "delivered_verified"
    assert (await page("click", "Send", timeout_ms=0))["error"]["code"] == "STALE_REF"
    await page.look()
    await page("click", "Send")
    assert page.witness.wait_for(lambda log: ("POST", "/answer", "") in log)
    await page.look()
    refused = await page.ask("reload")
    assert (refused["error"]["code"], delivery(refused)) == ("ACTION_NOT_SUPPORTED", "not_delivered")
    assert page.witness.wrote() == [("POST", "/answer", "")]


ASKING = (
    "<button id=b onclick=\"window.got=confirm('Archive this order?')\">Archive</button>"
    "<button onclick=\"window.got=confirm('Really delete it?')\">Clean up</button>"
    "<button onclick=\"window.got=prompt('Your name?','nobody')\">Ask me</button>"
    "<button onclick=\"alert('Saved')\">Save</button>"
)


async def test_a_dialog_is_answered_by_its_id_and_once(page: GuardedPage) -> None:
    await page.show(ASKING)
    clicked = await page("click", "Archive")
    pending = clicked["data"]["details"]["pending_dialog"]
    assert (pending["type"], pending["text"]) == ("confirm", "Archive this order?")
    assert (await page.ask("dialog-accept", dialog="d99"))["error"]["code"] == "ELEMENT_NOT_FOUND"
    answer = await page.ask("dialog-accept", dialog=pending["id"])
    assert (answer["ok"], delivery(answer)) == (True, "delivered_verified")
    opener = answer["data"]["target"]["dialog"]["opener"]
    assert opener == {"role": "button", "name": "Archive"}
    assert await page.script("got") is True
    assert (await page.ask("dialog-accept"))["error"]["code"] == "ELEMENT_NOT_FOUND"
    assert (await page.ask("snapshot"))["ok"]


async def test_what_a_dialog_asks_is_judged_and_dismissing_is_the_way_out(page: GuardedPage) -> None:
    await page.show(ASKING)
    await page("click", "Clean up")
    denied = await page.ask("dialog-accept")
    assert (denied["error"]["code"], denied["error"]["details"]["rule"]) == ("POLICY_DENIED", "no-delete")
    assert (await page.ask("dialog-dismiss"))["ok"]
    assert await page.script("got") is False


async def test_a_prompt_takes_a_text_that_stays_secret(page: GuardedPage) -> None:
    await page.show(ASKING)
    await page("click", "Ask me")
    assert (await page.ask("dialog-accept", text="for-no-record"))["ok"]
    assert await page.script("got") == "for-no-record"
    files = (p for p in page.folder.rglob("*") if p.is_file() and p.name != "disclosures.jsonl")
    page.records()
    assert b"for-no-record" not in b"".join(p.read_bytes() for p in files)


async def test_an_alert_takes_no_text_and_blocks_every_other_action(page: GuardedPage) -> None:
    await page.show(ASKING)
    await page("click", "Save")
    assert (await page("click", "Archive"))["error"]["details"]["kind"] == "pending_dialog"
    assert (await page.ask("dialog-accept", text="x"))["error"]["code"] == "ACTION_NOT_SUPPORTED"
    assert (await page.ask("dialog-accept"))["ok"]


async def test_leaving_a_page_that_asks(page: GuardedPage) -> None:
    await page.show("<button>Two</button>", path="/two")
    await page.show("<button id=b>Edit</button><script>onbeforeunload=e=>{e.preventDefault();return 'x'}</script>")
    await page("click", "Edit")
    left = await page.ask("back", timeout_ms=1_500)
    assert left["data"]["details"]["pending_dialog"]["type"] == "beforeunload", left
    assert (await page.ask("dialog-accept"))["ok"]
    await page.look()
    assert await url(page) == "/two"
