"""Navigation: what was committed, and what may have reached the server."""

from __future__ import annotations

import asyncio
import socket

import pytest
from web_pages import Witness, act, find, nowhere, script, show

from deskcert.adapters.base import DispatchEnd, ObserveOptions
from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]


async def test_the_committed_window(adapter: WebAdapter, witness: Witness) -> None:
    witness.pages["/a"] = "<title>First</title>"
    before = await adapter.window()
    points: list[str] = []

    async def at(point: str) -> None:
        points.append(point)

    found = await adapter.navigate(witness.url + "/a", number=3, budget_ms=10_000, at=at)
    assert found.committed is not None
    assert (found.end, found.status, found.error) == (DispatchEnd.COMPLETED, 200, None)
    assert (found.committed.title, found.committed.url) == ("First", witness.url + "/a")
    assert found.committed.id == before.id
    assert found.committed.document != before.document
    assert [(r.method, r.how, r.state, r.status) for r in adapter.requests(3)] == [("GET", "causal", "answered", 200)]
    assert points == ["dispatched"]
    missing = await adapter.navigate(witness.url + "/missing", number=4, budget_ms=10_000, at=nowhere)
    assert (missing.end, missing.status) == (DispatchEnd.COMPLETED, 404)


async def test_a_fragment_stays_in_the_document(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, "x")
    found = await adapter.navigate(witness.url + "/page#there", number=3, budget_ms=5_000, at=nowhere)
    assert found.committed is not None
    assert (found.end, found.committed.document) == (DispatchEnd.COMPLETED, seen.window.document)
    assert found.committed.url.endswith("#there")


async def test_refused_connections_are_not_sent(adapter: WebAdapter, witness: Witness) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = await adapter.navigate(
            f"http://127.0.0.1:{taken.getsockname()[1]}/", number=3, budget_ms=5_000, at=nowhere
        )
    assert (found.end, found.committed) == (DispatchEnd.NOT_SENT, None)
    assert "REFUSED" in (found.error or "")
    assert (await adapter.navigate(witness.url + "/page", number=4, budget_ms=5_000, at=nowhere)).committed is not None


async def test_a_server_that_hangs_gives_no_answer(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, "here")
    found = await adapter.navigate(witness.url + "/hang", number=9, budget_ms=300, at=nowhere)
    assert (found.end, found.committed) == (DispatchEnd.NO_ANSWER, None)
    assert ("GET", "/hang", "") in witness.log
    assert [r.state for r in adapter.requests(9)] == ["pending"]
    assert (await adapter.window()).document == seen.window.document


async def test_an_answer_without_a_document_leaves_the_page(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, "here")
    found = await adapter.navigate(witness.url + "/none", number=3, budget_ms=5_000, at=nowhere)
    assert (found.end, found.committed) == (DispatchEnd.COMPLETED, None)
    assert (await adapter.window()).document == seen.window.document


async def test_a_dialog_while_loading_is_told_at_once(adapter: WebAdapter, witness: Witness) -> None:
    witness.pages["/a"] = "<script>alert('hi')</script><button>Go</button>"
    found = await adapter.navigate(witness.url + "/a", number=3, budget_ms=10_000, at=nowhere)
    assert found.dialog is not None
    assert (found.dialog.type, found.dialog.text) == ("alert", "hi")
    assert found.committed is not None
    assert found.committed.url == witness.url + "/a"


async def test_leaving_a_page_that_asks_back(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(
        adapter, witness, "<button>Touch</button><script>onbeforeunload=e=>{e.preventDefault();return 'x'}</script>"
    )
    await act(adapter, find(seen, name="Touch"))
    witness.pages["/b"] = "other"
    found = await adapter.navigate(witness.url + "/b", number=3, budget_ms=5_000, at=nowhere)
    assert found.end is DispatchEnd.NO_ANSWER
    assert found.dialog is not None
    assert found.dialog.type == "beforeunload"
    assert ("GET", "/b", "") not in witness.log


CAUSES = """<button id=a onclick="fetch('/sync',{method:'POST'});setTimeout(()=>fetch('/later',{method:'POST'}),30);
(async()=>{await fetch('/first');await fetch('/second',{method:'POST'})})()">Go</button>
<script>window.poll=setInterval(()=>fetch('/poll',{method:'POST'}),20)</script>"""


async def test_requests_are_put_down_to_their_cause(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, CAUSES)
    await act(adapter, find(seen, name="Go"), number=42)
    for path in ("/sync", "/later", "/second"):
        assert await asyncio.to_thread(witness.wait_for, lambda log, p=path: any(e[1] == p for e in log))
    polls = len(witness.wrote(path="/poll"))
    assert await asyncio.to_thread(witness.wait_for, lambda log: len(witness.wrote(path="/poll")) > polls + 1)
    await script(adapter, "clearInterval(poll)")
    caused = [(r.url.removeprefix(witness.url), r.how) for r in adapter.requests(42)]
    assert sorted(caused) == [(p, "causal") for p in ("/first", "/later", "/second", "/sync")]
    assert adapter.requests(43) == ()


async def test_a_link_is_followed_and_put_down_to_the_click(adapter: WebAdapter, witness: Witness) -> None:
    witness.pages["/next"] = "<title>Next</title><button>There</button>"
    seen = await show(adapter, witness, "<a href=/next>On</a>")
    async with adapter._page.expect_navigation():
        await act(adapter, find(seen, name="On"), number=5)
    assert [(r.url, r.how) for r in adapter.requests(5)] == [(witness.url + "/next", "causal")]
    after = await adapter.observe(ObserveOptions())
    assert after.window.title == "Next"
    assert after.window.document != seen.window.document
    find(after, name="There")


async def test_the_walk_is_of_one_document(adapter: WebAdapter, witness: Witness) -> None:
    """The page leaves while it is read: the answer is of one document, never a mixture."""
    links = "".join(f"<a href=/%s/{i}>%s {i}</a>" for i in range(400))
    witness.pages["/b"] = "<title>B</title>" + links.replace("%s", "b")
    witness.pages["/a"] = (
        "<title>A</title>" + links.replace("%s", "a") + "<script>setTimeout(()=>location='/b',30)</script>"
    )
    await adapter.navigate(witness.url + "/a", number=3, budget_ms=5_000, at=nowhere)
    for _ in range(12):
        seen = await adapter.observe(ObserveOptions())
        letter = seen.window.title.lower()
        assert seen.window.url.endswith("/" + letter)
        assert {str(n["name"])[0] for n in seen.nodes if n["role"] == "link"} == {letter}
        if letter == "b":
            break
