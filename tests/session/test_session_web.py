"""The session over a real browser, a real server and its database: what was answered against what happened."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from guarded_world import Guarded, walk

from deskcert.adapters.web.browser import WebBrowser
from deskcert.certify.fixture import Application
from deskcert.session import Options, Pause, PauseAt
from deskcert_ledger import load_blob
from deskcert_schema.vocabulary import PipelinePoint

pytestmark = pytest.mark.web


class Office:
    """The application in one test: start a page, read what the database and the effect log say."""

    def __init__(self, application: Application, browser: WebBrowser, folder: Path) -> None:
        self.application, self._browser, self._folder = application, browser, folder
        self._adapters: list[Any] = []

    async def open(self, page: str, *, at_point: Any = None, faults: tuple = (), **seed: Any) -> Guarded:
        start = {"page": page, "seed": {"orders": 12, **seed}, "faults": list(faults)}
        url = await self.application.prepare(start, seed=1)
        adapter = await self._browser.open()
        self._adapters.append(adapter)

        async def nowhere(point: str) -> None:
            return None

        await adapter.navigate(url, number=0, budget_ms=10_000, at=nowhere)
        more = {"at_point": at_point} if at_point is not None else {}
        return Guarded(self._folder, adapter=adapter, options=Options(), **more)

    def effects(self) -> list[tuple[str, Any]]:
        lines = self.application.effects.read_text().splitlines()
        return [(e["kind"], e["id"]) for e in map(json.loads, lines) if not e["kind"].startswith("log.")]

    def value(self, sql: str) -> Any:
        with sqlite3.connect(self.application.database) as database:
            return database.execute(sql).fetchone()[0]

    async def close(self) -> None:
        for adapter in self._adapters:
            await adapter.close()


@pytest.fixture
async def office(tmp_path: Path):
    folder = tmp_path / "application"
    folder.mkdir()
    application = await Application.start(folder, token="test")
    browser = await WebBrowser.launch()
    found = Office(application, browser, tmp_path)
    yield found
    await found.close()
    await browser.close()
    await application.close()


async def test_a_click_approves_the_named_order_and_the_record_says_what_was_hit(office: Office) -> None:
    guarded = await office.open("/orders")
    refs = await guarded.refs()
    ref = refs["Approve in Order 1002"]
    assert (await guarded("get", ref=ref))["data"]["value"] == "Approve"
    assert (await guarded("is", ref=ref, property="enabled"))["data"]["result"] is True
    answer = await guarded("click", ref=ref)
    assert answer["ok"]
    assert answer["data"]["hit"] == {"role": "button", "name": "Approve", "same_as_target": True}
    await office.application.quiet(5)
    assert office.effects() == [("order.approved", 1002)]
    assert office.value("select status from orders where id = 1002") == "approved"
    assert guarded.kinds() == ["observation", "action.intent", "action.result"]


async def test_a_change_between_check_and_dispatch_sends_nothing(office: Office) -> None:
    async def reorder(point: PipelinePoint, action: int) -> None:
        if point is PipelinePoint.INTENT_RECORDED and not done:
            done.append(await office.application.perturb("replace_by_twin", {"row": 1002, "with": 1003}))

    done: list[Any] = []
    guarded = await office.open("/orders", at_point=reorder)
    ref = (await guarded.refs())["Approve in Order 1002"]
    answer = await guarded("click", ref=ref)
    assert [d.applied for d in done] == [True], done
    assert answer["error"]["disposition"] == {"delivery": "not_delivered", "retry": "safe"}
    await office.application.quiet(5)
    assert office.effects() == []
    results = [r for r in guarded.records() if r["kind"] == "action.result"]
    assert [r["delivery"] for r in results] == ["not_delivered"] * len(results) != []


async def test_a_server_that_commits_and_hangs_is_not_asked_twice(office: Office) -> None:
    fault = {"on": "POST /api/orders/*/approve", "do": "commit_then_hang", "times": 1}
    guarded = await office.open("/orders", faults=(fault,))
    first = await guarded("click", ref=(await guarded.refs())["Approve in Order 1003"])
    disposition = (first.get("data") or first["error"])["disposition"]
    assert disposition["delivery"] != "not_delivered"
    url = (await guarded("snapshot"))["data"]["window"]["url"]
    assert (await guarded("navigate", url=url))["ok"]
    refs = await guarded.refs()
    assert "Approve in Order 1003" not in refs  # approved already: the page loaded anew shows it
    assert office.effects() == [("order.approved", 1003)]


async def test_what_is_typed_reaches_the_page_and_no_record(office: Office) -> None:
    guarded = await office.open("/notes")
    refs = await guarded.refs()
    name = next(n for n in refs if n.startswith("New note"))
    answer = await guarded("set-value", ref=refs[name], value="for-nobody-elses-eyes")
    assert answer["data"]["disposition"]["delivery"] == "delivered_verified"
    tree = (await guarded("snapshot"))["data"]["tree"]
    assert any(n.get("value") == "for-nobody-elses-eyes" for n in walk(tree))
    trees = [r["tree"] for r in guarded.records() if r["kind"] == "observation"]
    assert b"for-nobody-elses-eyes" not in guarded.bytes_but_openings()
    assert any("_sd" in n for n in load_blob(guarded.folder, trees[-1])["nodes"])


async def test_a_withdrawn_call_leaves_a_result_and_at_most_one_effect(office: Office) -> None:
    there, go_on = asyncio.Event(), asyncio.Event()

    async def at(point: PipelinePoint, action: int) -> None:
        if point is PipelinePoint.DISPATCHED:
            there.set()
            await go_on.wait()

    guarded = await office.open("/orders", at_point=at)
    ref = (await guarded.refs())["Approve in Order 1001"]
    call = asyncio.ensure_future(guarded.session.handle("click", {"ref": ref}))
    await there.wait()
    call.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    await office.application.quiet(5)
    records = guarded.records()
    intents = [r["seq"] for r in records if r["kind"] == "action.intent"]
    results = [r for r in records if r["kind"] == "action.result"]
    assert [r["of"] for r in results] == intents
    effects = office.effects()
    assert effects in ([], [("order.approved", 1001)])
    if effects:
        assert results[0]["delivery"] != "not_delivered"


async def test_the_pause_at_dispatched_comes_while_the_answer_is_pending(office: Office, tmp_path: Path) -> None:
    stopped: list[str] = []
    pause = Pause(PauseAt(PipelinePoint.DISPATCHED, 1, tmp_path / "at"), stop=lambda: stopped.append("stop"))
    guarded = await office.open("/orders", at_point=pause)
    assert (await guarded("click", ref=(await guarded.refs())["Approve in Order 1001"]))["ok"]
    assert stopped == ["stop"]
    assert (tmp_path / "at").read_text() == "dispatched"
