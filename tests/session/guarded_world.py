"""A session over the simulator with a real ledger, for tests: what was answered, recorded, and truly delivered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deskcert.adapters.base import Adapter
from deskcert.adapters.simulator import Element, Simulator, World
from deskcert.guard.policy import compile_policy
from deskcert.session import Options, Session, nothing
from deskcert_ledger import ProjectKey, RunLedger, SystemClock, read_records
from deskcert_schema.validate import check

POLICY = {"version": 1, "deny": [{"id": "no-delete", "name": "Delete account", "reason": "irreversible"}]}


class SettableClock:
    """Monotonic microseconds that a test moves."""

    def __init__(self) -> None:
        self.us = 1_000_000

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic_us(self) -> int:
        return self.us


def orders() -> World:
    """Two orders that are alike, a field, a password, and something forbidden."""
    rows = [Element(f"n{i}", f"order-{i}", "button", "Approve", context=(("row", f"Order {i}"),)) for i in (1001, 1002)]
    field = Element("n3", "note", "textbox", "Note", editable=True, value="kept privately")
    password = Element("n4", "password", "textbox", "Password", editable=True, secure=True, value="hunter2-in-the-page")
    return World([*rows, field, password, Element("n5", "account", "button", "Delete account")])


class Guarded:
    """`await guarded("click", ref=…)` answers an envelope that the schema accepts, or fails the test."""

    def __init__(
        self,
        folder: Path,
        world: World | None = None,
        *,
        adapter: Adapter | None = None,
        options: Options | None = None,
        at_point: Any = nothing,
        clock: Any = None,
        rng: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.world = world if world is not None else orders()
        self.folder = folder / "run"
        key = ProjectKey.load_or_create(folder / "key")
        start = {"run": "test"}
        self.ledger = RunLedger.create(
            self.folder, origin="deskcert/test/1", start=start, project_key=key, clock=SystemClock(), rng=os.urandom
        )
        self.session = Session(
            adapter if adapter is not None else Simulator(self.world),
            self.ledger,
            compile_policy(POLICY, digest="0" * 64),
            clock=clock if clock is not None else SystemClock(),
            rng=rng,
            options=options if options is not None else Options(timeout_ms=0),
            at_point=at_point,
        )

    async def __call__(self, command: str, **args: Any) -> dict[str, Any]:
        envelope = await self.session.handle(command, args)
        assert check("envelope", json.loads(json.dumps(envelope))) == []
        return envelope

    async def refs(self) -> dict[str, str]:
        """A new snapshot's refs by "name" or "name in context"."""
        tree = (await self("snapshot"))["data"]["tree"]
        found: dict[str, str] = {}
        for node in walk(tree):
            if "ref_id" in node:
                inside = f" in {node['context'][-1][1]}" if node.get("context") else ""
                found[f"{node.get('name', '')}{inside}"] = node["ref_id"]
        return found

    def records(self) -> list[dict[str, Any]]:
        """Every record so far but `run.start`, each accepted by the schema. Seals the ledger."""
        self.ledger.seal()
        lines = [json.loads(r.line) for r in read_records(self.folder)][1:]
        for line in lines:
            assert check("record", line) == [], line
        return lines

    def kinds(self) -> list[str]:
        return [r["kind"] for r in self.records() if r["kind"] != "checkpoint"]

    def bytes_but_openings(self) -> bytes:
        """All that the run wrote, without the file of openings, which may be withheld."""
        files = (p for p in self.folder.rglob("*") if p.is_file() and p.name != "disclosures.jsonl")
        return b"".join(p.read_bytes() for p in files)


def walk(node: Any) -> Any:
    for one in node if isinstance(node, list) else [node]:
        yield one
        for child in one.get("children", ()):
            yield from walk(child)
