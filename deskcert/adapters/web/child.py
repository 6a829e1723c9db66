"""The session of a process inside a page's own session.

Playwright attaches to a frame's process when its document is there already, which is too late to hear events before
the page does. The browser tells of the process earlier and holds its first document back; messages to it then go
through the session that was told, as texts in messages. (Playwright cannot address a child of a flattened session.)
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from typing import Any

__all__ = ["ChildSession"]


class ChildSession:
    """Sends and tells like Playwright's `CDPSession`; `parent` is one, or another of these."""

    def __init__(self, parent: Any, session_id: str) -> None:
        self._parent, self._id = parent, session_id
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._handlers: defaultdict[str, list[Callable[[dict[str, Any]], None]]] = defaultdict(list)

    def on(self, event: str, handler: Callable[[dict[str, Any]], None]) -> None:
        self._handlers[event].append(handler)

    async def send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        message = json.dumps({"id": number, "method": method, "params": params})
        try:
            await self._parent.send("Target.sendMessageToTarget", {"sessionId": self._id, "message": message})
            return await answer
        finally:
            del self._waiting[number]
            answer.cancel()

    def receive(self, text: str) -> None:
        """A message of the process: an answer, or an event."""
        message = json.loads(text)
        if "method" in message:
            for handler in tuple(self._handlers[message["method"]]):
                handler(message.get("params", {}))
            return
        answer = self._waiting.get(message.get("id"))
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(RuntimeError(message["error"].get("message", "refused")))
        else:
            answer.set_result(message.get("result", {}))

    def close(self) -> None:
        """The browser let go of it: no answer comes any more."""
        for answer in tuple(self._waiting.values()):
            if not answer.done():
                answer.set_exception(RuntimeError("Target closed"))
