"""The line between the control port and the page that is open now: server-sent events down, one GET back.

Every page that is served has an id and opens `/live?page=<id>`. A perturbation goes to the page that was served last;
the answer to the control request comes when that page says that it has done it, or could not.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PageBus"]

CONNECT_S = 1.5
"""How long a perturbation waits for a page that was served but is not connected yet."""
ANSWER_S = 2.0
"""How long it waits for the page's answer: a page that is busy for longer did not apply it in time."""


@dataclass(slots=True)
class _Page:
    queue: asyncio.Queue[str | None] = field(default_factory=asyncio.Queue)
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    gone: bool = False


class PageBus:
    def __init__(self) -> None:
        self._pages: dict[str, _Page] = {}
        self._newest: str | None = None
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}

    def serve_page(self) -> str:
        """The id for a page that is being rendered; it becomes the one that perturbations go to."""
        page = secrets.token_hex(6)
        self._pages[page] = _Page()
        self._newest = page
        return page

    def forget(self) -> None:
        """After a reset: nothing that is still open belongs to the new run."""
        for page in self._pages.values():
            page.queue.put_nowait(None)
        self._pages.clear()
        self._newest = None

    async def events(self, page_id: str) -> AsyncIterator[str]:
        page = self._pages.get(page_id)
        if page is None:
            return
        page.connected.set()
        yield "retry: 60000\n\n"
        try:
            while (message := await page.queue.get()) is not None:
                yield f"data: {message}\n\n"
        finally:
            page.gone = True
            self._pages.pop(page_id, None)

    async def perturb(self, do: str, args: Mapping[str, Any]) -> dict[str, Any]:
        page = self._pages.get(self._newest or "")
        if page is None or page.gone:
            return {"applied": False, "why": "no page is open"}
        try:
            await asyncio.wait_for(page.connected.wait(), CONNECT_S)
        except TimeoutError:
            return {"applied": False, "why": "the page was served but never connected"}
        ask = secrets.token_hex(6)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[ask] = answer
        page.queue.put_nowait(json.dumps({"ask": ask, "do": do, "args": dict(args)}))
        try:
            return await asyncio.wait_for(answer, ANSWER_S)
        except TimeoutError:
            return {"applied": False, "why": f"the page did not answer within {ANSWER_S:g} s"}
        finally:
            del self._asked[ask]

    def answered(self, ask: str, *, applied: bool, why: str | None) -> None:
        answer = self._asked.get(ask)
        if answer is not None and not answer.done():
            answer.set_result({"applied": applied} if applied else {"applied": False, "why": why or "not said"})
