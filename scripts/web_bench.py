"""A page of the application under test behind a guarded session, for evidence about the web."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.adapters.web.browser import WebBrowser
from deskcert.certify.fixture import Application
from deskcert.guard.policy import compile_policy
from deskcert.session import Options, Session, nothing
from deskcert.session.budget import Budget
from deskcert.session.points import AtPoint
from deskcert_ledger import ProjectKey, RunLedger, SystemClock
from deskcert_schema.errors import HarnessError
from deskcert_schema.vocabulary import PipelinePoint

__all__ = ["Bench", "bench"]

_DISK: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Commits are no matter here: nothing is killed."""
_POLICY: Final = {"version": 1, "default": "allow", "deny": [{"id": "no-delete-account", "name": "Delete account"}]}


@dataclass(slots=True)
class Bench:
    """One page, one session, one application."""

    application: Application
    adapter: WebAdapter
    at_point: AtPoint = nothing
    url: str = ""
    read: int = 0
    session: Session = field(init=False)

    async def at(self, point: PipelinePoint, action: int) -> None:
        await self.at_point(point, action)

    async def perturb(self, do: str, args: Mapping[str, Any]) -> bool:
        try:
            return (await self.application.perturb(do, args)).applied
        except HarnessError:
            return False

    async def set_up(self, page: str, seed: Mapping[str, Any], *, number: int) -> None:
        """Data anew, and the page on which they stand."""
        self.url = await self.application.prepare({"page": page, "seed": dict(seed)}, seed=number)
        self.read = 0
        await self.open()

    async def open(self) -> None:
        for _ in range(5):  # where the page is about to go elsewhere by itself, that may come first
            found = await self.adapter.navigate(self.url, number=0, budget_ms=20_000, at=_nowhere)
            if found.committed is not None and found.committed.url == self.url:
                return
        raise HarnessError(f"the page did not open: {found.error}")

    async def settle(self) -> None:
        """By the answer to this no request of the page is still on its way: there is no such row, and nothing is
        changed."""
        await self.perturb("remove", {"row": 0})
        await self.application.quiet(5)

    def effects(self) -> list[Mapping[str, Any]]:
        lines = self.application.effects.read_text().splitlines()
        new, self.read = lines[self.read :], len(lines)
        return [json.loads(line) for line in new]


async def _nowhere(point: str) -> None:
    del point


@asynccontextmanager
async def bench(browser: WebBrowser) -> AsyncIterator[Bench]:
    """One page of the browser with all that belongs to it, and its end."""
    with tempfile.TemporaryDirectory(prefix="deskcert-evidence-", dir=_DISK) as name:
        folder = Path(name)
        (folder / "app").mkdir()
        application = await Application.start(folder / "app", token=secrets.token_hex(8))
        ledger = RunLedger.create(
            folder / "run",
            origin="deskcert/evidence/web",
            start={},
            project_key=ProjectKey.load_or_create(folder / "key"),
            clock=SystemClock(),
            rng=os.urandom,
        )
        try:
            adapter = await browser.open()
            found = Bench(application, adapter)
            found.session = Session(
                adapter,
                ledger,
                compile_policy(_POLICY, digest="0" * 64),
                clock=SystemClock(),
                rng=os.urandom,
                options=Options(budget=Budget(None, None)),
                at_point=found.at,
            )
            yield found
            await adapter.close()
        finally:
            await application.close()
            ledger.seal()
