"""The processes that a page lives in. Where the browser isolates sites, a frame of another site has a process of its
own, and a channel of its own to it; the same script stands in all of them.

Playwright says which frames there are; a frame that is not among those that our channels tell of lives somewhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from deskcert.adapters.web.channel import FAILURES, Channel, Liveness
from deskcert.adapters.web.frames import Frames
from deskcert.adapters.web.requests import RequestLog
from deskcert.adapters.web.script import BINDING, WORLD, world_script

__all__ = ["SETUP_MS", "Processes", "install"]

SETUP_MS: Final = 10_000
_STEP_S: Final = 0.02

type Told = Callable[[dict[str, Any]], None]


async def install(
    channel: Channel, alive: Liveness, frames: Frames, requests: RequestLog, told: Told
) -> Callable[[], None]:
    """Puts our world into every document of one process, those to come included. Returns what is to be called when the
    process is gone. Raises the channel's errors."""
    frames.attach(channel, alive)
    forget = requests.attach(channel)
    channel.on("Runtime.bindingCalled", told)

    async def send(method: str, **params: Any) -> dict[str, Any]:
        return await channel.call(method, params, budget_ms=SETUP_MS)

    await send("Page.enable")
    frames.load((await send("Page.getFrameTree"))["frameTree"], channel, alive)
    await send("Network.enable")
    await send("Runtime.enable")
    # Asynchronous stacks carry the name of our dispatch function into whatever the page does later because of it. Not
    # by the Debugger, which would tell of every script, keep all that was ever compiled, and stop at a `debugger;`.
    await send("Runtime.setAsyncCallStackDepth", maxDepth=32)
    await send("Runtime.addBinding", name=BINDING, executionContextName=WORLD)
    await send("Page.addScriptToEvaluateOnNewDocument", source=world_script(), worldName=WORLD, runImmediately=True)
    return forget


class Processes:
    """Those beside the page's own."""

    def __init__(
        self, shown: tuple[Any, Any], alive: Liveness, frames: Frames, requests: RequestLog, told: Told
    ) -> None:
        """`shown`: Playwright's page and its context."""
        (self._page, self._context), self._alive = shown, alive
        self._frames, self._requests, self._told = frames, requests, told
        self._channels: dict[Any, Channel] = {}
        """By Playwright's frame."""

    @property
    def missing(self) -> bool:
        """There are frames that no channel tells of."""
        return len(self._page.frames) > len(self._frames)

    async def catch_up(self) -> None:
        """Attaches to every process that came since. One that goes away meanwhile is left."""
        if not self.missing:
            return
        for frame in self._page.frames[1:]:
            if frame not in self._channels:
                with suppress(*FAILURES):
                    await self._attach(frame)

    async def settle(self) -> None:
        """Returns when every frame is told of and has its first document. The caller has the deadline."""
        while self.missing or not self._frames.settled:
            await self.catch_up()
            with suppress(TimeoutError):
                async with asyncio.timeout(_STEP_S):
                    await self._frames.changed()

    async def _attach(self, frame: Any) -> None:
        from playwright.async_api import Error

        try:
            session = await self._context.new_cdp_session(frame)
        except Error:
            return  # it shares the process of the frame around it, or it is gone
        alive = self._alive.inner()
        channel = Channel(session, alive)
        self._channels[frame] = channel
        forgets: list[Callable[[], None]] = []

        def gone(_: object = None) -> None:
            alive.lose("the process of the frame is gone")
            if self._channels.get(frame) is channel:
                del self._channels[frame]
            self._frames.drop(channel)
            for forget in forgets:
                forget()

        session.on("close", gone)
        channel.on("Inspector.targetCrashed", gone)
        try:
            forgets.append(await install(channel, alive, self._frames, self._requests, self._told))
        except FAILURES:
            gone()
            raise

    async def detach(self) -> None:
        for channel in tuple(self._channels.values()):
            await channel.detach()
