"""A browser that is running already: guarded through its debugging address, shared, and left as it was."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ways_world import Application, verified_word

import deskcert
from deskcert.adapters.web.browser import ARGS
from deskcert.adapters.web.find_browser import find_browser
from deskcert_schema.errors import HarnessError

pytestmark = pytest.mark.web
POLICY = {"version": 1, "deny": [{"id": "no-delete", "name": "Delete account", "reason": "irreversible"}]}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[str]:
    """The debugging address of somebody's browser."""
    profile = tmp_path / "profile"
    command = [str(find_browser()), *ARGS, "--remote-debugging-port=0", f"--user-data-dir={profile}", "--headless"]
    command += ["--no-sandbox"] if os.geteuid() == 0 else []
    with subprocess.Popen([*command, "about:blank"], stderr=subprocess.DEVNULL) as browser:
        try:
            told = profile / "DevToolsActivePort"
            deadline = time.monotonic() + 30
            while not (told.exists() and told.read_text().count("\n")) and time.monotonic() < deadline:
                time.sleep(0.05)
            yield f"http://127.0.0.1:{told.read_text().split()[0]}"
        finally:
            browser.terminate()


def pages(address: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{address}/json/list", timeout=10) as answer:
        return [page for page in json.load(answer) if page["type"] == "page"]


def opened(address: str, url: str) -> None:
    request = urllib.request.Request(f"{address}/json/new?{url}", method="PUT")
    urllib.request.urlopen(request, timeout=10).close()


async def test_a_tab_that_shows_the_page_is_guarded_and_stays(app: Application, running: str, tmp_path: Path) -> None:
    url = app.start("/orders")
    opened(running, url)
    before = sorted(p["url"] for p in pages(running))
    async with deskcert.open_session(url, POLICY, out=tmp_path / "out", base=tmp_path, cdp=running, mode="headed") as s:
        page = await s.snapshot()
        tabs = (await s.ask("tabs")).data["tabs"]
        assert sorted(t["url"] for t in tabs) == before
        approve = page.one(role="button", name="Approve", context="Order 1001")
        late = await s.click(approve)
        assert (late.delivery, late.envelope["error"]["details"]["kind"]) == ("not_delivered", "interceptor_late")
        assert (await s.ask("reload")).ok
        page = await s.snapshot()
        done = await s.click(page.one(role="button", name="Approve", context="Order 1001"))
        assert (done.ok, done.delivery) == (True, "delivered_unverified"), done
        await app.committed(1)
    assert [e["id"] for e in app.effects()] == [1001]
    assert sorted(p["url"] for p in pages(running)) == before, "nothing of the browser went with the session"
    start = json.loads((s.ledger / "ledger.jsonl").read_bytes().splitlines()[0])
    assert (start["custody"], start["mode"], "browser" in start) == ("shared", "headed", False)
    assert verified_word(s.ledger, tmp_path) == "complete"


async def test_where_no_tab_shows_it_a_new_one_does(app: Application, running: str, tmp_path: Path) -> None:
    url = app.start("/orders")
    async with deskcert.open_session(url, POLICY, out=tmp_path / "out", base=tmp_path, cdp=running) as s:
        page = await s.snapshot()
        assert (await s.click(page.one(role="button", name="Approve", context="Order 1001"))).ok
        await app.committed(1)
    assert len(pages(running)) == 2


async def test_an_address_where_nothing_answers_is_said(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="remote-debugging-port"):
        async with deskcert.open_session(
            "http://127.0.0.1:9/", POLICY, out=tmp_path / "out", base=tmp_path, cdp="http://127.0.0.1:9"
        ):
            pass
