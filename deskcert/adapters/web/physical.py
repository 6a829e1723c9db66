"""Physical input, where the session is headed: the browser's own pointer and keys, which a page cannot tell from a
person's.

E is compared and the way to the target looked at just before; an interceptor in the capture phase compares every event
when it comes, in the target's document and in every other frame, and stops what would arrive elsewhere before the page
sees it. A document that was there before the guard has listeners of its own in front of ours: `late`, until a reload.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from deskcert.adapters.base import Action, Dispatch, DispatchEnd, PointHook
from deskcert.adapters.web.chain import WaysOut
from deskcert.adapters.web.channel import FAILURES, Channel, ChannelTimeout, Liveness
from deskcert.adapters.web.dispatch import Signals, await_first, reported, request_of, written
from deskcert.adapters.web.frames import Frame, Frames
from deskcert.contract.evidence import Evidence, Hit

__all__ = ["POINTED", "Physical"]

POINTED: Final = frozenset({"click", "double-click", "triple-click", "right-click", "hover", "scroll", "drag"})
"""Commands that go out through the pointer; `type` and `press` go through the keyboard."""
_CLICKS: Final = {"click": 1, "double-click": 2, "triple-click": 3, "right-click": 1}
_WHEEL: Final = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_NOTCH: Final = 100
"""CSS pixels."""
_STEPS: Final = 6
"""Moves of a drag: applications look at more than its ends."""
_RELEASE_MS: Final = 1_000
_ENDS: Final = {"right-click": "contextmenu", "hover": "pointermove", "scroll": "wheel", "drag": "mouseup"}
"""The event with which a command has arrived in full; all others: click."""

type Evaluate = Callable[[Frame, str, list[Any], int], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Physical:
    """One action. `input`: to the page, whose pointer and keys it is; `frame`: the target's."""

    evaluate: Evaluate
    ways: WaysOut
    input: Channel
    frame: Frame
    frames: Frames
    signals: Signals
    budget_ms: int
    at: PointHook

    @property
    def alive(self) -> Liveness:
        return self.frame.alive

    @property
    def others(self) -> list[Frame]:
        return [frame for frame in self.frames if frame is not self.frame]

    async def perform(self, node: str, action: Action, expected: Evidence) -> Dispatch:
        """Raises the channel's errors as long as nothing was sent."""
        why = await self._watch_others()
        if why is not None:
            return Dispatch(DispatchEnd.NOT_SENT, reached=False, error=why, late=True)
        try:
            found = await self._armed(node, action, expected)
        finally:
            await self._unwatch_others()
        return replace(found, physical=True)

    async def _armed(self, node: str, action: Action, expected: Evidence) -> Dispatch:
        request = request_of(self.signals.number, action, expected) | {"physical": True}
        armed = json.loads(await self.evaluate(self.frame, "arm", [node, json.dumps(request)], self.budget_ms))
        if armed["end"] is not None:
            return replace(reported(armed, self.signals, expected), late=bool(armed.get("late")))
        if action.command == "type":
            return await self._typed(action, expected)
        points = [await self._point(armed)]
        if armed.get("drop") is not None:
            points.append(await self._point(armed["drop"]))
        if None in points:
            await self.evaluate(self.frame, "disarm", [], self.budget_ms)
            differing = ("hit_test",) if points[0] is None else ("to.hit_test",)
            return Dispatch(DispatchEnd.CHANGED, reached=False, differences=differing)
        return await self._pointed(action, expected, [p for p in points if p is not None])

    async def _point(self, hit: dict[str, Any]) -> tuple[float, float] | None:
        """In the page's own window."""
        if hit.get("at") is None:
            return None
        if self.frame.parent is None:
            return hit["at"][0], hit["at"][1]
        found = {"status": "pass", **hit}
        way = await self.ways.follow(self.frame, found, may_scroll=False, budget_ms=self.budget_ms)
        return way.at if way.status == "pass" else None

    # The pointer

    async def _pointed(self, action: Action, expected: Evidence, points: list[tuple[float, float]]) -> Dispatch:
        events = _events(action, points)
        sent: list[asyncio.Task[Any]] = []
        held = False
        for event in events:
            if action.command == "drag" and event["type"] == "mouseReleased" and not await self._may_drop():
                break
            task = self.input.start("Input.dispatchMouseEvent", event)
            held = {"mousePressed": True, "mouseReleased": False}.get(event["type"], held)
            if not sent:
                await written()
                await self.at("dispatched")
            sent.append(task)
            await await_first(task, self.signals, self.alive, budget_ms=self.budget_ms)
            if not task.done() or self.signals.stopped is not None or self.signals.dialog is not None:
                break
        if held:
            # A button never stays down; where the drag was stopped it goes up where it went down.
            await self._let_go(action, points[0])
        return await self._outcome(sent, action, expected)

    async def _may_drop(self) -> bool:
        try:
            return await self.evaluate(self.frame, "mayDrop", [], self.budget_ms) == "true"
        except FAILURES:
            return False  # the document is gone, or does not answer: nothing is dropped on what is not known

    async def _let_go(self, action: Action, point: tuple[float, float]) -> None:
        """Before the interceptor is put away: what comes of the release is held back like all the rest. Behind a dialog
        it waits, and so does the interceptor."""
        at = {"x": point[0], "y": point[1], "button": _button(action)}
        moved = [{"type": "mouseMoved", **at, "buttons": 1}] if action.command == "drag" else []
        for event in (*moved, {"type": "mouseReleased", **at, "clickCount": 1}):
            task = self.input.start("Input.dispatchMouseEvent", event)
            if self.signals.dialog is None:
                await await_first(task, Signals(self.signals.number), self.alive, budget_ms=_RELEASE_MS)

    async def _outcome(self, sent: list[asyncio.Task[Any]], action: Action, expected: Evidence) -> Dispatch:
        dialog = self.signals.dialog
        reached = tuple(self.signals.reached)
        try:
            if dialog is not None:
                raise ChannelTimeout("a dialog blocks the page")
            for task in sent:
                self.input.result(task)
            found = reported(
                json.loads(await self.evaluate(self.frame, "disarm", [], _RELEASE_MS)), self.signals, expected
            )
            if self.signals.stopped is not None and found.end in (DispatchEnd.COMPLETED, DispatchEnd.NO_ANSWER):
                # Stopped in another frame, of which the target's own document knows nothing.
                end = DispatchEnd.STOPPED if found.events_sent else DispatchEnd.CHANGED
                found = replace(found, end=end, stopped_before=self.signals.stopped, differences=("hit_test",))
        except FAILURES as error:
            found = self._without_report(action, expected, str(error))
        if found.reached or reached:
            await self.at("reached")
        return found

    def _without_report(self, action: Action, expected: Evidence, why: str) -> Dispatch:
        """The document went away, or is blocked, because of the action or not: what its interceptor told decides."""
        seen, signals = tuple(self.signals.passed), self.signals
        reached = bool(seen or signals.reached)
        if signals.stopped is not None and signals.dialog is None:
            end = DispatchEnd.STOPPED if reached else DispatchEnd.CHANGED
            return Dispatch(end, reached, seen, stopped_before=signals.stopped, differences=("hit_test",), error=why)
        whole = seen.count(_ENDS.get(action.command, "click")) >= _CLICKS.get(action.command, 1)
        if whole and signals.dialog is None:
            name = getattr(expected.names.accessible, "value", None)
            return Dispatch(DispatchEnd.COMPLETED, reached, seen, hit=Hit(expected.role, name, same_as_target=True))
        return Dispatch(DispatchEnd.NO_ANSWER, reached, seen, dialog=signals.dialog, error=why)

    # The keyboard

    async def _typed(self, action: Action, expected: Evidence) -> Dispatch:
        """A line end is text here as well, never the Enter key."""
        sent: list[asyncio.Task[Any]] = []
        for character in action.value or "":
            for method, params in _strokes(character):
                task = self.input.start(method, params)
                if not sent:
                    await written()
                    await self.at("dispatched")
                sent.append(task)
                await await_first(task, self.signals, self.alive, budget_ms=self.budget_ms)
                if not task.done() or self.signals.stopped is not None or self.signals.dialog is not None:
                    return await self._outcome(sent, action, expected)
        return await self._outcome(sent, action, expected)

    # The other frames

    async def _watch_others(self) -> str | None:
        """Why not, where one of them cannot be watched."""
        answers = await asyncio.gather(
            *(self.evaluate(f, "watch", [self.signals.number], self.budget_ms) for f in self.others),
            return_exceptions=True,
        )
        if all(answer == "true" for answer in answers):
            return None
        await self._unwatch_others()
        return "a frame of the page was loaded before the guard came to it, or does not answer"

    async def _unwatch_others(self) -> None:
        works = (self.evaluate(f, "unwatch", [], _RELEASE_MS) for f in self.others)
        await asyncio.gather(*works, return_exceptions=True)


def _button(action: Action) -> str:
    return "right" if action.command == "right-click" else "left"


def _events(action: Action, points: list[tuple[float, float]]) -> list[dict[str, Any]]:
    """What the browser is told, in order."""
    x, y = points[0]
    at: dict[str, Any] = {"x": x, "y": y}
    move = {"type": "mouseMoved", **at}
    match action.command:
        case "hover":
            return [{**move, "x": x + 1}, move]
        case "scroll":
            dx, dy = _WHEEL[action.direction or "down"]
            by = {"deltaX": dx * _NOTCH * action.amount, "deltaY": dy * _NOTCH * action.amount}
            return [move, {"type": "mouseWheel", **at, **by}]
        case "drag":
            return [move, *_dragged(points[0], points[1])]
        case _:
            button = _button(action)
            clicks = [
                {"type": kind, **at, "button": button, "buttons": 1, "clickCount": n}
                for n in range(1, _CLICKS[action.command] + 1)
                for kind in ("mousePressed", "mouseReleased")
            ]
            return [move, *clicks]


def _dragged(begin: tuple[float, float], end: tuple[float, float]) -> list[dict[str, Any]]:
    held = {"button": "left", "buttons": 1}
    steps = [
        {
            "type": "mouseMoved",
            "x": begin[0] + (end[0] - begin[0]) * n / _STEPS,
            "y": begin[1] + (end[1] - begin[1]) * n / _STEPS,
        }
        for n in range(1, _STEPS + 1)
    ]
    pressed = {"type": "mousePressed", "x": begin[0], "y": begin[1], "clickCount": 1, **held}
    released = {"type": "mouseReleased", "x": end[0], "y": end[1], "clickCount": 1, **held}
    return [pressed, *({**step, **held} for step in steps), {**steps[-1], **held, "x": end[0] + 1}, released]


def _strokes(character: str) -> list[tuple[str, dict[str, Any]]]:
    """One character, with its keys where a keyboard has it."""
    if character == "\n" or len(character.encode("utf-16-le")) != 2:
        return [("Input.insertText", {"text": character})]
    key = {"key": character, "windowsVirtualKeyCode": ord(character.upper()) if character.isascii() else 0}
    down = {"type": "keyDown", "text": character, "unmodifiedText": character, **key}
    return [("Input.dispatchKeyEvent", down), ("Input.dispatchKeyEvent", {"type": "keyUp", **key})]
