"""Downloads: judged by address and name as they begin, kept in the run's folder under a number, recorded."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.browser import WebBrowser
from deskcert.adapters.web.tabs import WebTabs
from deskcert.replay.decisions import recompute_records
from deskcert_ledger import Record, read_records

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

POLICY = {
    "version": 1,
    "deny": [
        {"id": "no-keys", "download": {"glob": "*.key"}, "reason": "secret"},
        {"id": "no-dump", "action": "download", "destination": {"url": "**/dump*"}, "reason": "too much"},
    ],
}
PAGE = (
    "<a href=/report>Report</a><a href=/dump>Dump</a><a href=/file download=signing.key>Key</a>"
    "<a href=/late>Late</a><a href=/odd>Odd</a>"
)
NAMES = {"/report": "report.csv", "/dump": "all.csv", "/late": "host.key", "/odd": "../../etc/passwd"}


@pytest_asyncio.fixture(loop_scope="module")
async def tabs(browser: WebBrowser, witness: Witness) -> AsyncIterator[WebTabs]:
    witness.pages |= dict.fromkeys(("/file", *NAMES), "one,two\n")
    witness.headers |= {
        path: {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
        for path, name in NAMES.items()
    }
    opened = await browser.open_tabs()
    yield opened
    await opened.close()


def guarded(folder: Path, tabs: Any, witness: Witness, **options: Any) -> GuardedPage:
    return GuardedPage(folder, tabs, witness, policy=POLICY, timeout_ms=3_000, **options)


async def test_a_download_is_kept_under_a_number_and_told(tmp_path: Path, tabs: WebTabs, witness: Witness) -> None:
    page = guarded(tmp_path, tabs, witness, downloads=tmp_path / "run" / "downloads")
    await page.show(PAGE)
    assert (await page.ask("wait", download=True, timeout_ms=0))["error"]["code"] == "TIMEOUT"
    await page("click", "Report")
    [found] = (await page.ask("wait", download=True))["data"]["downloads"]
    kept = tmp_path / "run" / found["stored"]
    assert (found["name"], found["stored"], found["state"]) == ("report.csv", "downloads/f1", "kept")
    assert kept.read_bytes() == b"one,two\n"
    assert found["sha256"] == hashlib.sha256(b"one,two\n").hexdigest()
    assert kept.stat().st_mode & 0o777 == 0o600
    records = [r for r in page.records() if r["kind"] == "download"]
    assert [(r["event"], r.get("kept"), r.get("stored")) for r in records] == [
        ("begun", True, None),
        ("ended", None, "downloads/f1"),
    ]
    assert records[0]["target"]["file"] == "report.csv"


async def test_a_name_of_the_page_is_no_path(tmp_path: Path, tabs: WebTabs, witness: Witness) -> None:
    page = guarded(tmp_path, tabs, witness, downloads=tmp_path / "run" / "downloads")
    await page.show(PAGE)
    await page("click", "Odd")
    [found] = (await page.ask("wait", download=True))["data"]["downloads"]
    assert [p.name for p in (tmp_path / "run" / "downloads").iterdir()] == [found["id"]]
    assert "passwd" in found["name"]
    page.records()


async def test_a_forbidden_name_is_denied_before_the_click_and_as_it_begins(
    tmp_path: Path, tabs: WebTabs, witness: Witness
) -> None:
    page = guarded(tmp_path, tabs, witness, downloads=tmp_path / "run" / "downloads")
    await page.show(PAGE)
    denied = await page("click", "Key")
    assert (denied["error"]["code"], denied["error"]["details"]["rule"]) == ("POLICY_DENIED", "no-keys")
    assert denied["error"]["details"]["source"]["field"] == "download"
    assert delivery(denied) == "not_delivered"
    assert ("GET", "/file", "") not in witness.log
    for name, rule in (("Late", "no-keys"), ("Dump", "no-dump")):
        await page("click", name)
        [found] = (await page.ask("wait", download=True))["data"]["downloads"]
        assert (found["state"], found["rule"]) == ("denied", rule)
    assert not (tmp_path / "run" / "downloads").exists()
    begun = [r for r in page.records() if r["kind"] == "download"]
    assert [(r["event"], r["kept"], r["rule"]) for r in begun] == [
        ("begun", False, "no-keys"),
        ("begun", False, "no-dump"),
    ]


async def test_a_session_without_a_folder_keeps_nothing(tmp_path: Path, tabs: WebTabs, witness: Witness) -> None:
    page = guarded(tmp_path, tabs, witness)
    await page.show(PAGE)
    await page("click", "Report")
    [found] = (await page.ask("wait", download=True))["data"]["downloads"]
    assert found["state"] == "denied"
    [begun] = [r for r in page.records() if r["kind"] == "download"]
    assert (begun["kept"], begun["reason"]) == (False, "this session keeps no downloads")


async def test_replay_notices_a_download_that_was_let_through(tmp_path: Path, tabs: WebTabs, witness: Witness) -> None:
    page = guarded(tmp_path, tabs, witness, downloads=tmp_path / "run" / "downloads")
    await page.show(PAGE)
    await page("click", "Report")
    await page.ask("wait", download=True)
    page.records()

    def as_if(record: Record) -> Record:
        if record.kind != "download" or record.data["event"] != "begun":
            return record
        data = {**record.data, "target": {**record.data["target"], "file": "signing.key"}}
        return Record(record.seq, record.kind, record.w, record.t, record.m, data, record.line)

    found = recompute_records(as_if(r) for r in read_records(page.folder))
    assert [d.what for d in found.differences] == ["policy", "kept"]
