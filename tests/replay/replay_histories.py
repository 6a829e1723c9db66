"""Histories of the real guard over the simulated application, as ledger records and as real run folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deskcert.adapters.simulator import Simulator
from deskcert.guard.policy import compile_policy
from deskcert.session.session import Session
from deskcert.testing import Element, SimulatedRun, World
from deskcert_ledger import ProjectKey, Record, RunLedger, SystemClock

POLICY: dict[str, Any] = {
    "version": 1,
    "deny": [
        {"id": "no-delete", "name": "Delete account"},
        {"id": "no-cards", "value": {"regex": "[0-9]{16}"}},
    ],
}


def application() -> World:
    return World(
        [
            Element("n1", "order-1", name="Approve", context=(("row", "Order 1001"),)),
            Element("n2", "order-2", name="Approve", context=(("row", "Order 1002"),)),
            Element("n3", "note", role="textbox", name="Note", value="", editable=True),
            Element("n4", "account", name="Delete account"),
            Element("n5", "pin", role="textbox", name="PIN", value="", editable=True, secure=True),
        ]
    )


class Waiting(World):
    """Changes itself before the given looks (0 is the first of the run)."""

    def __init__(self, elements: list[Element], script: Mapping[int, Callable[[World], None]]) -> None:
        super().__init__(elements)
        self.script, self.looks = script, 0

    def probe(self, *args: Any, **kwargs: Any) -> Any:
        self.script.get(self.looks, lambda _: None)(self)
        self.looks += 1
        return super().probe(*args, **kwargs)


def records(run: SimulatedRun) -> list[Record]:
    return [Record(r.seq, r.kind, "guard", "", 0, json.loads(json.dumps(dict(r.data))), b"") for r in run.records]


def as_session(folder: Path, world: World, policy: Mapping[str, Any] = POLICY) -> tuple[Session, RunLedger]:
    """The real session on a real ledger in `folder`/run."""
    seen = [0]

    def rng(n: int) -> bytes:
        seen[0] += 1
        return seen[0].to_bytes(4, "big").rjust(n, b"\x5a")

    ledger = RunLedger.create(
        folder / "run",
        origin="deskcert/test/r1",
        start={
            "run": "notes-t1-aaaaaa",
            "policy": {"digest": "0" * 64, "content": dict(policy)},
            "scenario": {"id": "notes"},
        },
        project_key=ProjectKey.load_or_create(folder / "key"),
        clock=SystemClock(),
        rng=rng,
    )
    session = Session(Simulator(world), ledger, compile_policy(policy, digest="0" * 64), clock=SystemClock(), rng=rng)
    return session, ledger
