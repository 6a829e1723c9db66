"""Failures of other tools on pages, as publicly reported, each by its id; and the probes on which leading web tools act on
the wrong element or report a false success. The server's log says what really happened."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.session import Options

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

DRAW = """<div id=row></div><script>
const hit = (n) => fetch('/hit?n=' + n, {method: 'POST', keepalive: true});
const button = (n) => { const b = document.createElement('button'); b.textContent = n; b.onclick = () => hit(b.textContent); return b; };
const draw = (names) => row.replaceChildren(...names.map(button));
draw(['Archive', 'Beta', 'Gamma']);
</script>"""


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness)
    yield made
    made.records()


async def hits(page: GuardedPage, expected: int) -> list[str]:
    """What the server saw, after as many writes as are expected have come, and a request of our own behind them."""
    await asyncio.to_thread(page.witness.wait_for, lambda log: sum(e[0] == "POST" for e in log) >= expected)
    if (await page.script("typeof fetch")) == "function":
        await page.script("fetch('/page').then(() => 0)")
    return [path.partition("n=")[2] for _, path, _ in page.witness.wrote()]


async def test_r001_an_old_ref_is_the_element_it_was_given_for(page: GuardedPage) -> None:
    await page.show(DRAW)
    beta = page.nodes["Beta"]["ref_id"]
    await page.script("row.prepend(button('Delete all'))")
    await page.look()
    assert (await page.ask("click", ref=beta))["ok"]
    assert (await page.ask("click", ref=beta.partition(":")[2]))["error"]["code"] == "INVALID_ARGS"
    assert (await page.ask("click", ref="@" + beta.partition(":")[2]))["error"]["code"] == "INVALID_ARGS"
    assert await hits(page, 1) == ["Beta"]


async def test_r003_a_repeated_id_is_no_identity(page: GuardedPage) -> None:
    await page.show(
        "<div id=g></div><input id=stable aria-label=stable value=S><script>const R=['Alpha','Beta'];window.filter=(on)=>{g.innerHTML='';"
        "R.filter(x=>!on||x!='Alpha').forEach(x=>{const i=document.createElement('input');i.id='title';i.setAttribute('aria-label','title');"
        "i.value=x;i.onchange=()=>fetch('/set?n='+x,{method:'POST'});g.append(i)})};filter(false)</script>"
    )
    alpha = page.nodes["title"]["ref_id"]
    await page.script("filter(true)")
    for command, args in (("set-value", {"value": "Z"}), ("get", {"property": "value"})):
        answer = await page.ask(command, ref=alpha, **args)
        assert answer["error"]["code"] == "STALE_REF"
    for text in ("one", "two"):
        assert delivery(await page("set-value", "stable", value=text)) == "delivered_verified"
    assert await hits(page, 0) == []


async def test_r005_a_snapshot_never_mixes_two_documents(page: GuardedPage) -> None:
    links = "".join(f"<a href='/b?{i}'>L{i}</a>" for i in range(400))
    page.witness.pages["/b"] = f"<title>b</title>{links.replace('L', 'B')}"
    await page.show(links + "<script>setTimeout(()=>location='/b',30)</script>", path="/a")
    for _ in range(4):
        data = await page.look()
        names = {n[0] for n in page.nodes if n[0] in "LB"}
        assert names == ({"L"} if data["window"]["title"] == "page" else {"B"}), data["window"]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("row.replaceChildren()", "resolution_complete_absence"),
        ("draw(['Archive','Beta','Gamma'])", "resolution_complete_absence"),
        ("row.children[1].textContent='Other'", "resolution_identity_changed"),
    ],
)
async def test_r007_a_dead_ref_says_why(page: GuardedPage, change: str, kind: str) -> None:
    await page.show(DRAW)
    await page.script(change)
    for _ in range(2):
        error = (await page("click", "Beta"))["error"]
        assert (error["code"], error["details"]["kind"]) == ("STALE_REF", kind)
        assert error["recovery"]["requires_fresh_snapshot"] is True
    assert await hits(page, 0) == []


async def test_r009_like_names_are_told_apart_by_where_they_stand(page: GuardedPage) -> None:
    rows = "".join(f"<tr><td>Order {i}<td><button onclick=\"hit('{i}')\">Add</button>" for i in (1, 2))
    await page.show(DRAW + f"<button onclick=\"hit('new')\">Add New</button><table>{rows}</table>")
    found = (await page.ask("find", role="button", name="Add", exact=True))["data"]
    assert [m["context"][-1] for m in found["matches"]] == [["row", "Order 1"], ["row", "Order 2"]]
    assert (await page.ask("click", ref=found["matches"][1]["ref_id"]))["ok"]
    assert await hits(page, 1) == ["2"]


@pytest.mark.parametrize("field", ["Search", "Choose"])
async def test_r016_enter_in_a_field_is_the_default_button(page: GuardedPage, field: str) -> None:
    await page.show(
        "<form method=post action=/hit?n=gone><input aria-label=Search><input type=checkbox aria-label=Choose><button>Delete account</button></form>"
    )
    denied = await page("press", field, key="Enter")
    assert (denied["error"]["code"], denied["error"]["details"]["source"]["via"]) == (
        "POLICY_DENIED",
        "default_submitter",
    )
    assert (await page("type", "Search", text="a\n"))["error"]["details"]["kind"] == "post_action_verification"
    assert await hits(page, 0) == []


async def test_r018_no_command_runs_a_script_of_the_agents(page: GuardedPage) -> None:
    await page.show(DRAW)
    assert (await page.ask("evaluate", script="hit('x')"))["error"]["code"] == "INVALID_ARGS"
    assert (await page.ask("navigate", url="javascript:hit('x')"))["error"]["code"] == "INVALID_ARGS"
    assert await hits(page, 0) == []


async def test_r021_what_slides_under_the_pointer_is_not_clicked(page: GuardedPage) -> None:
    await page.show(
        DRAW
        + "<script>row.children[1].addEventListener('pointerdown',()=>row.prepend(Object.assign(button('Ad'),{style:'position:fixed;inset:0'})))</script>"
    )
    answer = await page("click", "Beta")
    assert (answer["error"]["details"]["kind"], delivery(answer)) == ("stopped_midway", "delivered_unverified")
    assert await hits(page, 0) == []


DISABLED = (
    "<div aria-disabled=true><button onclick=\"hit('a')\">Around</button></div><x-b disabled tabindex=0 role=button onclick=\"hit('b')\">Custom</x-b>"
    "<button disabled><span onclick=\"hit('c')\">Inside</span></button>"
    "<fieldset disabled><legend><button onclick=\"hit('legend')\">Legend</button></legend><button onclick=\"hit('d')\">Field</button></fieldset>"
)


async def test_r023_disabled_as_the_rules_say(page: GuardedPage) -> None:
    await page.show(DRAW + DISABLED)
    for name in ("Around", "Custom", "Inside", "Field"):
        refused = await page("click", name, timeout_ms=0)
        assert (refused["error"]["code"], refused["error"]["details"]["kind"]) == (
            "TIMEOUT",
            "actionability_timeout",
        ), name
        assert "enabled" in refused["error"]["message"]
    assert (await page("click", "Legend"))["ok"]
    assert await hits(page, 1) == ["legend"]


async def test_r023_what_gets_enabled_in_time_is_clicked_once(page: GuardedPage) -> None:
    await page.show(
        DRAW + "<script>row.children[1].disabled=true;setTimeout(()=>row.children[1].disabled=false,400)</script>"
    )
    assert (await page("click", "Beta", timeout_ms=5_000))["ok"]
    assert await hits(page, 1) == ["Beta"]


async def test_r025_what_was_not_sent_is_not_delivered(page: GuardedPage) -> None:
    await page.show(DRAW)
    ref = page.nodes["Beta"]["ref_id"]
    beyond = await page.ask("click", ref=ref.partition(":")[0] + ":e99")
    assert (beyond["error"]["code"], delivery(beyond)) == ("STALE_REF", "not_delivered")
    assert await hits(page, 0) == []


async def test_r029_a_handler_that_throws_was_delivered(page: GuardedPage) -> None:
    await page.show(DRAW + "<script>row.children[1].onclick=()=>{hit('Beta');throw new Error('x')}</script>")
    assert delivery(await page("click", "Beta")) == "delivered_unverified"
    assert await hits(page, 1) == ["Beta"]


async def test_r031_a_save_that_looks_failed_is_not_sent_again(page: GuardedPage) -> None:
    await page.show(
        DRAW
        + "<p id=m></p><script>row.children[1].onclick=()=>hit('Beta').then(()=>m.textContent='Session timed out')</script>"
    )
    await page("click", "Beta")
    for _ in range(3):
        again = await page("click", "Beta")
        assert (again["error"]["code"], again["error"]["details"]["kind"]) == ("POLICY_DENIED", "unsafe_retry")
    assert await hits(page, 1) == ["Beta"]


async def test_r033_two_fast_clicks_are_one(page: GuardedPage) -> None:
    await page.show(DRAW)
    ref = page.nodes["Beta"]["ref_id"]
    first, second = await asyncio.gather(page.ask("click", ref=ref), page.ask("click", ref=ref))
    assert (first["ok"], second["ok"]) == (True, False)
    assert await hits(page, 1) == ["Beta"]


async def test_r035_a_ref_in_a_frame_never_means_the_outer_page(page: GuardedPage) -> None:
    page.witness.pages["/inner"] = "<button onclick=\"fetch('/hit?n=inner',{method:'POST'})\">Go</button>"
    await page.show(
        "<button onclick=\"fetch('/hit?n=outer',{method:'POST'})\">Outer</button><iframe src=/inner id=f></iframe>"
    )
    await page.look()
    go = page.nodes["Go"]["ref_id"]
    assert (await page.ask("click", ref=go))["ok"]
    await page.script("new Promise(r=>{f.onload=r;f.src='/inner?2'})")
    assert (await page.ask("click", ref=go))["error"]["code"] == "STALE_REF"
    assert await hits(page, 1) == ["inner"]


async def test_r037_no_shadow_root_hides_a_forbidden_name(page: GuardedPage) -> None:
    await page.show(
        "<x-o></x-o><x-c></x-c><script>for(const [m,t] of [['open','x-o'],['closed','x-c']])document.querySelector(t).attachShadow({mode:m})"
        ".innerHTML=`<button onclick=\"fetch('/hit?n=x',{method:'POST'})\">Delete ${m}</button>`</script>"
    )
    assert (await page.look())["complete"] is True
    for mode in ("open", "closed"):
        assert (await page("click", f"Delete {mode}"))["error"]["code"] == "POLICY_DENIED"
    assert await hits(page, 0) == []


async def test_r037_what_cannot_be_read_is_not_complete(page: GuardedPage) -> None:
    """A custom element whose root could not be asked for, here because there are too many of them."""
    await page.show("".join(f"<x-{i}>text</x-{i}>" for i in range(70)))
    data = await page.look()
    assert data["complete"] is False
    assert (await page.ask("find", name="Hidden", count=True))["error"]["code"] == "APP_UNRESPONSIVE"


async def test_r039_a_dialog_is_told_at_once_and_blocks_until_it_is_answered(page: GuardedPage) -> None:
    await page.show(
        "<button onclick=\"if(confirm('Delete this order?'))fetch('/hit?n=x',{method:'POST'})\">Remove</button><button>Else</button>"
    )
    clicked = await page("click", "Remove")
    assert clicked["data"]["details"]["pending_dialog"]["text"] == "Delete this order?"
    assert (await page("click", "Else"))["error"]["details"]["kind"] == "pending_dialog"
    assert (await page.ask("dialog-accept"))["error"]["code"] == "POLICY_DENIED"
    assert (await page.ask("dialog-dismiss"))["ok"]
    assert await hits(page, 0) == []


async def test_r044_a_mask_that_drops_what_was_entered_is_a_failure(page: GuardedPage) -> None:
    await page.show(
        "<input aria-label=Sum oninput=\"value=value.replace(/[^0-9]/g,'').slice(0,1)\"><input aria-label=Kept>"
    )
    failed = await page("set-value", "Sum", value="259")
    assert failed["error"]["details"]["kind"] == "post_action_verification"
    assert failed["error"]["disposition"] == {"delivery": "delivered_unverified", "retry": "unsafe"}
    assert "259" not in str(failed)
    assert delivery(await page("set-value", "Kept", value="259")) == "delivered_verified"


async def test_r063_what_was_cut_is_marked_in_every_form(page: GuardedPage) -> None:
    await page.show("".join(f"<p><button>B{i}</button></p>" for i in range(200)))
    data = await page.look(max_nodes=50)
    assert (data["complete"], data["truncated"]) == (False, True)
    assert "INCOMPLETE" in data["text"].splitlines()[0]
    assert data["reasons"]


# The probes: one page each, the same step on every tool.


async def test_probe_labels_rotate_over_the_same_nodes(page: GuardedPage) -> None:
    await page.show(DRAW)
    await page.script("['Gamma','Archive','Beta'].forEach((n,i)=>row.children[i].textContent=n)")
    for _ in range(2):
        assert (await page("click", "Beta"))["error"]["code"] == "STALE_REF"
        await page.ask("snapshot")
    assert await hits(page, 0) == []


async def test_probe_a_row_is_inserted_above(page: GuardedPage) -> None:
    await page.show(DRAW)
    await page.script("row.prepend(button('New'))")
    assert (await page("click", "Beta"))["ok"]
    assert await hits(page, 1) == ["Beta"]


async def test_probe_replaced_by_two_of_the_same_name(page: GuardedPage) -> None:
    await page.show(DRAW)
    await page.script("draw(['Archive','Beta','Beta'])")
    assert (await page("click", "Beta"))["error"]["code"] == "STALE_REF"
    assert await hits(page, 0) == []


async def test_probe_a_transparent_overlay(page: GuardedPage) -> None:
    await page.show(
        DRAW
        + "<div id=ov role=dialog aria-label=Consent style='position:fixed;inset:0' onclick=\"hit('overlay')\"></div>"
    )
    refused = await page("click", "Beta", timeout_ms=0)
    check = [c for c in refused["error"]["details"]["last_report"]["checks"] if c["check"] == "receives_events"]
    assert check[0]["occluder"] == {"role": "dialog", "name": "Consent"}
    assert await hits(page, 0) == []


async def test_probe_a_field_that_empties_itself(page: GuardedPage) -> None:
    await page.show("<input aria-label=F oninput=\"value=''\"><input aria-label=R readonly value=kept>")
    assert (await page("set-value", "F", value="x"))["error"]["details"]["kind"] == "post_action_verification"
    assert (await page("set-value", "R", value="x"))["error"]["code"] == "ACTION_NOT_SUPPORTED"
    assert await page.script("document.querySelector('[readonly]').value") == "kept"


async def test_probe_a_moving_button_is_clicked_once(page: GuardedPage) -> None:
    await page.show(
        DRAW + "<script>let x=0;setInterval(()=>{row.style.transform=`translateX(${x=(x+3)%200}px)`},16)</script>"
    )
    answer = await page("click", "Beta", timeout_ms=3_000)
    assert answer["ok"], answer
    assert await hits(page, 1) == ["Beta"]


async def test_probe_a_page_that_leaves_by_itself(page: GuardedPage) -> None:
    page.witness.pages["/other"] = (
        "<input aria-label=Beta><button onclick=\"fetch('/hit?n=wrong',{method:'POST'})\">Beta</button>"
    )
    await page.show(DRAW)
    await page.script("location='/other'")
    await page.ask("wait", navigation=True)
    assert (await page("click", "Beta"))["error"]["code"] == "STALE_REF"
    assert await hits(page, 0) == []


async def test_probe_a_handler_that_hangs_is_never_undone(page: GuardedPage) -> None:
    assert Options().timeout_ms == 5_000
    await page.show(
        DRAW + "<script>row.children[1].onclick=()=>{hit('Beta');const t=Date.now();while(Date.now()-t<2600);}</script>"
    )
    answer = await page("click", "Beta")
    assert (answer["error"]["code"], answer["error"]["details"]["kind"]) == ("TIMEOUT", "dispatch_timeout")
    assert delivery(answer) == "delivered_unverified"
    assert await hits(page, 1) == ["Beta"]
