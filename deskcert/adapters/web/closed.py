"""Closed shadow roots. No script can see into one; the browser can, and hands our world the root, after which our world
walks it like an open one. A plain element is not asked: asking for every element would cost more than the walk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from deskcert.adapters.web.channel import ChannelRefused
from deskcert.adapters.web.frames import Frame
from deskcert.adapters.web.script import call_function

__all__ = ["ClosedRoots"]

type ContextOf = Callable[[Frame, int], Awaitable[int]]


class ClosedRoots:
    def __init__(self, context_of: ContextOf) -> None:
        self._context_of = context_of
        self._asked: set[tuple[str, str, bool]] = set()
        """Generation of the document, element, and whether its class was defined by then: asked once in each state."""

    async def adopt(self, frame: Frame, host: tuple[str, bool], budget_ms: int) -> bool:
        """Whether an element turned out to have a closed root, which our world knows from now on. `host`: its id, and
        whether its class is defined. Raises the channel's errors."""
        key = (frame.loader, *host)
        if key in self._asked:
            return False
        context = await self._context_of(frame, budget_ms)

        async def call(method: str, **params: Any) -> dict[str, Any]:
            return await frame.channel.call(method, params, budget_ms=budget_ms)

        async def ask(function: str, *args: dict[str, Any]) -> dict[str, Any]:
            declared = call_function(function)
            found = await call(
                "Runtime.callFunctionOn", functionDeclaration=declared, executionContextId=context, arguments=list(args)
            )
            if "exceptionDetails" in found:
                raise ChannelRefused(found["exceptionDetails"]["text"])
            result: dict[str, Any] = found["result"]
            return result

        element = (await ask("node", {"value": host[0]})).get("objectId")
        described = await call("DOM.describeNode", objectId=element, pierce=True)
        roots = [r for r in described["node"].get("shadowRoots", ()) if r.get("shadowRootType") == "closed"]
        for root in roots:
            found = await call("DOM.resolveNode", backendNodeId=root["backendNodeId"], executionContextId=context)
            await ask("adopt", {"objectId": element}, {"objectId": found["object"]["objectId"]})
        self._asked.add(key)
        return bool(roots)
