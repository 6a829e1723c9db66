"""axe-core, which none of us wrote, finds nothing to say against the report: every view, light and dark."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from report_runs import evil_run

from deskcert.cli.report import report

pytestmark = pytest.mark.web

NODE_MODULES = Path(
    os.environ.get("DESKCERT_NODE_MODULES", Path(tempfile.gettempdir()) / "deskcert-foreign/node_modules")
)


@pytest.fixture(scope="module")
def axe() -> str:
    path = NODE_MODULES / "axe-core" / "axe.min.js"
    if not path.is_file():
        sentence = "axe-core is missing; .ci/run installs it"
        pytest.fail(sentence) if os.environ.get("CI") == "true" else pytest.skip(sentence)
    return path.read_text("utf-8")


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    from deskcert.adapters.web.find_browser import find_browser

    out = evil_run(tmp_path_factory.mktemp("accessible")).out
    assert CliRunner().invoke(report, [str(out), "-o", str(out / "report.html")]).exit_code == 0
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=str(find_browser()), args=["--no-sandbox"])

        def opened(scheme: str, width: int) -> Any:
            page = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}).new_page()
            page.goto((out / "report.html").as_uri())
            page.wait_for_selector("html[data-ready]")
            return page

        yield opened
        browser.close()


def violations(page: Any, axe: str) -> list[str]:
    page.evaluate(axe)
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert len(found["passes"]) > 10, "axe looked at nothing"
    return [f"{v['id']}: {n['target']} {n['failureSummary']}" for v in found["violations"] for n in v["nodes"]]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 1400), ("light", 420)])
@pytest.mark.parametrize("view", ["overview", "run", "help"])
def test_no_view_of_the_report_has_an_accessibility_violation(
    page_of: Any, axe: str, scheme: str, width: int, view: str
) -> None:
    page = page_of(scheme, width)
    if view == "run":
        page.evaluate("() => { location.hash = '#run=0&seq=2'; }")
        page.wait_for_selector("#detail h3")
        page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true; })")
    elif view == "help":
        page.keyboard.press("?")
        page.wait_for_selector("#help", state="visible")
    assert violations(page, axe) == []
    page.context.close()


def test_axe_would_see_a_control_without_a_name(page_of: Any, axe: str) -> None:
    page = page_of("light", 1400)
    page.evaluate("() => document.querySelector('main').appendChild(document.createElement('button'))")
    assert any(told.startswith("button-name") for told in violations(page, axe))
    page.context.close()
