"""What a person reads on a control is forbidden by what a person reads, however the page comes by it; and only that."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

import pytest
from web_pages import CLICK, ENTER, Witness, look, show

from deskcert.adapters.base import Action, Handle, RawObservation
from deskcert.adapters.web.adapter import WebAdapter
from deskcert.contract.evidence import Evidence
from deskcert.guard.policy import Allow, Deny, compile_policy, decide, subject_of
from deskcert_schema.vocabulary import DetailKind

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

POLICY = compile_policy({"deny": [{"id": "no-delete", "name": "Delete account", "role": "button"}]}, digest="0" * 64)

LETTERS = "".join(f"<span>{'&nbsp;' if c == ' ' else c}</span>" for c in "Delete account")

PAINTED = {
    "letters in boxes of their own": f"<style>button span{{display:inline-block}}</style><button>{LETTERS}</button>",
    "letters side by side": f"<button style='display:flex'>{LETTERS}</button>",
    "half a word in a box": "<button><b style='display:inline-block'>De</b><b style='display:inline-block'>lete</b> account</button>",
    "backwards by the layout": "<button style='display:flex;flex-direction:row-reverse'><i>account</i><i>Delete&nbsp;</i></button>",
    "backwards by the style sheet": "<button style='unicode-bidi:bidi-override;direction:rtl'>tnuocca eteleD</button>",
    "backwards by an element": "<button><bdo dir=rtl>tnuocca eteleD</bdo></button>",
    "backwards on an input": "<input type=button style='unicode-bidi:bidi-override;direction:rtl' value='tnuocca eteleD'>",
    "a line feed in generated text": r"<style>.a::before{content:'Delete\a account'}</style><button class=a></button>",
    "another text for screen readers": "<style>.a::before{content:'Delete account' / 'Save'}</style><button class=a></button>",
    "quotation marks of its own": "<style>.a{quotes:'Delete account' ''}.a::before{content:open-quote}</style><button class=a></button>",
    "a list marker": "<style>.a{display:list-item;list-style:inside 'Delete account'}</style><button><i class=a></i></button>",
    "a marker's content": "<style>.a{display:list-item;list-style-position:inside}.a::marker{content:'Delete account'}</style><button><i class=a></i></button>",
    "letters of no size between": "<button>Delete<i style='font-size:0'>zzz</i> account</button>",
    "letters of no colour between": "<button>Delete<i style='opacity:0;position:absolute'>zzz</i> account</button>",
    "letters far away between": "<button>Delete<i style='position:absolute;left:-9999px'>zzz</i> account</button>",
    "letters clipped away between": "<button>Delete<i style='position:absolute;overflow:hidden;width:1px;height:1px'>zzz</i> account</button>",
    "a tip of the picture": "<button aria-label=Save><img title='Delete account' alt='' src='data:,'></button>",
    "a text used again": "<svg width=0 height=0><text id=t y=15>Delete account</text></svg><button aria-label=Save><svg width=120 height=20><use href='#t'/></svg></button>",
    "an image button's value": "<input type=image alt=Save value='Delete account' src='data:,'>",
    "nothing on it but another button": "<div role=button onclick=0><span role=button>Delete account</span></div>",
}

UNREADABLE = {
    "words for numbers": "<style>@counter-style d{system:cyclic;symbols:'Delete account'}.a::before{content:counter(x,d)}</style><button class=a></button>",
    "a frame inside": "<div role=button onclick=0>x<iframe srcdoc='Delete account'></iframe></div>",
}

ENTERED = {
    "a label of the default button": "<form><input aria-label=q><label for=c>Delete account</label><button id=c aria-label=Go></button></form>",
    "what surrounds the default button": "<form><input aria-label=q><div role=button onclick=0>Delete account<button aria-label=z></button></div></form>",
    "an image that comes before the button": "<form><input aria-label=q><input type=image alt='Delete account' src='data:,'><button>Go</button></form>",
}

ORDINARY = {
    "a card around buttons": "<div onclick=0>Acme Ltd <button>Delete account</button></div>",
    "a row of buttons": "<div onclick=0><button>Save</button> <button>Delete account</button></div>",
    "a card around a picture button": "<div role=button onclick=0>Acme Ltd <button><img alt='Delete account' title='Delete account' src='data:,'></button></div>",
    "numbered steps": "<style>.a::before{counter-increment:x;content:counter(x) '. '}</style><button class=a>Address</button>",
    "a disclosure": "<details><summary>More</summary>Delete account</details>",
    "a label of an icon, for screen readers": "<button><svg width=9 height=9></svg><i style='position:absolute;overflow:hidden;width:1px;height:1px'>Save</i></button>",
    "words over two lines": "<button style='width:4em'>Delete <b>my</b> account</button>",
    "a form beside it": "<form><input aria-label=q><button>Save</button></form><form><button>Delete account</button></form>",
}


async def controls(adapter: WebAdapter, seen: RawObservation, action: Action = CLICK) -> list[tuple[str, Evidence]]:
    handles = [
        (str(n.get("name", "")), Handle(seen.window.document, n["node"])) for n in seen.nodes if n.get("interactive")
    ]
    return [(name, await look(adapter, handle, action)) for name, handle in handles]


@pytest.mark.parametrize("page", PAINTED.values(), ids=PAINTED.keys())
async def test_a_painted_name_is_denied(adapter: WebAdapter, witness: Witness, page: str) -> None:
    (_, evidence), *_ = await controls(adapter, await show(adapter, witness, page))
    verdict = decide(POLICY, subject_of(CLICK, evidence, None))
    assert isinstance(verdict, Deny), evidence.names
    assert verdict.kind is DetailKind.FORBIDDEN_NAME


@pytest.mark.parametrize("page", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_a_name_that_cannot_be_read_is_unknown(adapter: WebAdapter, witness: Witness, page: str) -> None:
    (_, evidence), *_ = await controls(adapter, await show(adapter, witness, page))
    verdict = decide(POLICY, subject_of(CLICK, evidence, None))
    assert isinstance(verdict, Deny), evidence.names
    assert verdict.kind is DetailKind.UNKNOWN_EVIDENCE


@pytest.mark.parametrize("page", ENTERED.values(), ids=ENTERED.keys())
async def test_enter_is_denied_by_all_that_names_the_default_button(
    adapter: WebAdapter, witness: Witness, page: str
) -> None:
    seen = await show(adapter, witness, page)
    found = [e for name, e in await controls(adapter, seen, ENTER) if name == "q"]
    assert [type(decide(POLICY, subject_of(ENTER, e, None))) for e in found] == [Deny]


async def test_a_label_is_denied_by_what_surrounds_its_control(adapter: WebAdapter, witness: Witness) -> None:
    page = "<label for=c>Fine</label><div role=button onclick=0>Delete account <input type=checkbox id=c aria-label=z></div>"
    found = [e for name, e in await controls(adapter, await show(adapter, witness, page)) if name == "Fine"]
    assert [type(decide(POLICY, subject_of(CLICK, e, None))) for e in found] == [Deny]


@pytest.mark.parametrize("page", ORDINARY.values(), ids=ORDINARY.keys())
async def test_what_only_stands_near_or_inside_denies_nothing_else(
    adapter: WebAdapter, witness: Witness, page: str
) -> None:
    seen = await show(adapter, witness, page)
    for name, evidence in await controls(adapter, seen):
        denied = isinstance(decide(POLICY, subject_of(CLICK, evidence, None)), Deny)
        assert denied == (name == "Delete account"), (name, evidence.names)
    for name, evidence in await controls(adapter, seen, ENTER):
        if name == "q":
            assert isinstance(decide(POLICY, subject_of(ENTER, evidence, None)), Allow)
