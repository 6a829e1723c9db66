"""The guard decides, and writes down, what it did before: a replay of an old ledger rests on it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from guard_grid import QUESTIONS, SITUATIONS, decided
from guard_histories import HISTORIES, told
from spelled_before import SPELLED

HERE = Path(__file__).parent
HOW = "if this was meant, run python tests/guard/decided_before.py and look at what differs"


@cache
def before() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "decided.json").read_text())
    return found


@cache
def spelled_before() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "spelled.json").read_text())
    return found


@cache
def told_before() -> dict[str, Any]:
    lines = (HERE / "told.jsonl").read_text().splitlines()
    return {found["history"]: found for found in map(json.loads, lines)}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_situation_is_decided_as_before(question: str) -> None:
    assert before()["situations"] == list(SITUATIONS)
    now, then = decided(question), before()[question]
    differ = [
        (action, where)
        for action in now
        for i, where in enumerate(SITUATIONS)
        if now[action][4 * i : 4 * i + 4] != then.get(action, "")[4 * i : 4 * i + 4]
    ]
    assert differ == [], HOW
    assert now.keys() == then.keys()


@pytest.mark.parametrize("name", HISTORIES)
def test_every_history_is_told_as_before(name: str) -> None:
    assert told(name) == told_before()[name], HOW


def test_no_history_is_forgotten() -> None:
    assert list(told_before()) == list(HISTORIES)


@pytest.mark.parametrize("name", SPELLED)
def test_every_text_is_read_as_before(name: str) -> None:
    now = json.loads(json.dumps(SPELLED[name]()))
    assert now == spelled_before()[name], HOW
