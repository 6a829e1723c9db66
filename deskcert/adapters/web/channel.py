"""One CDP session, with our own deadline on every call: Playwright's `CDPSession.send` has none and never returns after
a renderer crash."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

__all__ = ["FAILURES", "Channel", "ChannelLost", "ChannelRefused", "ChannelTimeout", "Liveness"]


class ChannelTimeout(Exception):
    """The call was made; no answer came in time."""


class ChannelLost(Exception):
    """The page or the browser died. `sent` says whether the call had been made by then."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        self.sent = sent
        super().__init__(reason)


class ChannelRefused(Exception):
    """The browser answered that it cannot do this."""


FAILURES: Final = (ChannelTimeout, ChannelLost, ChannelRefused)


class Liveness:
    """Whether the page, or one process of it, is still there. Set once, with the reason."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._event = asyncio.Event()
        self._inner: WeakSet[Liveness] = WeakSet()

    def inner(self) -> Liveness:
        """One that is lost with this one, and can be lost before it."""
        made = Liveness()
        self._inner.add(made)
        if self.reason is not None:
            made.lose(self.reason)
        return made

    def lose(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason
            self._event.set()
            for inner in tuple(self._inner):
                inner.lose(reason)

    async def wait(self) -> None:
        await self._event.wait()


class Channel:
    def __init__(self, session: Any, alive: Liveness) -> None:
        self.session = session
        """Playwright's, or that of a process inside another's."""
        self._alive = alive
        self._pending: set[asyncio.Task[Any]] = set()

    def on(self, event: str, handler: Callable[[dict[str, Any]], None]) -> None:
        self.session.on(event, handler)

    def start(self, method: str, params: dict[str, Any]) -> asyncio.Task[Any]:
        """Makes the call and leaves it pending. Its failure is nobody's surprise: whoever still waits is told."""
        task = asyncio.create_task(self.session.send(method, params))
        self._pending.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._pending.discard(task)
        if not task.cancelled():
            task.exception()

    async def call(self, method: str, params: dict[str, Any] | None = None, *, budget_ms: int) -> dict[str, Any]:
        """Raises `ChannelTimeout`, `ChannelLost` or `ChannelRefused`, never anything of Playwright's."""
        if self._alive.reason is not None:
            raise ChannelLost(self._alive.reason, sent=False)
        return await self.answer(self.start(method, params or {}), budget_ms=budget_ms)

    async def answer(self, task: asyncio.Task[Any], *, budget_ms: int) -> dict[str, Any]:
        gone = asyncio.ensure_future(self._alive.wait())
        try:
            await asyncio.wait({task, gone}, timeout=budget_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        return self.result(task)

    def result(self, task: asyncio.Task[Any]) -> dict[str, Any]:
        """The answer of a call that is over, or why there is none."""
        if task.done() and not task.cancelled() and task.exception() is None:
            found: dict[str, Any] = task.result()
            return found
        if self._alive.reason is not None:
            raise ChannelLost(self._alive.reason, sent=True)
        if not task.done():
            raise ChannelTimeout("no answer in time")
        message = "cancelled" if task.cancelled() else str(task.exception())
        if "closed" in message or "crashed" in message.lower() or "destroyed" in message:
            raise ChannelLost(message, sent=True)
        raise ChannelRefused(message.removeprefix("CDPSession.send: "))

    async def detach(self) -> None:
        for task in tuple(self._pending):
            task.cancel()
