"""A walk asks a page's style sheets and the whole document once, where it would ask every element. It must answer the same."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

import json
from typing import Any

import pytest
from web_pages import Witness, show

from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

ROW = """<div class="{c}"><button class="{c}">b{i}</button><span>t{i}</span><a>a{i}</a><input aria-label="i{i}" class="{c}"> <q>quoted</q>
<fieldset {disabled}><legend>l{i}</legend><input id="x{i}{c}"><label for="x{i}{c}">of {i}</label></fieldset></div>"""
ROWS = "".join(
    ROW.format(c=c, i=i, disabled="disabled" if i % 3 == 0 else "") for i in range(40) for c in ("", "p", "q", "s")
)
SPEAKING = "<style>.p{cursor:pointer} .q::before{content:'Q '} .s{-webkit-text-security:disc}</style>"
SHADOW = """<x-h><template shadowrootmode=open><style>button::after{content:"!"} ::slotted(button)::before{content:"S"}</style>
<button>in</button><fieldset disabled><button>d</button></fieldset><slot></slot></template>light <button>slotted</button></x-h>"""

PAGES = {
    "no sheet speaks of it": ROWS,
    "a sheet speaks of it": SPEAKING + ROWS,
    "a sheet inside a sheet": "<style>@media all { @layer a { .p { &:nth-child(n) { cursor: pointer } } } }</style>" + ROWS,
    "style attributes": ROWS.replace("<span>", '<span style="CURSOR: pointer">').replace(
        'class="s">', 'class="s" style="-webkit-text-security: disc">'
    ),
    "a sheet made by script": ROWS
    + "<script>const s = new CSSStyleSheet(); s.replaceSync('.q::after{content:\" made\"} .p{cursor:pointer}'); document.adoptedStyleSheets = [s]</script>",
    "an animation": ROWS
    + "<script>for (const e of document.querySelectorAll('div.p')) e.animate({cursor: ['pointer', 'pointer']}, 1e9)</script>",
    "a shadow root that is met late": ROWS + SHADOW + ROWS,
    "a modal dialog with the focus": ROWS + "<dialog><button autofocus>in</button></dialog><script>document.querySelector('dialog').showModal()</script>",
}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
async def test_shortcuts_of_a_walk_change_nothing(adapter: WebAdapter, witness: Witness, page: str) -> None:
    await show(adapter, witness, PAGES[page])

    async def walked(*, shortcuts: bool) -> dict[str, Any]:
        asked = {
            "max_depth": 50,
            "max_nodes": 50_000,
            "budget_ms": 20_000,
            "include_bounds": True,
            "shortcuts": shortcuts,
        }
        found: dict[str, Any] = json.loads(
            await adapter._evaluate(adapter._frames.main, "walk", [json.dumps(asked)], 25_000)
        )
        return found

    quick, slow = await walked(shortcuts=True), await walked(shortcuts=False)
    assert len(quick["rows"]) > 500
    assert quick == slow


async def test_what_a_sheet_says_is_in_the_walk(adapter: WebAdapter, witness: Witness) -> None:
    """So that the comparison compares something."""
    await show(adapter, witness, SPEAKING + ROWS)
    asked = {"max_depth": 50, "max_nodes": 50_000, "budget_ms": 20_000, "include_bounds": False}
    text = await adapter._evaluate(adapter._frames.main, "walk", [json.dumps(asked)], 25_000)
    assert '"Q b39"' in text
    assert "secure" in text
