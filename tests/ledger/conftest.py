"""A ledger with a fixed clock and fixed randomness, so that two runs of a test write the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import shake_256
from pathlib import Path
from typing import Any

import pytest

from deskcert_ledger import Ack, Blob, ProjectKey, RunLedger, Secret
from deskcert_ledger.notary import Following


class StepClock:
    """Every look is 100 µs later."""

    def __init__(self) -> None:
        self.us = 0

    def now(self) -> datetime:
        return datetime(2026, 11, 30, 20, 0, tzinfo=UTC) + timedelta(microseconds=self.us)

    def monotonic_us(self) -> int:
        self.us += 100
        return self.us


def seeded(seed: str) -> Callable[[int], bytes]:
    calls = 0

    def draw(count: int) -> bytes:
        nonlocal calls
        calls += 1
        return shake_256(f"{seed}/{calls}".encode()).digest(count)

    return draw


ORIGIN = "deskcert/test/run-1"


@pytest.fixture
def key(tmp_path: Path) -> ProjectKey:
    return ProjectKey.load_or_create(tmp_path / ".deskcert" / "key", rng=seeded("project"))


@pytest.fixture
def create(tmp_path: Path, key: ProjectKey) -> Iterator[Callable[..., RunLedger]]:
    """Make an open run; those left open are closed at the end of the test.

    Each commit has its note at once, so that what a test finds in the folder does not depend on a thread.
    """
    opened: list[RunLedger] = []

    def make(name: str = "run-1", **options: Any) -> RunLedger:
        ledger = RunLedger.create(
            tmp_path / name,
            origin=options.pop("origin", ORIGIN),
            start={"run": name},
            project_key=options.pop("project_key", key),
            clock=options.pop("clock", None) or StepClock(),
            rng=seeded(name),
            following=options.pop("following", Following.AT_ONCE),
            **options,
        )
        opened.append(ledger)
        return ledger

    yield make
    for ledger in opened:
        ledger.__exit__()


def fill(ledger: RunLedger) -> None:
    """A small run: two actions, one of them with a secret, and the tree they rest on."""
    tree = Blob({"nodes": [{"role": "textbox", "name": "Card", "value": Secret("4111", openable=False)}]})
    ledger.append("observation", {"snapshot_id": "s1", "complete": True, "nodes": 1, "tree": tree}, ack=Ack.ORDERED)
    for number in (1, 2):
        intent = ledger.append(
            "action.intent", {"command": "set-value", "action": number, "args": {"value": Secret(f"secret {number}")}}
        )
        ledger.append("action.result", {"of": intent.seq, "ok": True, "delivery": "delivered_verified"})
    ledger.append("claim", {"outcome": "done", "message": "Grüße \ud800"})
    ledger.append("run.end", {"outcome": "finished", "reason": "claim"})


@pytest.fixture
def sealed(create: Callable[..., RunLedger]) -> Path:
    """A complete, sealed run's folder."""
    ledger = create()
    fill(ledger)
    ledger.seal()
    return ledger.folder
