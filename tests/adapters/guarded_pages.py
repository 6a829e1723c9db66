"""A session with a real ledger over a page of a test: every answer and every record must be what the schemas say."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from web_pages import Witness, nowhere, script

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.guard.policy import compile_policy
from deskcert.replay.decisions import recompute
from deskcert.session import Options, Session
from deskcert_ledger import ProjectKey, RunLedger, SystemClock, read_records
from deskcert_schema.validate import check
from deskcert_schema.vocabulary import PipelinePoint

POLICY = {"version": 1, "deny": [{"id": "no-delete", "name": {"glob": "*delete*"}, "reason": "irreversible"}]}


class GuardedPage:
    """`await page("click", "Save")` acts on the one element called so in the newest snapshot."""

    def __init__(
        self,
        folder: Path,
        adapter: WebAdapter,
        witness: Witness,
        *,
        policy: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.adapter, self.witness, self.folder = adapter, witness, folder / "run"
        self.nodes: dict[str, dict[str, Any]] = {}
        self.hooks: dict[str, Callable[[], Awaitable[Any]]] = {}
        """Called once, when an action comes to the pipeline point of that name."""
        key = ProjectKey.load_or_create(folder / "key")
        self._document = policy or POLICY
        self.ledger = RunLedger.create(
            self.folder,
            origin="deskcert/test/1",
            start={"run": "test", "policy": {"digest": "0" * 64, "content": self._document}},
            project_key=key,
            clock=SystemClock(),
            rng=os.urandom,
        )
        self.session = Session(
            adapter,
            self.ledger,
            compile_policy(self._document, digest="0" * 64),
            clock=SystemClock(),
            rng=os.urandom,
            options=Options(**{"timeout_ms": 400, **options}),
            at_point=self._at,
        )

    async def _at(self, point: PipelinePoint, _action: int) -> None:
        hook = self.hooks.pop(point.value, None)
        if hook is not None:
            await hook()

    async def show(self, body: str, *, path: str = "/page") -> None:
        self.witness.pages[path] = f"<!doctype html><title>page</title><body>{body}"
        await self.adapter.navigate(self.witness.url + path, number=0, budget_ms=10_000, at=nowhere)
        await self.look()

    async def look(self, **options: Any) -> dict[str, Any]:
        data: dict[str, Any] = (await self.ask("snapshot", **options))["data"]
        self.nodes = {}
        for node in walk(data["tree"]):
            for key in (node.get("name"), node.get("native_id", {}).get("value")):
                if key and "ref_id" in node:
                    self.nodes.setdefault(key, node)
        return data

    async def ask(self, command: str, **args: Any) -> dict[str, Any]:
        envelope = await self.session.handle(command, args)
        problems = check("envelope", json.loads(json.dumps(envelope)))
        assert problems == [], (problems, envelope)
        return envelope

    async def __call__(self, command: str, name: str, **args: Any) -> dict[str, Any]:
        return await self.ask(command, ref=self.nodes[name]["ref_id"], **args)

    async def script(self, text: str) -> Any:
        return await script(self.adapter, text)

    def records(self) -> list[dict[str, Any]]:
        """Seals the ledger."""
        self.ledger.seal()
        lines = [json.loads(r.line) for r in read_records(self.folder)][1:]
        for line in lines:
            assert check("record", line) == [], (check("record", line), line)
        found = recompute(self.folder)
        assert found == [], found
        return lines


def delivery(envelope: dict[str, Any]) -> str:
    return str((envelope.get("data") or envelope["error"])["disposition"]["delivery"])


def walk(node: Any) -> Iterator[dict[str, Any]]:
    for one in node if isinstance(node, list) else [node]:
        yield one
        yield from walk(one.get("children", ()))
