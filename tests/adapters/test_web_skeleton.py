"""A page in outline, and looks into its parts: refs that are there for looking, and those of a part that act."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded_pages import GuardedPage, delivery, walk
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

PAGE = (
    "<main><section aria-label=Orders><h2>Orders</h2><ul>"
    + "".join(f"<li aria-label='Order {n}'><div role=group><button>Approve {n}</button></div></li>" for n in range(9))
    + "</ul></section><nav aria-label=Side><ul><li><a href=#x>Help</a></li></ul></nav>"
    "<iframe src=/inner title=Inner></iframe></main>"
    "<script>window.log=[];addEventListener('click',e=>log.push(e.target.textContent))</script>"
)


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    witness.pages["/inner"] = "<section aria-label=Part><p><button>In</button></section>"
    made = GuardedPage(tmp_path, adapter, witness, timeout_ms=3_000)
    yield made
    made.records()


async def test_a_skeleton_is_short_and_its_parts_are_looked_into(page: GuardedPage) -> None:
    await page.show(PAGE)
    whole = await page.look()
    outline = await page.look(skeleton=True, max_depth=2)
    assert outline["complete"] is True
    assert len(outline["text"]) < len(whole["text"]) / 2
    cut = [n for n in walk(outline["tree"]) if n.get("subtree_truncated")]
    assert cut
    assert all("ref_id" in n and n["children_count"] for n in cut)
    orders = next(n for n in cut if n["role"] == "list" and n["children_count"] == 9)
    part = await page.look(root=orders["ref_id"])
    assert (part["complete"], part["ref_count"]) == (True, 9)
    assert part["tree"]["role"] == "list"
    clicked = await page("click", "Approve 4")
    assert delivery(clicked) == "delivered_unverified", clicked
    assert await page.script("log") == ["Approve 4"]


async def test_a_part_is_no_target_and_no_display_moves_a_ref(page: GuardedPage) -> None:
    await page.show(PAGE)
    whole = {n["name"]: n["ref_id"].split(":")[1] for n in walk((await page.look())["tree"]) if "ref_id" in n}
    outline = await page.look(skeleton=True, max_depth=2)
    anchor = next(n for n in walk(outline["tree"]) if n.get("subtree_truncated"))
    for command in ("click", "get"):
        refused = await page.ask(command, ref=anchor["ref_id"])
        assert (refused["error"]["code"], "root" in refused["error"]["suggestion"]) == ("ACTION_NOT_SUPPORTED", True)
    ref = f"@{outline['snapshot_id']}:{whole['Approve 7']}"
    assert (await page.ask("click", ref=ref))["ok"], "what an outline does not show keeps its number"
    assert await page.script("log") == ["Approve 7"]


async def test_a_look_into_a_part_shows_nothing_of_what_an_action_did(page: GuardedPage) -> None:
    await page.show(PAGE)
    side = next(n for n in walk((await page.look(skeleton=True))["tree"]) if n.get("subtree_truncated"))
    await page.look()
    approve = page.nodes["Approve 1"]["ref_id"]
    assert (await page.ask("click", ref=approve))["ok"]
    await page.look(root=side["ref_id"])
    again = await page.ask("click", ref=approve)
    assert again["error"]["details"]["kind"] == "unsafe_retry"
    await page.look()
    assert (await page.ask("click", ref=approve))["ok"], "after a look at the whole it passes"


async def test_a_part_that_is_gone_or_another_is_stale(page: GuardedPage) -> None:
    await page.show(PAGE)
    outline = await page.look(skeleton=True, max_depth=2)
    part = next(n for n in walk(outline["tree"]) if n["role"] == "list" and n.get("children_count") == 9)
    await page.script("document.querySelector('ul').setAttribute('role', 'menu')")
    assert (await page.ask("snapshot", root=part["ref_id"]))["error"]["code"] == "STALE_REF"
    await page.script("document.querySelector('ul').remove()")
    assert (await page.ask("snapshot", root=part["ref_id"]))["error"]["code"] == "STALE_REF"


async def test_a_look_into_a_part_that_is_cut_short_is_an_error(page: GuardedPage) -> None:
    await page.show(PAGE)
    outline = await page.look(skeleton=True, max_depth=2)
    part = next(n for n in walk(outline["tree"]) if n["role"] == "list" and n.get("children_count") == 9)
    cut = await page.ask("snapshot", root=part["ref_id"], max_nodes=4)
    assert (cut["error"]["code"], cut["error"]["details"]["kind"]) == ("TIMEOUT", "observation_incomplete")
    assert (await page.ask("snapshot", root=part["ref_id"]))["ok"]


async def test_a_frame_can_be_looked_into_and_acted_in(page: GuardedPage) -> None:
    await page.show(PAGE)
    outline = await page.look(skeleton=True, max_depth=1)
    frame = next(n for n in walk(outline["tree"]) if n["role"] == "iframe")
    await page.look(root=frame["ref_id"])
    assert (await page("click", "In"))["ok"]


async def test_a_surface_is_shown_alone(page: GuardedPage) -> None:
    await page.show("<button>Under</button><dialog id=d aria-label=Ask><button>Yes</button></dialog>")
    none = await page.ask("snapshot", surface="dialog")
    assert none["error"]["code"] == "ELEMENT_NOT_FOUND"
    await page.script("d.show()")
    shown = await page.look(surface="dialog")
    assert [n["name"] for n in walk(shown["tree"]) if "ref_id" in n] == ["Yes"]
    assert "Under" not in shown["text"]
    assert (await page("click", "Yes"))["ok"]
    both = await page.ask("snapshot", surface="dialog", root=page.nodes["Yes"]["ref_id"])
    assert both["error"]["code"] == "INVALID_ARGS"
