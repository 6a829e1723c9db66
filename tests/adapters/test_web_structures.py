"""How real pages are built: fields of every type, comboboxes, lists that show a part, what lies on top, what is hidden,
drawings, and pages that are very deep or very wide."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded_pages import GuardedPage, delivery, walk
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, timeout_ms=3_000)
    yield made
    made.records()


TYPED = {
    "date": ("2026-12-24", "24.12.2026"),
    "time": ("23:15", "quarter past"),
    "datetime-local": ("2026-12-24T23:15", "2026-12-24"),
    "month": ("2026-12", "2026-13"),
    "week": ("2026-W52", "2026-52"),
    "number": ("12.5", "a dozen"),
    "range": ("70", "9999"),
    "color": ("#ff00aa", "pink-ish"),
}


@pytest.mark.parametrize("kind", TYPED)
async def test_a_field_takes_its_own_form_and_nothing_else_passes_for_it(page: GuardedPage, kind: str) -> None:
    await page.show(
        f"<input type={kind} id=f aria-label=F step=any><script>f.addEventListener('change',()=>window.changed=(window.changed??0)+1)</script>"
    )
    good, bad = TYPED[kind]
    assert delivery(await page("set-value", "F", value=good)) == "delivered_verified"
    assert await page.script("[f.value,changed]") == [good, 1]
    wrong = await page("set-value", "F", value=bad)
    assert (wrong["error"]["code"], wrong["error"]["details"]["kind"]) == (
        "ACTION_FAILED",
        "post_action_verification",
    ), wrong
    assert await page.script("f.value") != bad


async def test_an_editable_region_is_written_typed_into_and_cleared(page: GuardedPage) -> None:
    await page.show("<div id=f contenteditable role=textbox aria-multiline=true aria-label=F><b>old</b> text</div>")
    assert delivery(await page("set-value", "F", value="new")) == "delivered_verified"
    assert delivery(await page("type", "F", text=" words")) == "delivered_verified"
    assert await page.script("f.innerText") == "new words"
    assert delivery(await page("clear", "F")) == "delivered_verified"
    assert (await page.script("f.innerText")).strip() == ""


COMBO = """<input role=combobox aria-expanded=false aria-controls=l aria-autocomplete=list aria-label=City id=c><ul role=listbox id=l aria-label=Cities hidden></ul><script>
const all=['Ulm','Köln','Jena'];const open=(q)=>{l.hidden=false;c.ariaExpanded='true';l.replaceChildren(...all.filter(x=>x.toLowerCase().includes(q.toLowerCase())).map(x=>{
const o=document.createElement('li');o.role='option';o.textContent=x;o.onclick=()=>{c.value=x;l.hidden=true;c.ariaExpanded='false'};return o}))};
c.onclick=()=>open('');c.oninput=()=>open(c.value)</script>"""


async def test_a_combobox_is_opened_filtered_and_chosen_from(page: GuardedPage) -> None:
    await page.show(COMBO)
    assert delivery(await page("expand", "City")) == "delivered_verified"
    await page.look()
    assert {"Ulm", "Köln", "Jena"} <= set(page.nodes)
    assert delivery(await page("type", "City", text="kö")) == "delivered_verified"
    await page.look()
    assert "Ulm" not in page.nodes
    assert (await page("click", "Köln"))["ok"]
    assert (await page("get", "City", property="value"))["data"]["value"] == "Köln"
    assert (await page("is", "City", property="expanded"))["data"]["result"] is False
    assert (await page("select", "City", options="Ulm"))["error"]["code"] == "ACTION_NOT_SUPPORTED"


PICK = """<div role=combobox tabindex=0 aria-expanded=false aria-haspopup=listbox aria-controls=l aria-label=Fruit id=c>Apple</div><div role=listbox id=l hidden aria-label=Fruits>
<div role=option aria-selected=true>Apple</div><div role=option aria-selected=false>Pear</div></div><script>c.onclick=()=>{l.hidden=!l.hidden;c.ariaExpanded=String(!l.hidden)};
for(const o of l.children)o.onclick=()=>{c.textContent=o.textContent;for(const x of l.children)x.ariaSelected=String(x===o);l.hidden=true;c.ariaExpanded='false'}</script>"""


async def test_a_combobox_without_a_field(page: GuardedPage) -> None:
    await page.show(PICK)
    assert delivery(await page("expand", "Fruit")) == "delivered_verified"
    await page.look()
    assert "selected" in page.nodes["Apple"]["states"]
    assert (await page("click", "Pear"))["ok"]
    await page.look()
    assert page.nodes["Fruit"]["value"] == "Pear"


VIRTUAL = {
    "a table": "<div role=grid aria-label=Big aria-rowcount=1000>{}</div>|<div role=row aria-rowindex={i}><div role=gridcell>Row {i}</div></div>",
    "a list": "<ul aria-label=Big>{}</ul>|<li aria-setsize=1000 aria-posinset={i}>Row {i}</li>",
    "a list box": "<div role=listbox aria-label=Big>{}</div>|<div role=option aria-setsize=1000 aria-posinset={i}>Row {i}</div>",
    "a feed": "<div role=feed aria-label=Big>{}</div>|<article aria-setsize=1000 aria-posinset={i}>Row {i}</article>",
    "a tree": "<div role=tree aria-label=Big>{}</div>|<div role=treeitem aria-setsize=1000 aria-posinset={i}>Row {i}</div>",
}


@pytest.mark.parametrize("kind", VIRTUAL)
async def test_what_a_list_says_it_has_and_does_not_show_is_never_absent(page: GuardedPage, kind: str) -> None:
    outer, inner = VIRTUAL[kind].split("|")
    await page.show(outer.replace("{}", "".join(inner.replace("{i}", str(i)) for i in range(1, 21))))
    data = await page.look()
    assert data["complete"] is False
    assert any("1000" in reason and "20" in reason for reason in data["reasons"]), data["reasons"]
    (big,) = [n for n in walk(data["tree"]) if n.get("name") == "Big"]
    assert big["subtree_truncated"] is True
    missing = await page.ask("find", text="Row 700", count=True)
    assert missing["error"]["code"] == "APP_UNRESPONSIVE", missing


async def test_a_list_that_does_not_know_its_size_is_not_complete(page: GuardedPage) -> None:
    await page.show("<div role=grid aria-rowcount=-1 aria-label=G><div role=row><div role=gridcell>x</div></div></div>")
    assert (await page.look())["complete"] is False


async def test_columns_that_are_not_shown_are_not_absent(page: GuardedPage) -> None:
    row = "<div role=row><div role=gridcell>x</div><div role=gridcell>y</div></div>"
    await page.show(f"<div role=grid aria-rowcount=2 aria-colcount=40 aria-label=G>{row}{row}</div>")
    assert "a row of 40 shows 2" in (await page.look())["reasons"]


async def test_a_list_that_shows_all_it_has_is_complete(page: GuardedPage) -> None:
    await page.show("<ul>" + "".join(f"<li aria-setsize=3 aria-posinset={i}>Row {i}</li>" for i in (1, 2, 3)) + "</ul>")
    data = await page.look()
    assert data["complete"] is True, data["reasons"]
    assert (await page.ask("find", text="Row 4", count=True))["data"]["count"] == 0


async def test_a_portal_is_part_of_the_page_and_of_its_dialog(page: GuardedPage) -> None:
    await page.show(
        "<div id=app><button onclick=\"document.body.insertAdjacentHTML('beforeend','<div role=dialog aria-label=Sure><button>Yes</button></div>')\">Ask</button></div>"
    )
    assert (await page("click", "Ask"))["ok"]
    await page.look()
    assert ["dialog", "Sure"] in page.nodes["Yes"]["context"]


async def test_only_what_is_in_the_modal_dialog_on_top_can_be_acted_on(page: GuardedPage) -> None:
    await page.show(
        "<button onclick=\"fetch('/hit',{method:'POST'})\">Behind</button><input aria-label=Note><dialog id=z aria-label=First style='width:300px'>"
        "<button>Below</button></dialog><dialog id=a aria-label=Second style='width:100px'><button>Inside</button><div popover=manual id=own><button>Pop</button></div></dialog>"
        "<div popover=manual id=p><button>Astray</button></div><script>z.showModal();a.showModal();p.showPopover();own.showPopover()</script>"
    )
    for command, name, args in (
        ("click", "Behind", {}),
        ("set-value", "Note", {"value": "x"}),
        ("click", "Below", {}),
        ("focus", "Astray", {}),
    ):
        refused = await page(command, name, timeout_ms=0, **args)
        assert (refused["error"]["code"], "enabled" in refused["error"]["message"]) == ("TIMEOUT", True), refused
    assert (await page("click", "Pop"))["ok"]
    await page.script("own.hidePopover()")
    assert (await page("click", "Inside"))["ok"]
    await page.script("a.close()")
    assert (await page("click", "Below"))["ok"]
    assert page.witness.wrote() == []
    await page.script("z.close()")
    assert (await page("click", "Behind"))["ok"]


async def test_what_is_inert_is_there_and_waits_and_what_is_aria_hidden_is_left_out(page: GuardedPage) -> None:
    await page.show(
        "<div id=i inert><button>Asleep</button></div><div aria-hidden=true><button>Unheard</button></div><button>Awake</button>"
    )
    assert set(page.nodes) == {"Asleep", "Awake", "i"} - {"i"}
    asleep = await page("click", "Asleep", timeout_ms=0)
    assert asleep["error"]["details"]["kind"] == "actionability_timeout"
    await page.script("setTimeout(()=>i.inert=false,200)")
    assert (await page("click", "Asleep"))["ok"]


async def test_what_aria_owns_brings_in_is_named_and_acted_on_where_it_is(page: GuardedPage) -> None:
    await page.show(
        "<div role=menu aria-label=M aria-owns=own><div role=menuitem tabindex=0>First</div></div><div id=own role=menuitem tabindex=0 onclick='this.dataset.done=1'>Owned</div>"
    )
    assert (await page("click", "Owned"))["ok"]
    assert await page.script("own.dataset.done") == "1"
    assert (await page.ask("find", role="menuitem", count=True))["data"]["count"] == 2


async def test_a_canvas_is_one_thing_and_a_drawing_has_what_can_be_operated(page: GuardedPage) -> None:
    await page.show(
        "<canvas width=60 height=40>fallback <button>Never rendered</button></canvas>"
        "<svg width=200 height=60><title>Plan</title><a href=/hit><text y=20>To the hall</text></a><g role=button tabindex=0 aria-label=Door onclick='this.dataset.done=1' id=door><rect y=30 width=30 height=20 /></g><path d='M0 0L9 9' /></svg>"
    )
    data = await page.look()
    assert data["complete"] is True
    refs = {(n["role"], n.get("name")) for n in walk(data["tree"]) if "ref_id" in n}
    assert refs == {("link", "To the hall"), ("button", "Door")}
    assert (await page("click", "Door"))["ok"]
    assert await page.script("door.dataset.done") == "1"


@pytest.mark.parametrize("depth", [400, 2_000, 5_000])
async def test_a_page_that_is_very_deep_is_read_or_said_not_to_be(page: GuardedPage, depth: int) -> None:
    """Beyond some thousands of boxes in each other Chromium itself dies of the layout."""
    page.witness.pages["/deep"] = (
        f"<body><button>Top</button><script>let at=document.body;for(let i=0;i<{depth};i++){{const d=document.createElement('div');if(i%40==0)d.role='group';"
        "d.ariaLabel='G'+i;at.append(d);at=d}at.innerHTML='<button onclick=\"this.dataset.done=1\" id=b>Bottom</button>'</script>"
    )
    await page.ask("navigate", url=page.witness.url + "/deep")
    seen = await page.ask("snapshot")
    if "error" in seen:
        assert (depth, seen["error"]["details"]["kind"]) == (5_000, "component_lost")
        return
    await page.look()
    if depth == 400:
        assert seen["data"]["complete"] is True
        assert (await page("click", "Bottom"))["ok"]
        assert await page.script("b.dataset.done") == "1"
    else:
        assert (seen["data"]["complete"], seen["data"]["truncated"]) == (False, True)
        assert (await page.ask("find", name="Bottom", count=True))["error"]["code"] == "APP_UNRESPONSIVE"


async def test_a_page_that_is_very_wide(page: GuardedPage) -> None:
    page.witness.pages["/wide"] = (
        "<body><script>document.body.append(...Array.from({length:20000},(_,i)=>Object.assign(document.createElement('div'),{textContent:'item '+i})));"
        "document.body.insertAdjacentHTML('beforeend','<button id=b onclick=\"this.dataset.done=1\">Last</button>')</script>"
    )
    await page.ask("navigate", url=page.witness.url + "/wide")
    data = await page.look(budget_ms=20_000, interactive_only=True)
    assert (data["complete"], data["nodes_observed"]) == (True, 20_001), data["reasons"]
    assert (await page("click", "Last"))["ok"]
    assert await page.script("b.dataset.done") == "1"
    cut = await page.ask("snapshot", max_nodes=100)
    assert (cut["data"]["complete"], cut["data"]["truncated"]) == (False, True)
