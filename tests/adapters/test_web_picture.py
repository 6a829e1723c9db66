"""Pictures and tabs: what a person would see, and which pages there are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded_pages import GuardedPage
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

PIXEL = """(async (data, x, y) => {
  const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([bytes]));
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const pen = canvas.getContext('2d'); pen.drawImage(picture, 0, 0);
  return [...pen.getImageData(x, y, 1, 1).data].slice(0, 3);
})('%s', %d, %d)"""


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness)
    yield made
    made.records()


async def test_the_target_is_outlined_and_the_page_does_not_know(page: GuardedPage) -> None:
    style = "position:absolute;left:100px;top:100px;width:200px;height:80px"
    await page.show(
        f"<button style='{style}'>Here</button><script>window.changes=0;"
        "new MutationObserver(()=>changes++).observe(document,{subtree:true,childList:true,attributes:true})</script>"
    )
    plain = (await page.ask("screenshot"))["data"]
    framed = (await page("screenshot", "Here"))["data"]
    assert (plain["outlined"], framed["outlined"]) == (False, True)
    assert await page.script(PIXEL % (plain["data"], 98, 140)) == [255, 255, 255]
    assert await page.script(PIXEL % (framed["data"], 98, 140)) == [255, 0, 170]
    assert await page.script("changes") == 0


async def test_a_target_in_frames_is_outlined_where_it_is_seen(page: GuardedPage) -> None:
    """The inner frame is of another origin, the outer one has a border, is scaled and scrolled."""
    elsewhere = page.witness.url.replace("127.0.0.1", "localhost")
    at = "position:absolute;left:{}px;top:{}px;width:{}px;height:{}px;border:{}px solid".format
    put = page.witness.pages.__setitem__
    put(
        "/in",
        f"<!doctype html><body><button style='{at(20, 120, 100, 40, 0)}'>Here</button>"
        "<p style='height:3000px'>tall</p><script>scrollTo(0, 100)</script>",
    )
    put("/mid", f"<!doctype html><body><iframe src={elsewhere}/in style='{at(30, 40, 200, 150, 10)}'></iframe>")
    await page.show(f"<iframe src=/mid style='{at(100, 200, 300, 250, 5)};scale:2;transform-origin:0 0'></iframe>")
    async with asyncio.timeout(5):
        while "Here" not in page.nodes:
            await page.look()
    framed = (await page("screenshot", "Here"))["data"]
    # 100 + 2 × (5 + 30 + 10 + 20), 200 + 2 × (5 + 40 + 10 + 120 - 100), and half of its height
    assert await page.script(PIXEL % (framed["data"], 228, 390)) == [255, 0, 170]
    assert await page.script(PIXEL % (framed["data"], 18, 40)) != [255, 0, 170]


async def test_r041_a_new_tab_is_told_and_the_guarded_one_stays(page: GuardedPage) -> None:
    page.witness.pages["/new"] = "<title>new</title>"
    await page.show("<button onclick=\"window.open('/new')\">Open</button><button>Stay</button>")
    assert (await page("click", "Open"))["ok"]
    assert await asyncio.to_thread(page.witness.wait_for, lambda log: ("GET", "/new", "") in log)
    tabs = (await page.ask("tabs"))["data"]["tabs"]
    assert [t["guarded"] for t in tabs] == [True, False]
    assert tabs[0]["url"] == page.witness.url + "/page"
    data = await page.look()
    assert (data["window"]["id"], data["window"]["title"]) == (tabs[0]["id"], "page")
    assert (await page("click", "Stay"))["data"]["hit"]["name"] == "Stay"
