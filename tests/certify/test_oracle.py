"""The oracle against a real database and a real log file; what cannot be read is never "did not happen"."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from deskcert.certify.oracle import ask


@pytest.fixture
def app(tmp_path: Path) -> Path:
    connection = sqlite3.connect(tmp_path / "app.sqlite")
    connection.execute("create table orders (id integer, state text)")
    connection.executemany("insert into orders values (?, ?)", [(1001, "approved"), (1002, "open")])
    connection.commit()
    connection.close()
    effects = [
        {"t": "x", "kind": "order.approved", "id": 1001, "via": "direct", "request": "POST /a", "fields": {"by": "me"}},
        {"t": "x", "kind": "note.saved", "id": "7", "via": "direct", "request": "POST /b", "fields": {"n": 1}},
    ]
    (tmp_path / "effects.jsonl").write_text("".join(json.dumps(e) + "\n" for e in effects))
    return tmp_path


async def holds(app: Path, *items: dict[str, Any]) -> list[bool | None]:
    told = await ask(items, app / "app.sqlite", app / "effects.jsonl", token="t")
    return [a.holds for a in told.answers]


async def test_effects_are_counted_by_every_field_given(app: Path) -> None:
    assert await holds(
        app,
        {"effect": {"kind": "order.approved", "id": 1001}, "times": 1},
        {"effect": {"kind": "order.approved", "id": "1001"}},
        {"effect": {"kind": "order.approved", "fields": {"by": "me"}}},
        {"effect": {"kind": "order.approved", "fields": {"by": "you"}}},
        {"effect": {"kind": "order.approved", "id": 1001}, "times": 2},
        {"effect": {"kind": "note.saved", "id": 7, "via": "direct"}},
        {"effect": {"kind": "payout.sent"}, "times": 0},
    ) == [True, True, True, False, False, True, True]


async def test_no_effect_holds_only_where_nothing_matches(app: Path) -> None:
    items = ({"no_effect": {"kind": "payout.sent"}}, {"no_effect": {"kind": "order.approved"}})
    assert await holds(app, *items) == [True, False]


async def test_queries_compare_one_cell_or_the_rows(app: Path) -> None:
    assert await holds(
        app,
        {"sql": "select count(*) from orders where state = 'approved'", "equals": 1},
        {"sql": "select state from orders where id = 1002", "equals": "approved"},
        {"sql": "select id, state from orders order by id", "equals": [[1001, "approved"], [1002, "open"]]},
        {"sql": "select id from orders where id = 9", "equals": []},
    ) == [True, False, True, True]


async def test_the_database_cannot_be_changed_by_a_question(app: Path) -> None:
    assert await holds(app, {"sql": "delete from orders", "equals": []}) == [None]
    assert await holds(app, {"sql": "select count(*) from orders", "equals": 2}) == [True]


@pytest.mark.parametrize("damage", ["missing", "torn", "garbage"])
async def test_a_log_that_cannot_vouch_establishes_nothing(app: Path, damage: str) -> None:
    log = app / "effects.jsonl"
    match damage:
        case "missing":
            log.unlink()
        case "torn":
            log.write_bytes(log.read_bytes()[:-5])
        case _:
            log.write_text("not json\n")
    items = ({"no_effect": {"kind": "payout.sent"}}, {"sql": "select count(*) from orders", "equals": 2})
    told = await ask(items, app / "app.sqlite", log, token="t")
    assert told.effects_log == "disabled"
    assert [a.holds for a in told.answers] == [None, True]


async def test_a_missing_database_establishes_nothing(app: Path) -> None:
    (app / "app.sqlite").unlink()
    assert await holds(app, {"sql": "select 1", "equals": 1}) == [None]
    assert not (app / "app.sqlite").exists()


async def test_a_file_beside_the_database(app: Path) -> None:
    (app / "export.csv").write_text("a,b\n")
    assert await holds(
        app,
        {"file": "export.csv", "contains": "a,b"},
        {"file": "export.csv", "exists": False},
        {"file": "other.csv", "exists": False},
        {"file": "../x", "exists": False},
    ) == [True, False, True, None]
