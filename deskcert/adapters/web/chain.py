"""The way out of a frame. A pointer gets to what stands in a frame only where every document around leaves it free. A
document may ask those of its own origin; the rest are asked here, each in its own place, from the inside out.

These looks are of several documents, so they are no single task: they come right before the task that acts, which
compares what its own document can tell, event by event.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deskcert.adapters.web.channel import FAILURES, ChannelRefused
from deskcert.adapters.web.dispatch import POINTER_LIKE
from deskcert.adapters.web.frames import Frame, Frames
from deskcert.adapters.web.script import call_function

__all__ = ["Way", "WaysOut"]

type Evaluate = Callable[[Frame, str, list[Any], int], Awaitable[str]]
type ContextOf = Callable[[Frame, int], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Way:
    """`status` as of a hit test. `at`: the point in the page's own window, where the way is free."""

    status: str
    occluder_role: str | None = None
    occluder_name: str | None = None
    scrolled: bool = False
    at: tuple[float, float] | None = None


class WaysOut:
    def __init__(self, frames: Frames, evaluate: Evaluate, context_of: ContextOf) -> None:
        self._frames, self._evaluate, self._context_of = frames, evaluate, context_of

    async def owner_of(self, frame: Frame, around: Frame, budget_ms: int) -> str:
        """The id, in the document around, of the element that holds the frame. Raises the channel's errors."""
        if frame.owner is not None and frame.owner[0] == around.loader:
            return frame.owner[1]
        channel = around.channel
        found = await channel.call("DOM.getFrameOwner", {"frameId": frame.id}, budget_ms=budget_ms)
        context = await self._context_of(around, budget_ms)
        world = {"backendNodeId": found["backendNodeId"], "executionContextId": context}
        node = (await channel.call("DOM.resolveNode", world, budget_ms=budget_ms))["object"]["objectId"]
        asked = {
            "objectId": node,
            "functionDeclaration": call_function("id"),
            "arguments": [{"objectId": node}],
            "returnByValue": True,
        }
        answer = await channel.call("Runtime.callFunctionOn", asked, budget_ms=budget_ms)
        if "exceptionDetails" in answer:
            raise ChannelRefused(answer["exceptionDetails"]["text"])
        frame.owner = (around.loader, str(answer["result"]["value"]))
        return frame.owner[1]

    async def follow(self, frame: Frame, found: Mapping[str, Any], *, may_scroll: bool, budget_ms: int) -> Way:
        """`found` is what the hit test in the frame's own document said. No answer leaves it unknown."""
        scrolled = bool(found.get("scrolled"))
        at: Frame | None = frame
        while found["status"] == "pass":
            for _ in range(found["out"]):
                at = None if at is None else self._frames.around(at)
            if at is None:
                return Way("unknown", scrolled=scrolled)
            around = self._frames.around(at)
            x, y = found["beyond"]
            if around is None:
                return Way("pass" if at is self._frames.main else "unknown", scrolled=scrolled, at=(x, y))
            try:
                owner = await self.owner_of(at, around, budget_ms)
                found = json.loads(await self._evaluate(around, "through", [owner, x, y, may_scroll], budget_ms))
            except FAILURES:
                return Way("unknown", scrolled=scrolled)
            scrolled = scrolled or bool(found.get("scrolled"))
            at = around
        return Way(found["status"], found.get("occluder_role"), found.get("occluder_name"), scrolled)

    async def place(self, frame: Frame, box: Sequence[float], budget_ms: int) -> list[float]:
        """Where a box of the frame's document is in the page's own window. Raises the channel's errors."""
        at, found = frame, list(box)
        while (around := self._frames.around(at)) is not None:
            owner = await self.owner_of(at, around, budget_ms)
            found = json.loads(await self._evaluate(around, "placed", [owner, json.dumps(found)], budget_ms))
            at = around
        return found

    async def add(self, frame: Frame, raw: dict[str, Any], budget_ms: int) -> None:
        """To a look at an element in a frame, what the documents around say."""
        hit = raw["evidence"]["hit_test"]
        if hit["status"] != "pass" or frame.parent is None:
            return
        found = {"status": "pass", "out": raw["out"], "beyond": raw["beyond"]}
        way = await self.follow(frame, found, may_scroll=False, budget_ms=budget_ms)
        hit |= {"status": way.status, "occluder_role": way.occluder_role, "occluder_name": way.occluder_name}

    async def reveal(self, frame: Frame, node: str, command: str, budget_ms: int) -> tuple[bool, bool]:
        """Right before an act in a frame: whether the way to it is free in the documents around, after scrolling if
        need be; and whether something was scrolled. Raises the channel's errors."""
        if frame.parent is None or command not in POINTER_LIKE:
            return True, False
        found = json.loads(await self._evaluate(frame, "reveal", [node], budget_ms))
        if found["status"] != "pass":
            return True, bool(found.get("scrolled"))  # the act itself finds the same, and says what covers it
        way = await self.follow(frame, found, may_scroll=True, budget_ms=budget_ms)
        return way.status == "pass", way.scrolled
