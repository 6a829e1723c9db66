"""The processes that a page lives in. Where the browser isolates sites, a frame of another site has a process of its
own, and a channel of its own to it; the same script stands in all of them.

The browser tells of such a process before its first document is there, and holds that back until our script is in: so
our listeners are the first there too. Playwright says which frames there are; a frame that is not among those that our
channels tell of is still to come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from deskcert.adapters.web.channel import FAILURES, Channel, Liveness
from deskcert.adapters.web.child import ChildSession
from deskcert.adapters.web.frames import Frames
from deskcert.adapters.web.requests import RequestLog
from deskcert.adapters.web.script import BINDING, WORLD, world_script

__all__ = ["SETUP_MS", "Processes"]

SETUP_MS: Final = 10_000
_STEP_S: Final = 0.02
_LET_GO_MS: Final = 1_000
_FRAMES_ONLY: Final = [{"type": "iframe"}, {"exclude": True}]

type Told = Callable[[dict[str, Any]], None]


class Processes:
    def __init__(self, page: Any, alive: Liveness, frames: Frames, requests: RequestLog, told: Told) -> None:
        """`page`: Playwright's."""
        self._page, self._alive = page, alive
        self._frames, self._requests, self._told = frames, requests, told
        self._channels: dict[str, Channel] = {}
        """Those beside the page's own, by session."""
        self._coming: set[asyncio.Task[None]] = set()

    @property
    def missing(self) -> bool:
        """There are frames that no channel tells of."""
        return len(self._page.frames) > len(self._frames)

    async def install(self, channel: Channel, alive: Liveness) -> Callable[[], None]:
        """Puts our world into every document of one process, those to come included, and follows the processes of
        frames in it. Returns what is to be called when the process is gone. Raises the channel's errors."""
        self._frames.attach(channel, alive)
        forget = self._requests.attach(channel)
        channel.on("Runtime.bindingCalled", self._told)

        async def send(method: str, **params: Any) -> dict[str, Any]:
            return await channel.call(method, params, budget_ms=SETUP_MS)

        await send("Page.enable")
        self._frames.load((await send("Page.getFrameTree"))["frameTree"], channel, alive)
        await send("Network.enable")
        await send("Runtime.enable")
        # Asynchronous stacks carry the name of our dispatch function into whatever the page does later because of it.
        # Not by the Debugger, which tells of every script, keeps all that was ever compiled, and stops at `debugger;`.
        await send("Runtime.setAsyncCallStackDepth", maxDepth=32)
        await send("Runtime.addBinding", name=BINDING, executionContextName=WORLD)
        await send("Page.addScriptToEvaluateOnNewDocument", source=world_script(), worldName=WORLD, runImmediately=True)
        await self._follow(channel, alive)
        return forget

    async def catch_up(self) -> None:
        """Returns when every process that was told of has our script, or is gone."""
        while self._coming:
            await asyncio.wait(tuple(self._coming))

    async def settle(self) -> None:
        """Returns when every frame is told of and has its first document. The caller has the deadline."""
        while self.missing or not self._frames.settled:
            await self.catch_up()
            with suppress(TimeoutError):
                async with asyncio.timeout(_STEP_S):
                    await self._frames.changed()

    async def _follow(self, channel: Channel, alive: Liveness) -> None:
        """Has the browser tell of the processes of frames in this one, and hold each back for us."""
        children: dict[str, tuple[ChildSession, Callable[[], None]]] = {}

        def attached(event: dict[str, Any]) -> None:
            child = ChildSession(channel.session, event["sessionId"])
            gone = self._begin(child, alive.inner(), event["sessionId"])
            children[event["sessionId"]] = (child, gone)

        def received(event: dict[str, Any]) -> None:
            if event["sessionId"] in children:
                children[event["sessionId"]][0].receive(event["message"])

        def detached(event: dict[str, Any]) -> None:
            if event["sessionId"] in children:
                child, gone = children.pop(event["sessionId"])
                gone()
                child.close()

        channel.on("Target.attachedToTarget", attached)
        channel.on("Target.receivedMessageFromTarget", received)
        channel.on("Target.detachedFromTarget", detached)
        how = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": False, "filter": _FRAMES_ONLY}
        await channel.call("Target.setAutoAttach", how, budget_ms=SETUP_MS)

    def _begin(self, child: ChildSession, alive: Liveness, session: str) -> Callable[[], None]:
        """Returns what is to be called when the process is gone."""
        channel = self._channels[session] = Channel(child, alive)
        forgets: list[Callable[[], None]] = []

        def gone(_: object = None) -> None:
            alive.lose("the process of the frame is gone")
            self._channels.pop(session, None)
            self._frames.drop(channel)
            for forget in forgets:
                forget()

        async def prepare() -> None:
            try:
                forgets.append(await self.install(channel, alive))
            except FAILURES:
                gone()
            finally:
                # Whatever became of us, the page is not kept waiting.
                running = asyncio.ensure_future(child.send("Runtime.runIfWaitingForDebugger", {}))
                running.add_done_callback(lambda task: task.cancelled() or task.exception())

        channel.on("Inspector.targetCrashed", gone)
        task = asyncio.create_task(prepare())
        self._coming.add(task)
        task.add_done_callback(self._coming.discard)
        return gone

    async def let_go(self, channel: Channel) -> None:
        """From the page's own channel, of a page that stays open: nothing of it waits for us any more."""
        off = {"autoAttach": False, "waitForDebuggerOnStart": False, "flatten": False}
        with suppress(*FAILURES):
            await channel.call("Target.setAutoAttach", off, budget_ms=_LET_GO_MS)
        await self.detach()

    async def detach(self) -> None:
        for channel in tuple(self._channels.values()):
            await channel.detach()
