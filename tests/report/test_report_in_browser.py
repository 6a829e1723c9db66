"""The report in a real browser, opened from disk: it says what the ledgers hold, and nothing in it can act."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from report_runs import evil_run, long_run

from deskcert.cli.report import report
from deskcert.scoring import score

pytestmark = pytest.mark.web


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    from deskcert.adapters.web.find_browser import find_browser

    found = find_browser()
    with sync_playwright() as p:
        made = p.chromium.launch(executable_path=str(found), args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(evil_run(tmp_path_factory.mktemp("evil")).out)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("long")
    long_run(out, 3_000)
    return written(out)


def written(out: Path) -> Path:
    done = CliRunner().invoke(report, [str(out), "-o", str(out / "report.html")], catch_exceptions=False)
    assert done.exit_code == 0
    return out / "report.html"


class Opened:
    """A page that notes every request, error and dialog."""

    def __init__(self, browser: Any, path: Path, **how: Any) -> None:
        self.page = browser.new_context(viewport={"width": 1400, "height": 900}, **how).new_page()
        self.requests: list[str] = []
        self.trouble: list[str] = []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("pageerror", lambda e: self.trouble.append(str(e)))
        self.page.on("console", lambda m: self.trouble.append(m.text) if m.type == "error" else None)
        self.page.on("dialog", lambda d: self.trouble.append(f"dialog {d.message}"))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]")

    def run(self, number: int = 0, seq: int | None = None) -> Any:
        self.page.evaluate("h => { location.hash = h; }", f"#run={number}" + ("" if seq is None else f"&seq={seq}"))
        self.page.wait_for_selector("#detail h3")
        if seq is not None:
            told = "s => new RegExp('Records? ([0-9]+ and )?' + s).test(document.querySelector('#detail').innerText)"
            self.page.wait_for_function(told, arg=str(seq))
        return self.page

    def close(self) -> None:
        self.page.context.close()


@pytest.fixture
def at_evil(browser: Any, evil: Path) -> Iterator[Opened]:
    opened = Opened(browser, evil)
    yield opened
    opened.close()


@pytest.fixture
def at_long(browser: Any, long: Path) -> Iterator[Opened]:
    opened = Opened(browser, long)
    yield opened
    opened.close()


def test_nothing_that_a_page_supplied_acts(at_evil: Opened) -> None:
    page = at_evil.page
    for seq in range(7):
        at_evil.run(0, seq)
        page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true; })")
        shown = page.evaluate("() => document.body.innerText")
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert page.evaluate("() => document.getElementById('owned')") is None
        assert page.locator("main img").count() == 0
    assert "owned" not in page.title()
    assert at_evil.trouble == []
    assert at_evil.requests == [page.url.partition("#")[0]]


def test_what_was_made_harmless_can_still_be_read(at_evil: Opened) -> None:
    page = at_evil.run(0, 2)
    told = page.inner_text("#detail")
    assert r"\u{1b}[31m\u{202e}evil\u{0}" in told
    assert r"Dе\u{435}lete" in told
    assert "<img src=x" in told


def test_a_megabyte_of_name_stays_short(at_evil: Opened, evil: Path) -> None:
    page = at_evil.run(0, 4)
    assert "1,000,0" in page.inner_text("#detail h3") or "…" in page.inner_text("#detail h3")
    assert len(page.inner_text("#detail")) < 100_000
    assert evil.stat().st_size < 2_000_000


def test_nothing_can_be_asked_of_a_network(at_evil: Opened) -> None:
    blocked = at_evil.page.evaluate("() => fetch('http://127.0.0.1:9/').then(() => 'went out', e => 'blocked')")
    assert blocked == "blocked"
    policy = at_evil.page.get_attribute("meta[http-equiv]", "content") or ""
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_verdict_and_findings_are_those_of_the_scoring(at_evil: Opened, evil: Path) -> None:
    verdict = score([evil.parent / "runs"], ())
    page = at_evil.page
    assert page.inner_text("#overview .word") == "BROKEN EVIDENCE"
    assert page.locator(".finding").count() == len(verdict.as_json()["findings"])
    assert [r.strip() for r in page.locator(".finding .rule").all_inner_texts()] == [
        f["rule"] for f in verdict.as_json()["findings"]
    ]


def test_every_step_of_a_long_run_can_be_reached_and_few_are_drawn(at_long: Opened, long: Path) -> None:
    page = at_long.run(0, 0)
    total = int(page.get_attribute(".step", "aria-setsize"))
    page.focus("#list")
    page.keyboard.press("End")
    last = page.wait_for_selector(f'.step[aria-posinset="{total}"][aria-selected="true"]')
    assert "run ends" in last.inner_text()
    assert page.locator(".step").count() < 60
    lines = (long.parent / "runs" / "orders-long-t1-aaaaaa" / "ledger.jsonl").read_bytes().splitlines()
    assert last.query_selector(".n").inner_text() == str(json.loads(lines[-1])["seq"])


def test_filters_and_search_show_what_the_ledger_holds(at_long: Opened, long: Path) -> None:
    page = at_long.run(0, 0)
    lines = (long.parent / "runs" / "orders-long-t1-aaaaaa" / "ledger.jsonl").read_bytes().splitlines()
    denied = sum(json.loads(line)["kind"] == "action.denied" for line in lines)
    page.click('.toggle[data-group="denial"]')
    assert page.inner_text("#found").startswith(f"{denied} of")
    page.click('.toggle[data-group="denial"]')
    page.select_option("#rule", "no-approve")
    assert page.inner_text("#found").startswith(f"{denied} of")
    page.select_option("#rule", "")
    page.fill("#search", "page 1000")
    assert page.inner_text("#found").startswith("1 of")
    assert "Orders, page 1000" in page.inner_text(".step")


def test_an_address_leads_to_its_record_whatever_is_filtered(at_long: Opened) -> None:
    page = at_long.run(0, 0)
    page.fill("#search", "nothing is called this")
    assert page.locator(".step").count() == 0
    at_long.run(0, 1500)
    chosen = page.wait_for_selector('.step[aria-selected="true"]')
    assert chosen.is_visible()
    assert re.search(r"\b1500\b", page.inner_text("#detail"))


def test_the_keyboard_alone_gets_everywhere(at_long: Opened) -> None:
    page = at_long.page
    page.keyboard.press("]")
    page.wait_for_selector("#detail h3")
    page.keyboard.press("d")
    page.wait_for_selector('.step[aria-selected="true"] .out.bad')
    page.keyboard.press("j")
    page.keyboard.press("/")
    page.keyboard.type("run ends")
    assert page.inner_text("#found").startswith("1 of")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    page.wait_for_selector("#help", state="hidden")
    page.keyboard.press("Escape")
    page.wait_for_selector("#overview", state="visible")
    assert page.locator("#run").is_hidden()


def test_dark_and_light_differ_and_can_be_chosen(browser: Any, long: Path) -> None:
    colours = []
    for scheme in ("light", "dark"):
        opened = Opened(browser, long, color_scheme=scheme)
        paint = "() => getComputedStyle(document.body).backgroundColor"
        before = opened.page.evaluate(paint)
        opened.page.click("#theme")
        colours.append((before, opened.page.evaluate(paint)))
        opened.close()
    assert colours[0] == colours[1][::-1]
    assert colours[0][0] != colours[0][1]


def test_without_script_verdict_runs_and_findings_are_there(browser: Any, evil: Path) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(evil.as_uri())
    assert page.locator("#overview .word").is_visible()
    assert page.locator(".matrix .chip").count() == 1
    assert page.locator(".finding").count() > 0
    page.context.close()


def test_on_paper_there_is_no_tool_and_no_cut_list(at_long: Opened) -> None:
    page = at_long.run(0, 0)
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator(".tools").is_hidden()
    assert page.locator(".bar").is_hidden()
    assert page.locator(".step").count() == min(2_000, int(page.get_attribute(".step", "aria-setsize")))
