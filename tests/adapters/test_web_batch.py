"""Several commands in one call: judged before the first, each answered and recorded like any other."""

# ruff: noqa: E501  (a page is easier to read in one piece)
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guarded_pages import GuardedPage
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

FORM = (
    "<input id=f aria-label=Name><input type=checkbox id=c aria-label=Agree><button id=b onclick='window.hit=1'>Save</button>"
    "<button onclick='window.hit=2'>Delete all</button><button disabled>Never</button>"
)


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness)
    yield made
    made.records()


def entry(page: GuardedPage, command: str, name: str, **args: Any) -> dict[str, Any]:
    return {"command": command, "args": {"ref": page.nodes[name]["ref_id"], **args}}


async def test_entries_run_in_order_and_each_has_its_answer(page: GuardedPage) -> None:
    await page.show(FORM)
    entries = [
        entry(page, "set-value", "Name", value="Ada"),
        entry(page, "check", "Agree"),
        entry(page, "click", "Save"),
    ]
    data = (await page.ask("batch", entries=entries))["data"]
    assert (data["all_ok"], [e["execution"] for e in data["entries"]]) == (True, ["completed"] * 3)
    assert [await page.script(s) for s in ("f.value", "c.checked", "hit")] == ["Ada", True, 1]
    records = [r["command"] for r in page.records() if r["kind"] == "action.intent"]
    assert records == ["set-value", "check", "click"]


async def test_a_forbidden_entry_keeps_all_from_beginning(page: GuardedPage) -> None:
    await page.show(FORM)
    entries = [entry(page, "set-value", "Name", value="Ada"), entry(page, "click", "Delete all")]
    data = (await page.ask("batch", entries=entries))["data"]
    assert [e["execution"] for e in data["entries"]] == ["not_started", "completed"]
    assert data["entries"][1]["answer"]["error"]["code"] == "POLICY_DENIED"
    assert (await page.script("f.value"), await page.script("window.hit ?? 0")) == ("", 0)


async def test_a_failure_stops_the_rest(page: GuardedPage) -> None:
    await page.show(FORM)
    entries = [entry(page, "click", "Never", timeout_ms=0), entry(page, "click", "Save")]
    data = (await page.ask("batch", entries=entries))["data"]
    assert (data["stopped"]["index"], data["entries"][1]["execution"]) == (0, "not_started")
    assert await page.script("window.hit ?? 0") == 0
    onward = (await page.ask("batch", entries=entries, stop_on_error=False))["data"]
    assert ([e["execution"] for e in onward["entries"]], onward["all_ok"]) == (["completed"] * 2, False)


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [{"command": "click"}],
        [{"command": "batch", "args": {}}],
        [{"command": "snapshot", "args": {"x": 1}}],
        [{"command": "nothing"}],
        "x",
    ],
)
async def test_a_wrong_entry_keeps_all_from_beginning(page: GuardedPage, wrong: Any) -> None:
    await page.show(FORM)
    entries = [entry(page, "click", "Save"), *wrong] if isinstance(wrong, list) and wrong else wrong
    assert (await page.ask("batch", entries=entries))["error"]["code"] == "INVALID_ARGS"
    assert await page.script("window.hit ?? 0") == 0
