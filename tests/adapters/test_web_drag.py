"""Dragging one element onto another: both ends judged, the page's own log the witness of what arrived where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

LOG = (
    "<script>window.log=[];for(const t of ['pointerdown','mousedown','dragstart','dragover','drop','dragend',"
    "'pointerup','mouseup'])addEventListener(t,e=>log.push(t+' '+e.target.id),true)</script>"
)
BOARD = """
<ul aria-label=Open><li id=a tabindex=0 role=button draggable=true>Task A</li>
<li id=b tabindex=0 role=button draggable=true>Task B</li></ul>
<ul id=done aria-label=Done><li id=slot tabindex=0 role=button>Drop here</li></ul>
<ul id=bin aria-label="Delete for good"><li id=pit tabindex=0 role=button>Put away</li></ul>
<div id=wall tabindex=0 role=button>Wall</div>
<script>
for (const t of [a, b]) t.ondragstart = (e) => e.dataTransfer.setData('text/plain', t.id);
for (const list of [done, bin]) {
  list.ondragover = (e) => e.preventDefault();
  list.ondrop = (e) => {
    e.preventDefault();
    list.append(document.getElementById(e.dataTransfer.getData('text/plain')));
  };
}
</script>"""


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, timeout_ms=3_000)
    yield made
    made.records()


async def drag(page: GuardedPage, source: str, to: str, **args: object) -> dict[str, object]:
    return await page.ask("drag", ref=page.nodes[source]["ref_id"], to=page.nodes[to]["ref_id"], **args)


async def test_a_dragged_element_arrives_where_it_was_dragged_to(page: GuardedPage) -> None:
    await page.show(BOARD + LOG)
    answer = await drag(page, "Task A", "Drop here")
    assert (answer["ok"], delivery(answer)) == (True, "delivered_unverified"), answer
    assert await page.script("[...done.children].map(e => e.id)") == ["slot", "a"]
    assert await page.script("log") == [
        *("pointerdown a", "mousedown a", "dragstart a", "dragover slot", "drop slot", "dragend a")
    ]
    data = answer["data"]
    assert data["target"]["to"]["name"] == "Drop here"
    assert data["hit"] == {"role": "button", "name": "Drop here", "same_as_target": True}


async def test_a_place_that_takes_nothing_is_no_success(page: GuardedPage) -> None:
    await page.show(BOARD + LOG)
    answer = await drag(page, "Task A", "Wall")
    assert answer["error"]["details"]["kind"] == "post_action_verification", answer
    assert delivery(answer) == "delivered_unverified"
    assert "drop wall" not in await page.script("log")


async def test_both_ends_are_asked_of_the_policy_and_what_stands_around_them(page: GuardedPage) -> None:
    await page.show(BOARD + LOG)
    denied = await drag(page, "Task A", "Put away")
    assert denied["error"]["code"] == "POLICY_DENIED", denied
    assert denied["error"]["details"]["source"]["via"] == "drop_around"
    batch = await page.ask(
        "batch",
        entries=[
            {"command": "click", "args": {"ref": page.nodes["Task B"]["ref_id"]}},
            {
                "command": "drag",
                "args": {"ref": page.nodes["Task A"]["ref_id"], "to": page.nodes["Put away"]["ref_id"]},
            },
        ],
    )
    assert batch["data"]["stopped"]["index"] == 1
    assert await page.script("log") == []


async def test_an_end_that_became_something_else_is_stale(page: GuardedPage) -> None:
    await page.show(BOARD + LOG)
    await page.script("slot.textContent = 'Delete all'")
    stale = await drag(page, "Task A", "Drop here")
    assert (stale["error"]["code"], stale["error"]["details"]["changed"]) == ("STALE_REF", ["to.name"])
    await page.script("slot.remove()")
    assert (await drag(page, "Task B", "Drop here"))["error"]["code"] == "STALE_REF"
    assert await page.script("log") == []


async def test_a_covered_or_disabled_place_is_waited_for(page: GuardedPage) -> None:
    await page.show(BOARD + LOG + "<div id=veil style='position:absolute;inset:0' role=img aria-label=Veil></div>")
    await page.script("slot.style.cssText='position:relative;z-index:2';a.style.cssText='position:relative;z-index:2'")
    assert (await drag(page, "Task A", "Wall", timeout_ms=1_500))["error"]["code"] == "TIMEOUT"
    await page.script("slot.setAttribute('aria-disabled', 'true')")
    waited = await drag(page, "Task A", "Drop here", timeout_ms=1_500)
    assert waited["error"]["details"]["last_report"]["why"].startswith("drop_enabled")
    await page.script("slot.removeAttribute('aria-disabled')")
    assert (await drag(page, "Task A", "Drop here"))["ok"]


async def test_a_place_that_changes_under_the_drag_is_not_dropped_on(page: GuardedPage) -> None:
    await page.show(BOARD + LOG + "<script>a.addEventListener('dragstart', () => slot.textContent = 'Burn')</script>")
    answer = await drag(page, "Task A", "Drop here")
    assert answer["error"]["details"]["kind"] == "stopped_midway", answer
    assert answer["error"]["details"]["differences"] == ["to.names.accessible", "to.names.text"]
    assert "drop slot" not in await page.script("log")


async def test_a_pages_own_drag_gets_pointer_events(page: GuardedPage) -> None:
    await page.show(
        "<div id=knob role=slider tabindex=0 aria-label=Knob aria-valuenow=0>o</div>"
        "<div id=rail role=button tabindex=0 style='margin-top:1500px'>Rail</div>"
        "<script>let held = false; knob.onpointerdown = () => { held = true };"
        "addEventListener('pointerup', (e) => { if (held) window.dropped = e.target.id })</script>" + LOG
    )
    answer = await drag(page, "Knob", "Rail")
    assert (answer["ok"], answer["data"]["hit"]["name"]) == (True, "Rail"), answer
    assert await page.script("dropped") == "rail"
    assert "dragstart knob" not in await page.script("log")


async def test_a_drag_is_not_repeated_unseen_and_needs_two_elements(page: GuardedPage) -> None:
    await page.show(BOARD + LOG)
    await drag(page, "Task A", "Drop here")
    again = await drag(page, "Task B", "Drop here")
    assert again["ok"], "another element is another drag"
    await page.look()
    assert (await drag(page, "Task B", "Task B"))["error"]["code"] == "ACTION_NOT_SUPPORTED"
    assert (await page("drag", "Task B"))["error"]["code"] == "INVALID_ARGS"
