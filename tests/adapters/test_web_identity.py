"""The retained node is the first and the last word: the addressed element, or nothing."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

import asyncio

import pytest
from web_pages import CLICK, Witness, act, find, look, nowhere, script, show

from deskcert.adapters.base import DispatchEnd, Gone, Handle, Live, ObserveOptions
from deskcert.adapters.web.adapter import WebAdapter
from deskcert.contract.evidence import Hit, Known
from deskcert.guard.identity import Same, compare

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

ROWS = """<table id=t></table><script>
function row(id){return `<tr><td>Order ${id}<td><button onclick="fetch('/hit?n=${id}',{method:'POST',keepalive:true})">Approve</button></tr>`}
function draw(ids){t.innerHTML=ids.map(row).join('')} draw([1001,1002,1003])</script>"""


def in_row(seen, label: str) -> Handle:  # type: ignore[no-untyped-def]
    hits = [n for n in seen.nodes if n.get("name") == "Approve" and ["row", label] in n["context"]]
    assert len(hits) == 1
    return Handle(seen.window.document, hits[0]["node"])


async def test_twins_are_told_apart_by_their_row(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, ROWS)
    assert (await look(adapter, in_row(seen, "Order 1002"))).context == (("row", "Order 1002"),)
    await act(adapter, in_row(seen, "Order 1002"))
    assert await asyncio.to_thread(witness.wait_for, lambda log: log[-1][0] == "POST")
    assert witness.wrote() == [("POST", "/hit?n=1002", "")]


async def test_a_reordered_row_is_followed(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, ROWS)
    handle = in_row(seen, "Order 1003")
    expected = await look(adapter, handle)
    await script(adapter, "t.tBodies[0].prepend(t.rows[2])")
    found = await adapter.perform(handle, CLICK, expected, number=7, budget_ms=5_000, at=nowhere)
    assert found.end is DispatchEnd.COMPLETED
    assert await asyncio.to_thread(witness.wait_for, lambda log: log[-1][0] == "POST")
    assert witness.wrote() == [("POST", "/hit?n=1003", "")]


async def test_a_row_replaced_by_its_twin_is_gone(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, ROWS)
    handle = in_row(seen, "Order 1001")
    expected = await look(adapter, handle)
    await script(adapter, "draw([1001,1002,1003])")
    assert await adapter.probe(handle, CLICK, budget_ms=1_000) == Gone("removed")
    found = await adapter.perform(handle, CLICK, expected, number=7, budget_ms=5_000, at=nowhere)
    assert (found.end, found.reached) == (DispatchEnd.NOT_SENT, False)
    assert witness.wrote() == []


async def test_a_recycled_row_is_live_with_what_it_is_now(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, ROWS)
    handle = in_row(seen, "Order 1001")
    before = await look(adapter, handle)
    await script(adapter, "t.rows[0].cells[0].textContent='Order 1002'")
    after = await look(adapter, handle)
    assert (before.node, before.context, after.context) == (
        after.node,
        (("row", "Order 1001"),),
        (("row", "Order 1002"),),
    )
    assert before.digest != after.digest
    found = await adapter.perform(handle, CLICK, before, number=7, budget_ms=5_000, at=nowhere)
    assert (found.end, found.differences) == (DispatchEnd.CHANGED, ("context",))
    assert found.live == after
    assert witness.wrote() == []


@pytest.mark.parametrize("how", ["location.reload()", "location='/page?2'"])
async def test_another_document_is_another_generation(adapter: WebAdapter, witness: Witness, how: str) -> None:
    seen = await show(adapter, witness, ROWS)
    handle = in_row(seen, "Order 1001")
    expected = await look(adapter, handle)
    async with adapter._page.expect_navigation():
        await script(adapter, how)
    assert await adapter.probe(handle, CLICK, budget_ms=1_000) == Gone("navigated")
    found = await adapter.perform(handle, CLICK, expected, number=7, budget_ms=5_000, at=nowhere)
    assert found.end is DispatchEnd.NOT_SENT
    assert (await adapter.window()).document != handle.document
    assert witness.wrote() == []


async def test_numbers_are_kept_and_never_used_again(adapter: WebAdapter, witness: Witness) -> None:
    first = await show(adapter, witness, ROWS)
    kept = in_row(first, "Order 1002")
    await script(adapter, "t.rows[0].remove(); t.insertRow(0).innerHTML=row(9).slice(4)")
    second = await adapter.observe(ObserveOptions())
    assert in_row(second, "Order 1002") == kept
    assert in_row(second, "Order 9").node not in {n.get("node") for n in first.nodes}


async def test_context_is_labels_without_what_changes_by_itself(adapter: WebAdapter, witness: Witness) -> None:
    body = """<h2>Payouts (3)</h2><ul><li><strong>Ada</strong> <time>3 s ago</time> <button>Send</button></ul>
    <fieldset><legend>Address</legend><button>Clear</button></fieldset>
    <dialog open aria-label="Sure?"><button>Yes</button></dialog><section aria-label=Tools><button>Run</button></section>
    <table><tr><td><input type=checkbox><td><time>now</time><td>Order 5<td><span role=status>busy</span><button>Edit</button></table>"""
    seen = await show(adapter, witness, body)
    context = {n["name"]: n["context"] for n in seen.nodes if n["role"] == "button"}
    assert context == {
        "Send": [["listitem", "Ada"]],
        "Clear": [["legend", "Address"], ["heading", "Payouts"]],
        "Yes": [["dialog", "Sure?"]],
        "Run": [["region", "Tools"], ["heading", "Payouts"]],
        "Edit": [["row", "Order 5"]],
    }
    for node in seen.nodes:
        if node["role"] == "button":
            evidence = await look(adapter, Handle(seen.window.document, node["node"]))
            assert [list(pair) for pair in evidence.context] == node["context"]


async def test_an_element_in_a_frame_is_that_frames_own(adapter: WebAdapter, witness: Witness) -> None:
    witness.pages["/in"] = (
        "<div><span><button onclick=\"fetch('/hit?n=inner',{method:'POST'})\">Inner</button></span></div>"
    )
    seen = await show(adapter, witness, "<div><span><button>Top</button></span></div><iframe src=/in></iframe>")
    assert seen.complete, seen.reasons
    inner = find(seen, name="Inner")
    assert (await act(adapter, inner)).end is DispatchEnd.COMPLETED
    assert await asyncio.to_thread(witness.wait_for, lambda log: log[-1][0] == "POST")
    assert witness.wrote() == [("POST", "/hit?n=inner", "")]
    async with adapter._page.expect_event("framenavigated"):
        await script(adapter, "frames[0].location.reload()")
    assert await adapter.probe(inner, CLICK, budget_ms=1_000) == Gone("navigated")
    assert isinstance(await adapter.probe(find(seen, name="Top"), CLICK, budget_ms=1_000), Live)


async def test_an_empty_frame_whose_document_is_still_to_come_is_not_taken_for_all_there_is(
    adapter: WebAdapter, witness: Witness
) -> None:
    witness.pages["/hang/in"] = "<button>Inner</button>"
    seen = await show(adapter, witness, "<button>Top</button><iframe src=/hang/in></iframe>")
    assert (seen.complete, seen.reasons) == (False, ("a frame was still loading",))
    witness.release.set()
    async with asyncio.timeout(10):
        while not seen.complete:
            seen = await adapter.observe(ObserveOptions())
    find(seen, name="Inner")


async def test_an_open_shadow_root_is_walked(adapter: WebAdapter, witness: Witness) -> None:
    shadow = "<x-o><template shadowrootmode=open><label>Name <input></label><button onclick=\"fetch('/hit',{method:'POST'})\">"
    seen = await show(adapter, witness, shadow + "<slot></slot></button></template>Publish</x-o>")
    assert (await look(adapter, find(seen, role="textbox"))).names.accessible == Known("Name")
    found = await act(adapter, find(seen, name="Publish"))
    assert (found.end, found.reached) == (DispatchEnd.COMPLETED, True)
    assert found.hit is not None
    assert found.hit.same_as_target


@pytest.mark.parametrize("how", ["its own class", "from outside", "in another closed root"])
async def test_a_closed_shadow_root_is_walked_and_acted_in(adapter: WebAdapter, witness: Witness, how: str) -> None:
    inside = "<button onclick=fetch('/hit',{method:'POST'})>Publish</button><label>Name <input></label>"
    make = (
        f"const inside={inside!r};const shut=(h)=>h.attachShadow({{mode:'closed'}});"
        "customElements.define('x-plain',class extends HTMLElement{});"
    )
    body = {
        "its own class": "customElements.define('x-c',class extends HTMLElement{constructor(){super();shut(this).innerHTML=inside}})",
        "from outside": "shut(document.querySelector('x-c')).innerHTML=inside",
        "in another closed root": (
            "const outer=shut(document.querySelector('x-c'));outer.innerHTML='<x-d></x-d>';shut(outer.firstChild).innerHTML=inside"
        ),
    }[how]
    seen = await show(adapter, witness, f"<x-c></x-c><x-plain>text</x-plain><script>{make}{body}</script>")
    assert seen.complete, seen.reasons
    assert (await look(adapter, find(seen, role="textbox"))).names.accessible == Known("Name")
    found = await act(adapter, find(seen, name="Publish"))
    assert (found.end, found.reached, found.hit) == (DispatchEnd.COMPLETED, True, Hit("button", "Publish", True))
    assert await asyncio.to_thread(witness.wait_for, lambda log: log[-1][0] == "POST")
    again = await adapter.observe(ObserveOptions())
    assert [n.get("node") for n in again.nodes] == [n.get("node") for n in seen.nodes]


@pytest.mark.parametrize(
    ("options", "reason"),
    [(ObserveOptions(max_nodes=20), "more than 20 nodes"), (ObserveOptions(max_depth=3), "depth of more than 3")],
)
async def test_a_walk_that_was_cut_says_so(
    adapter: WebAdapter, witness: Witness, options: ObserveOptions, reason: str
) -> None:
    await show(adapter, witness, "<ul>" + "<li><ul><li><button>B</button></ul>" * 50)
    seen = await adapter.observe(options)
    assert not seen.complete
    assert any(reason in r for r in seen.reasons)
    assert any(n.get("truncated") for n in seen.nodes)
    assert len(seen.nodes) <= 21 or "depth" in reason


async def test_a_virtual_list_is_marked(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(
        adapter, witness, "<div role=grid aria-rowcount=1000><div role=row><div role=gridcell>1</div></div></div>"
    )
    grid = next(n for n in seen.nodes if n["role"] == "grid")
    assert (grid["size"], grid["truncated"], seen.complete) == (1000, True, False)


@pytest.mark.parametrize(
    "page",
    [
        "<table><tr onclick=1><td>Order 1001<td>12.00</table>",
        "<ul><li onclick=1>Order 1001</ul>",
        "<table><tr><td onclick=1>Order 1001</table>",
        "<label onclick=1>Order 1001</label>",
        "<ul><li style='cursor:pointer' title=Tip>Order 1001 <b>open</b></ul>",
    ],
)
async def test_a_row_or_list_item_that_can_be_clicked_is_itself_when_nothing_changed(
    adapter: WebAdapter, witness: Witness, page: str
) -> None:
    seen = await show(adapter, witness, page)
    (node,) = [n for n in seen.nodes if n.get("interactive")]
    handle = Handle(seen.window.document, node["node"])
    assert compare(node, handle, await look(adapter, handle)) == Same()


async def test_sizes_that_no_record_can_hold_are_cut(adapter: WebAdapter, witness: Witness) -> None:
    page = (
        "<button style='transform:scale(1e30)'>Big</button><table aria-rowcount=99999999999999999999><tr><td>x</table>"
        "<button style='transform:matrix(1e38,1e38,1e38,1e38,1e38,1e38)'>Bigger</button>"
    )
    seen = await show(adapter, witness, page)
    boxes = [n["box"] for n in seen.nodes if n["role"] == "button"]
    assert len(boxes) == 2
    assert [n["size"] for n in seen.nodes if n["role"] == "table"] == [2**53 - 1]
    box = (await look(adapter, find(seen, name="Big"))).box
    assert box is not None
    assert all(type(value) is int and abs(value) < 2**53 for value in (*boxes[0], *boxes[1], *box))
