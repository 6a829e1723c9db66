"""The Python way in: asynchronous, waiting, in pytest, on somebody else's page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ways_world import Application, simulated, verified_word

import deskcert
from deskcert.adapters.web.find_browser import find_browser
from deskcert.api import GuardedSession
from deskcert_schema.errors import AdapterError, ConfigError, ContractError, HarnessError, UsageError

POLICY = {"version": 1, "deny": [{"id": "no-delete", "name": "Delete account", "reason": "irreversible"}]}


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().splitlines()]


@pytest.mark.web
async def test_a_session(app: Application, tmp_path: Path) -> None:
    url = app.start("/orders")  # resets the log of effects
    async with deskcert.open_session(url, POLICY, out=tmp_path / "out", base=tmp_path) as s:
        page = await s.snapshot()
        assert page.complete
        done = await s.click(page.one(role="button", name="Approve", context="Order 1001"))
        assert (done.ok, done.delivery, done.retry) == (True, "delivered_unverified", "unsafe")
        assert done.or_raise() is done
        again = await s.click(page.one(role="button", name="Approve", context="Order 1001"))
        assert not again.ok
        with pytest.raises(AdapterError) as caught:
            again.or_raise()
        assert caught.value.delivery == again.delivery
        assert (await s.status()).data["actions"]["used"] == 2
        await app.committed(1)
    assert [e["id"] for e in app.effects()] == [1001]
    assert verified_word(s.ledger, tmp_path) == "complete"
    assert records(s.ledger)[0]["custody"] == "owned"


@pytest.mark.web
def test_a_session_without_async_and_an_exception_in_it(app: Application, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: SIM117, PT012
        with deskcert.open_session_sync(app.start("/orders"), POLICY, out=tmp_path / "out", base=tmp_path) as s:
            assert s.snapshot().ok
            raise ZeroDivisionError
    assert verified_word(s.ledger, tmp_path) == "complete"
    assert records(s.ledger)[-1]["reason"].endswith("ZeroDivisionError")


@pytest.mark.web
async def test_somebody_else_s_page_is_guarded_and_left_open(app: Application, tmp_path: Path) -> None:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        page = await browser.new_page()
        await page.goto(app.start("/orders"))
        async with deskcert.guard_page(page, POLICY, out=tmp_path / "out", base=tmp_path) as s:
            seen = await s.snapshot()
            assert (await s.click(seen.one(name="Approve", context="Order 1002"))).ok
            await app.committed(1)
        assert "Orders" in await page.title()
        await page.close()
        with pytest.raises(UsageError, match="closed"):
            async with deskcert.guard_page(page, POLICY, out=tmp_path):
                pass
        await browser.close()
    assert [e["id"] for e in app.effects()] == [1002]
    assert verified_word(s.ledger, tmp_path) == "complete"
    assert records(s.ledger)[0]["custody"] == "shared"
    from deskcert.scoring import score
    from deskcert_ledger.keys import local_pin

    pin = local_pin(tmp_path)
    assert pin is not None
    assert score([s.ledger], (pin,)).exit_code != 0, "shared custody is never certified"


async def test_what_is_no_page_is_refused() -> None:
    with pytest.raises(UsageError, match=r"playwright\.async_api"):
        async with deskcert.guard_page(object(), POLICY):
            pass


@pytest.mark.web
async def test_an_address_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="could not be opened"):
        async with deskcert.open_session("http://127.0.0.1:9/", POLICY, out=tmp_path / "out", base=tmp_path):
            pass
    assert not (tmp_path / "out").exists(), "a session that never was leaves no ledger"


async def test_a_policy_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="denny"):
        async with deskcert.open_session("http://127.0.0.1:9/", {"version": 1, "denny": []}, out=tmp_path):
            pass
    with pytest.raises(ConfigError, match="no such file"):
        async with deskcert.open_session("http://127.0.0.1:9/", tmp_path / "none.yaml", out=tmp_path):
            pass


async def test_finding_one_element(tmp_path: Path) -> None:
    async with simulated(tmp_path) as world:
        session = GuardedSession(world.opened, ledger=world.opened.folder)
        page = await session.snapshot()
        assert page.one(name="Note").startswith("@s")
        with pytest.raises(ContractError, match="2 elements with name 'Approve'"):
            page.one(name="Approve")
        with pytest.raises(ContractError, match="no element"):
            page.one(name="Approve", context="Order 9")


PLUGIN_TESTS = """
import pytest

def test_good(deskcert_session):
    page = deskcert_session.snapshot()
    assert deskcert_session.click(page.one(name="Delete account")).code == "POLICY_DENIED"

def test_bad(deskcert_session):
    assert deskcert_session.snapshot().one(name="Nobody")
"""


@pytest.mark.web
def test_the_pytest_plugin_keeps_the_ledger_of_a_failed_test(app: Application, tmp_path: Path, policy: Path) -> None:
    (tmp_path / "test_mine.py").write_text(PLUGIN_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\ndeskcert_policy = policy.yaml\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "deskcert.pytest_plugin"),
            *("--deskcert-url", app.start("/settings"), "test_mine.py"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    (kept,) = (tmp_path / "deskcert-out" / "pytest").iterdir()
    assert f"test_mine.py::test_bad: {kept}" in done.stdout
    assert verified_word(kept, tmp_path) == "complete"
