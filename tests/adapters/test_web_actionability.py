"""States and the hit test, with the exceptions that HTML and ARIA make."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

import pytest
from web_pages import Witness, act, find, look, script, show

from deskcert.adapters.base import DispatchEnd
from deskcert.adapters.web.adapter import WebAdapter
from deskcert.contract.evidence import Known

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

DISABLED = """<span aria-disabled=true><button id=A>A</button></span>
<fieldset disabled><legend><button id=B>B</button></legend><button id=C>C</button></fieldset>
<button disabled id=o><span id=D onclick=1>D</span></button><x-btn disabled role=button tabindex=0 id=E>E</x-btn><button id=F>F</button>
<div inert><button id=G>G</button></div><label id=L for=off>L</label><input id=off disabled>
<fieldset disabled><fieldset><legend><input id=H aria-label=H></legend></fieldset></fieldset>"""


async def test_enabled_follows_html_and_aria(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, DISABLED)
    enabled = {i: (await look(adapter, find(seen, id=i))).states["enabled"] for i in "ABCDEFGLH"}
    assert {i for i, state in enabled.items() if state == Known(True)} == {"B", "F"}


async def test_behind_a_modal_dialog_nothing_is_enabled(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(
        adapter, witness, "<button>Out</button><dialog id=d><button>In</button></dialog><script>d.showModal()</script>"
    )
    assert (await look(adapter, find(seen, name="In"))).states["enabled"] == Known(True)
    assert (await look(adapter, find(seen, name="Out"))).states["enabled"] == Known(False)


@pytest.mark.parametrize(
    ("style", "visible"),
    [
        ("", True),
        ("opacity:0", False),
        ("visibility:hidden", False),
        ("display:none", False),
        ("width:0;height:0;padding:0;border:0;overflow:hidden", False),
        ("opacity:.01", True),
    ],
)
async def test_visible_of_itself_and_by_its_ancestors(
    adapter: WebAdapter, witness: Witness, style: str, visible: bool
) -> None:
    seen = await show(adapter, witness, "<div id=o><button id=b>Go</button></div><p aria-hidden=false>x</p>")
    handle = find(seen, id="b")
    await script(adapter, f"b.style.cssText='{style}'")
    assert (await look(adapter, handle)).states["visible"] == Known(visible)
    if "width" not in style:
        await script(adapter, f"b.style.cssText='';o.style.cssText='{style}'")
        assert (await look(adapter, handle)).states["visible"] == Known(visible)
    await script(adapter, "b.style.cssText=o.style.cssText='';o.ariaHidden='true'")
    assert (await look(adapter, handle)).states["visible"] == Known(True)


async def test_the_occluder_is_named(adapter: WebAdapter, witness: Witness) -> None:
    cover = "<div role=dialog aria-label='Cookie notice' style='position:fixed;inset:0;background:#fff'><p>We</p></div>"
    seen = await show(adapter, witness, "<button>Buy</button>" + cover)
    hit = (await look(adapter, find(seen, name="Buy"))).hit_test
    assert (hit.status, hit.occluder_role, hit.occluder_name) == ("fail", "dialog", "Cookie notice")


@pytest.mark.parametrize(
    "body",
    [
        "<button id=t><span style='display:block;padding:9px'>inner</span></button>",
        "<button><span id=t onclick=1 style='pointer-events:none'>inner</span></button>",
        "<label for=t style='position:absolute;left:0;top:0;width:50px;height:50px'>L</label>"
        "<input type=checkbox id=t style='position:absolute;left:9px;top:9px;z-index:-1'>",
        "<a href=/x id=t>a long link that <br> is broken over lines</a>",
        "<label id=t>Agree <input type=checkbox style='width:200px'></label>",
    ],
)
async def test_descendants_labels_and_activating_ancestors_count(
    adapter: WebAdapter, witness: Witness, body: str
) -> None:
    seen = await show(adapter, witness, body)
    assert (await look(adapter, find(seen, id="t"))).hit_test.status == "pass"


async def test_a_container_under_the_pointer_is_not_the_target(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(
        adapter, witness, "<div role=group aria-label=Box><button id=t style='pointer-events:none'>Go</button></div>"
    )
    hit = (await look(adapter, find(seen, id="t"))).hit_test
    assert (hit.status, hit.occluder_name) == ("fail", "Box")


async def test_out_of_view_is_deferred_and_judged_after_the_scroll(adapter: WebAdapter, witness: Witness) -> None:
    far = "<div style='height:5000px'></div><button id=b onclick='window.hit=1'>Far</button><div style='height:900px'></div>"
    seen = await show(adapter, witness, far)
    handle = find(seen, name="Far")
    assert (await look(adapter, handle)).hit_test.status == "deferred"
    found = await act(adapter, handle)
    assert (found.end, found.preparatory_scroll, await script(adapter, "window.hit")) == (
        DispatchEnd.COMPLETED,
        True,
        1,
    )
    assert await script(adapter, "scrollY") > 4000


async def test_a_scroller_inside_the_page_is_scrolled_too(adapter: WebAdapter, witness: Witness) -> None:
    inner = "<div style='height:900px'></div><button id=b onclick='window.hit=1'>Far</button><div style='height:900px'></div>"
    seen = await show(
        adapter, witness, f"<div style='height:90px;overflow:auto'>{inner}</div><p>below</p>" + "<br>" * 60
    )
    handle = find(seen, name="Far")
    assert (await look(adapter, handle)).hit_test.status == "deferred"
    found = await act(adapter, handle)
    assert (found.end, found.preparatory_scroll, await script(adapter, "window.hit")) == (
        DispatchEnd.COMPLETED,
        True,
        1,
    )


async def test_a_cover_found_only_after_the_scroll_sends_nothing(adapter: WebAdapter, witness: Witness) -> None:
    far = "<div style='height:5000px'></div><button id=b onclick='window.hit=1'>Far</button><div style='height:900px'></div>"
    cover = "<div style='position:fixed;inset:0;background:#fff8'>Cover</div>"
    seen = await show(adapter, witness, far + cover)
    found = await act(adapter, find(seen, name="Far"))
    assert (found.end, found.preparatory_scroll, found.differences) == (DispatchEnd.CHANGED, True, ("hit_test",))
    assert (found.events_sent, await script(adapter, "window.hit")) == ((), None)


async def test_states_of_controls(adapter: WebAdapter, witness: Witness) -> None:
    body = """<input type=checkbox id=c checked required aria-label=c><input id=r readonly aria-label=r><button id=e aria-expanded=true>e</button>
    <button id=p aria-pressed=false>p</button><details open><summary id=s>s</summary>x</details><input type=checkbox id=m aria-label=m>
    <script>m.indeterminate=true;r.focus()</script>"""
    seen = await show(adapter, witness, body)
    states = {i: {k: v.value for k, v in (await look(adapter, find(seen, id=i))).states.items()} for i in "crepsm"}  # type: ignore[union-attr]
    base = {"visible": True, "enabled": True, "focused": False}
    assert states["c"] == base | {"checked": True, "required": True}
    assert states["r"] == base | {
        "focused": True,
        "readonly": True,
        "editable": False,
        "secure": False,
        "required": False,
    }
    assert states["e"] == base | {"expanded": True}
    assert states["p"] == base | {"pressed": False}
    assert states["s"] == base | {"expanded": True}
    assert states["m"] == base | {"checked": False, "indeterminate": True, "required": False}
