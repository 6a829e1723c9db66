"""Roles and names against Chromium's own accessibility tree, on a page of what real pages use."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

from typing import Any

import pytest
from web_pages import Witness, find, look, show

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.contract.evidence import ABSENT, Known

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

CONTROLS = """
<style>.icon::before{content:"Save "} .hid{display:none} .inv{visibility:hidden}</style>
<button id=b1>Plain</button> <button id=b2 aria-label="Delete account">x</button> <button id=b3 title="Only title"></button>
<button id=b4><img src="data:," alt="Picture"> and text</button> <button id=b5 class=icon>file</button>
<span id=l1>First</span><span id=l2 class=hid>hidden second</span>
<button id=b6 aria-labelledby="l1 l2">ignored</button> <button id=b7 aria-labelledby="b7 l1" aria-label="Self">t</button>
<button id=b8>A<span class=hid>B</span><span class=inv>C</span><span aria-hidden=true>D</span>E</button>
<button id=b9>one<div>two</div>three</button> <button id=b10>a<b>b</b><i>c</i></button> <button id=b11>a<br>b</button>
<input type=submit id=i1> <input type=submit id=i2 value="Send it"> <input type=reset id=i3> <input type=button id=i4 value=Go>
<input type=image id=i5 alt="Find" src="data:,"> <label for=i6>Note</label><input id=i6>
<label>Wrapped <input id=i7> after</label> <input id=i8 placeholder="Hint"> <input id=i9 title="Tip" placeholder="Hint">
<input id=i10 type=search aria-label=Search> <input id=i11 type=number aria-label=Count> <input id=i12 type=range aria-label=Volume>
<input id=i13 type=checkbox><label for=i13>Agree to <a href="/t" id=a0>terms</a></label>
<label><input id=i14 type=radio name=r> Choice</label> <input id=i15 type=password aria-label=Secret>
<input id=i16 list=dl aria-label=City><datalist id=dl><option>Ulm</datalist> <textarea id=t1 aria-label=Text></textarea>
<label for=s1>Country</label><select id=s1><option>Peru<option>Chad</select> <select id=s2 multiple aria-label=Many><option>x</select>
<a id=a1 href="/x">Link</a> <a id=a2 href="/x" aria-label="Named link">Link</a> <a id=a3 href="/x"><svg><title>Vector</title></svg></a>
<a id=a4 href="/x"><img src="data:," alt=""></a>
<h1 id=h1>Heading <small>small</small></h1> <div id=h2 role=heading aria-level=2>Div heading</div>
<div id=r1 role=button tabindex=0>Div button</div> <span id=r2 role=link tabindex=0>Span link</span>
<div id=r3 role=checkbox aria-checked=mixed tabindex=0>Mixed</div> <div id=r4 role=switch aria-checked=true tabindex=0>Switch</div>
<div role=tablist><div id=r5 role=tab aria-selected=true tabindex=0>Tab one</div></div>
<div role=menu aria-label=M><div id=r6 role=menuitem tabindex=0>Item</div></div>
<div id=r7 role="foo button" tabindex=0>Fallback</div> <button id=r8 role=presentation>Focusable stays</button>
<details><summary id=d1>More</summary>body</details>
<fieldset id=f1><legend>Legend text</legend><input id=i17 aria-labelledby=none></fieldset>
<img id=m1 src="data:," alt="An image"> <div id=g1 contenteditable aria-label=Editor role=textbox>words</div>
<button id=b12> spaced   out
 text </button> <button id=b13><span style="display:inline-block">x</span>y</button>
<label for=i18 class=hid>Hidden label</label><input id=i18> <label for=i19>Pick <select><option>red</select></label><input id=i19 type=checkbox>
<div id=r9 role=slider aria-valuenow=3 aria-label=Slide tabindex=0></div> <button id=b14 aria-label=" ">Blank label</button>
<div id=r10 role=combobox tabindex=0 aria-expanded=false aria-label=Combo>shown value</div>
<button id=b15><slot>Slot</slot></button><x-h id=x1><template shadowrootmode=open><button id=sb1>In <slot></slot></button></template>shadow</x-h>
"""

SAME_WORD = {
    "DisclosureTriangle": "button",
    "image": "img",
    "Date": "textbox",
    "LabelText": "label",
    "ComboBoxSelect": "combobox",
    "ListBox": "listbox",
}


async def chromium_tree(adapter: WebAdapter) -> dict[str, tuple[str, str]]:
    """id -> (role, name) as Chromium computes them."""
    session = await adapter._context.new_cdp_session(adapter._page)
    await session.send("DOM.enable")
    await session.send("DOM.getDocument", {"depth": -1, "pierce": True})
    tree = await session.send("Accessibility.getFullAXTree")
    found: dict[str, tuple[str, str]] = {}
    for node in tree["nodes"]:
        if node.get("ignored") or "backendDOMNodeId" not in node:
            continue
        described = await session.send("DOM.describeNode", {"backendNodeId": node["backendDOMNodeId"]})
        attributes: list[str] = described["node"].get("attributes", [])
        pairs = dict(zip(attributes[::2], attributes[1::2], strict=True))
        if "id" in pairs:
            role = node["role"]["value"]
            found[pairs["id"]] = (SAME_WORD.get(role, role), " ".join(node.get("name", {}).get("value", "").split()))
    return found


async def test_roles_and_names_are_those_of_chromium(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(adapter, witness, CONTROLS)
    ours: dict[str, tuple[str, Any]] = {
        n["native_id"]["value"]: (n["role"], n.get("name", ""))
        for n in seen.nodes
        if "native_id" in n and n["role"] not in {"label", "legend"}
    }
    truth = await chromium_tree(adapter)
    controls = {
        key: value for key, value in truth.items() if (key[0] in "bihatrsmd" and key[1:].isdigit()) or key == "sb1"
    }
    differing = {key: (ours.get(key), value) for key, value in controls.items() if ours.get(key) != value}
    assert len(controls) > 55
    assert differing == {}
    assert seen.complete, seen.reasons


async def test_an_embedded_fields_value_is_no_part_of_a_name(adapter: WebAdapter, witness: Witness) -> None:
    """Chromium includes it; values of fields are secrets here."""
    seen = await show(
        adapter, witness, "<input type=checkbox id=c><label for=c>Flash <input id=n value=5> times</label>"
    )
    evidence = await look(adapter, find(seen, id="c"))
    assert evidence.names.accessible == Known("Flash times")


async def test_every_text_by_which_a_person_could_know_it(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(
        adapter,
        witness,
        '<p id=d>Cannot be undone</p><button id=b aria-label=Go title="Tip" aria-describedby=d>'
        '<span aria-hidden=true>Delete</span><img alt="bin" src="data:,"></button><input type=submit id=s value=Pay>'
        "<input id=f placeholder=Amount value=12>",
    )
    names = (await look(adapter, find(seen, id="b"))).names
    assert (names.accessible, names.text, names.title) == (Known("Go"), Known("Delete"), Known("Tip"))
    assert (names.alt, names.description) == (Known("bin"), Known("Cannot be undone"))
    assert (await look(adapter, find(seen, id="s"))).names.value == Known("Pay")
    field = (await look(adapter, find(seen, id="f"))).names
    assert (field.placeholder, field.value, field.text) == (Known("Amount"), ABSENT, ABSENT)


async def test_a_page_cannot_redirect_our_reads(adapter: WebAdapter, witness: Witness) -> None:
    seen = await show(
        adapter,
        witness,
        "<script>Element.prototype.matches=()=>{throw 1};Element.prototype.getAttribute=()=>'x';JSON.stringify=()=>'{}'</script>"
        "<img name=querySelector><img name=title><form action=/wire method=post><input name=action value=evil>"
        "<input name=getAttribute><input name=method><button name=click>Continue</button></form>",
    )
    evidence = await look(adapter, find(seen, name="Continue"))
    assert isinstance(evidence.destination, Known)
    assert evidence.destination.value.form_action == witness.url + "/wire"
    assert evidence.destination.value.form_method == "POST"
    assert seen.window.title == "page"
