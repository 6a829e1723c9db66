"""The whole Chromium in a window of a private X display, and in its own headless mode: the same physical input."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from desktop_rig import Desktop
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.browser import WebBrowser
from deskcert_schema.vocabulary import Mode

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

BOARD = (
    "<button id=a>Save</button><ul id=open><li id=t draggable=true role=button tabindex=0>Task</li></ul>"
    "<ul id=done style='padding:20px'><li id=slot role=button tabindex=0>Slot</li></ul><input id=f aria-label=F>"
    "<script>window.log=[];for(const y of ['mousedown','click','drop'])addEventListener(y,e=>"
    "log.push(y+' '+e.target.id+' '+e.isTrusted),true);"
    "t.ondragstart=e=>e.dataTransfer.setData('text/plain','t');done.ondragover=e=>e.preventDefault();"
    "done.ondrop=e=>{e.preventDefault();done.append(t)}</script>"
)


@pytest.fixture(params=["window", "headless"])
def display(request: pytest.FixtureRequest, desktop: Desktop, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether it can be seen."""
    monkeypatch.setenv("DISPLAY", desktop.display)
    return bool(request.param == "window")


async def test_the_whole_browser_takes_a_persons_input(tmp_path: Path, display: bool, witness: Witness) -> None:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    assert found is not None, "the whole Chromium is not installed: see .ci/run"
    browser = await WebBrowser.launch(Path(found), headed=display)
    tabs = await browser.open_tabs()
    page = GuardedPage(tmp_path, tabs, witness, mode=Mode.HEADED, timeout_ms=5_000)
    try:
        await page.show(BOARD)
        clicked = await page("click", "Save")
        assert (clicked["ok"], delivery(clicked)) == (True, "delivered_unverified"), clicked
        dragged = await page.ask("drag", ref=page.nodes["Task"]["ref_id"], to=page.nodes["Slot"]["ref_id"])
        assert dragged["ok"], dragged
        typed = await page("type", "F", text="ab")
        assert delivery(typed) == "delivered_verified", typed
        shown = tabs.current.shown
        assert await shown.evaluate("[...done.children].map(e => e.id)") == ["slot", "t"]
        assert await shown.evaluate("log") == [
            *("mousedown a true", "click a true", "mousedown t true", "drop slot true")
        ]
    finally:
        page.records()
        await tabs.close()
        await browser.close()
