"""Every way to the same effect: which other elements an action would activate, and where it would lead."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

import asyncio

import pytest
from web_pages import CLICK, ENTER, SPACE, Witness, act, find, look, script, show

from deskcert.adapters.base import Action, DispatchEnd
from deskcert.adapters.web.adapter import WebAdapter
from deskcert.contract.evidence import ABSENT, ActivationPath, Destination, Evidence, Known
from deskcert.guard.retry_gate import fingerprint

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

ORDER = "<form action=/order method=post><input name=q aria-label=Note value=1><button type=button>Later</button><button>Place order</button></form>"


def the_path(evidence: Evidence, why: str) -> ActivationPath:
    found = [p for p in evidence.paths if p.why == why]
    assert len(found) == 1, evidence.paths
    return found[0]


async def arrived(witness: Witness, path: str) -> None:
    assert await asyncio.to_thread(witness.wait_for, lambda log: any(path in e[1] and e[0] != "GET" for e in log))


async def test_enter_in_a_field_is_known_by_the_default_button(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, ORDER)
    field = find(seen, name="Note")
    path = the_path(await look(adapter, field, ENTER), "default_submitter")
    assert (path.role, path.names.accessible) == ("button", Known("Place order"))
    assert path.destination == Known(Destination(form_action=witness.url + "/order", form_method="POST"))
    assert (await look(adapter, field, CLICK)).paths == ()
    found = await act(adapter, field, ENTER)
    assert (found.end, found.events_sent) == (DispatchEnd.COMPLETED, ("focus", "keydown", "keypress", "click", "keyup"))
    await arrived(witness, "/order")
    assert witness.wrote() == [("POST", "/order", "q=1")]


async def test_a_default_button_renamed_in_the_act_is_not_pressed(adapter: WebAdapter, witness: Witness) -> None:
    rename = "<script>document.querySelector('input').onkeydown=()=>{document.querySelectorAll('button')[1].textContent='Delete'}</script>"
    seen = await show(adapter, witness, ORDER + rename)
    found = await act(adapter, find(seen, name="Note"), ENTER)
    assert (found.end, found.stopped_before, found.differences) == (DispatchEnd.STOPPED, "keypress", ("paths",))
    assert await script(adapter, "location.pathname") == "/page"
    assert witness.wrote() == []


@pytest.mark.parametrize(
    ("form", "sent"),
    [
        ("<input aria-label=Note>", True),
        ("<input aria-label=Note><input name=b>", False),
        ("<input aria-label=Note><button disabled>Go</button>", False),
        ("<input aria-label=Note onkeydown='event.preventDefault()'><button>Go</button>", False),
        ("<input type=checkbox aria-label=Note><button>Go</button>", True),
        ("<input aria-label=Note><input type=image alt=Go src='data:,'>", True),
        ("<textarea aria-label=Note></textarea><button>Go</button>", False),
    ],
)
async def test_enter_submits_as_a_browser_would(adapter: WebAdapter, witness: Witness, form: str, sent: bool) -> None:
    seen = await show(adapter, witness, f"<form action=/order method=post>{form}</form>")
    field = find(seen, name="Note")
    evidence = await look(adapter, field, ENTER)
    assert (await act(adapter, field, ENTER)).end is DispatchEnd.COMPLETED
    if sent:
        await arrived(witness, "/order")
        assert the_path(evidence, "default_submitter").destination != ABSENT
    else:
        assert (await adapter.window()).url.endswith("/page")
        assert witness.wrote() == []


async def test_the_submitters_own_action_and_method_come_first(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(
        adapter,
        witness,
        "<form action=/a><button formaction=/b formmethod=post>Own</button><button>Plain</button><button type=button>None</button>"
        "<input type=reset></form><button form=x>Far</button><form id=x method=dialog></form><a href='../up?x#y'>Up</a>",
    )
    there = {
        n: (await look(adapter, find(seen, name=n))).destination for n in ("Own", "Plain", "None", "Reset", "Far", "Up")
    }
    assert there == {
        "Own": Known(Destination(form_action=witness.url + "/b", form_method="POST")),
        "Plain": Known(Destination(form_action=witness.url + "/a", form_method="GET")),
        "None": ABSENT,
        "Reset": ABSENT,
        "Far": ABSENT,
        "Up": Known(Destination(link=witness.url + "/up?x#y")),
    }


async def test_a_label_leads_to_its_control_and_back(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(
        adapter, witness, "<label for=c id=l>Delete everything</label><input type=checkbox id=c onchange='window.on=1'>"
    )
    control = the_path(await look(adapter, find(seen, id="l")), "label_control")
    assert (control.role, control.names.accessible) == ("checkbox", Known("Delete everything"))
    label = the_path(await look(adapter, find(seen, id="c")), "label")
    assert label.names.text == Known("Delete everything")
    found = await act(adapter, find(seen, id="l"))
    assert found.hit is not None
    assert (found.hit.role, found.hit.same_as_target) == ("label", True)
    assert await script(adapter, "[c.checked, window.on]") == [True, 1]


async def test_what_surrounds_it_is_activated_too(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(
        adapter,
        witness,
        "<a href=/gone><span onclick=1 id=s>Read</span> delete</a><div onclick=1>Card <button id=b>OK</button></div>",
    )
    link = the_path(await look(adapter, find(seen, id="s")), "ancestor")
    assert (link.role, link.names.accessible) == ("link", Known("Read delete"))
    assert link.destination == Known(Destination(link=witness.url + "/gone"))
    card = the_path(await look(adapter, find(seen, id="b")), "ancestor")
    assert (card.role, card.names.text) == ("generic", Known("Card"))  # the button inside does not lend its name


async def test_space_presses_a_button_and_ticks_a_box(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(
        adapter,
        witness,
        "<button onclick='window.n=1+(window.n||0)'>Go</button><input type=checkbox id=c aria-label=Box>",
    )
    assert (await act(adapter, find(seen, name="Go"), SPACE)).events_sent == (
        "focus",
        "keydown",
        "keypress",
        "keyup",
        "click",
    )
    assert (await act(adapter, find(seen, name="Go"), ENTER)).events_sent == ("keydown", "click", "keyup")
    await act(adapter, find(seen, name="Box"), SPACE)
    assert await script(adapter, "[window.n, c.checked]") == [2, True]


async def test_an_access_key_is_a_path(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, "<button accesskey=d>Delete</button><button>Here</button>")
    evidence = await look(adapter, find(seen, name="Here"), Action("press", key="alt+d"))
    assert the_path(evidence, "access_key").names.accessible == Known("Delete")


async def test_an_icon_is_known_by_its_label(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, "<button aria-label='Delete account'><svg width=9 height=9></svg></button>")
    assert (await look(adapter, find(seen, name="Delete account"))).names.accessible == Known("Delete account")


async def test_enter_and_a_label_are_recognised_as_the_click_that_they_become(
    adapter: WebAdapter, witness: Witness
) -> None:
    page = "<fieldset><legend>Note</legend><form action=/order method=post><input aria-label=Text></form></fieldset>"
    page += "<h2>Pay</h2><label for=b id=l>Pay</label><button id=b><i id=i onclick=0>Pay</i></button>"
    seen = await show(
        adapter,
        witness,
        page.replace("</form>", "<fieldset><legend>End</legend><button id=s>Send</button></fieldset></form>"),
    )
    for other, action, itself in (("Text", ENTER, "s"), ("l", CLICK, "b"), ("i", CLICK, "b")):
        handle = find(seen, name=other) if other == "Text" else find(seen, id=other)
        passed_on = fingerprint(action, await look(adapter, handle, action), None)
        assert passed_on == fingerprint(CLICK, await look(adapter, find(seen, id=itself)), None), other
