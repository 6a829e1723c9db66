"""The application under test as a program: it starts, is set up, answers, and leaves nothing."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deskcert.certify.fixture import Application, NotUnderstood
from deskcert.certify.oracle import ask
from deskcert.certify.reaper import holders
from deskcert_schema.errors import HarnessError


def fetch(request: urllib.request.Request) -> tuple[int, bytes]:
    with urllib.request.urlopen(request) as answer:
        return answer.status, answer.read()


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Application]:
    app = await Application.start(tmp_path, token=f"fixture{os.getpid()}")
    yield app
    await app.close()


async def test_it_serves_what_the_scenario_starts_with(app: Application) -> None:
    url = await app.prepare({"page": "/orders", "seed": {"orders": 12}}, seed=3)
    status, body = await asyncio.to_thread(fetch, urllib.request.Request(url))
    assert status == 200
    assert b"Order" in body
    with sqlite3.connect(f"file:{app.database}?mode=ro", uri=True) as connection:
        assert connection.execute("select count(*) from orders").fetchone() == (12,)


async def test_an_effect_is_in_the_log_once_it_is_committed(app: Application) -> None:
    await app.prepare({"page": "/orders", "seed": {"orders": 12}}, seed=1)
    request = urllib.request.Request(f"{app.url}/api/orders/1002/approve", data=b"{}", method="POST")
    assert (await asyncio.to_thread(fetch, request))[0] == 200
    told = await ask(
        [{"effect": {"kind": "order.approved", "id": 1002}, "times": 1}], app.database, app.effects, token="t"
    )
    assert (told.effects_log, told.answers[0].holds) == ("enabled", True)


async def test_a_start_that_it_does_not_understand_is_a_clear_error(app: Application) -> None:
    with pytest.raises(NotUnderstood, match="faults"):
        await app.prepare({"page": "/orders", "faults": [{"on": "POST /x", "do": "explode"}]}, seed=1)


async def test_a_perturbation_without_a_page_is_not_applied(app: Application) -> None:
    await app.prepare({"page": "/orders"}, seed=1)
    done = await app.perturb("reorder_rows", {})
    assert not done.applied
    assert done.why


async def test_a_perturbation_that_it_does_not_know_is_a_clear_error(app: Application) -> None:
    with pytest.raises(NotUnderstood, match="reorder_rows"):
        await app.perturb("reorder_columns", {})


async def test_nothing_is_left_of_it(tmp_path: Path) -> None:
    token = f"gone{os.getpid()}"
    app = await Application.start(tmp_path, token=token)
    assert len(holders(token)) == 1
    await app.close()
    assert holders(token) == set()


async def test_an_application_that_is_gone_is_harness_trouble(app: Application) -> None:
    await app.close()
    with pytest.raises(HarnessError, match="did not answer POST /start"):
        await app.prepare({"page": "/orders"}, seed=1)
