"""(7) Dispatch: one call, its answer, and everything that can happen instead of an answer.

The call is made once. What then comes first decides: the answer, a dialog (which blocks the page, so the answer cannot
come), the death of page or browser, or the end of the budget. `reached` arrives through a binding of our world, out of
the task, and is known even when the answer never comes.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from deskcert.adapters.base import Action, Dialog, Dispatch, DispatchEnd, PointHook
from deskcert.adapters.web.channel import Channel, ChannelLost, ChannelRefused, ChannelTimeout, Liveness
from deskcert.adapters.web.script import action_function
from deskcert.contract.evidence import Evidence, Hit

__all__ = [
    "COMMANDS",
    "KEYS",
    "POINTER_LIKE",
    "Signals",
    "await_first",
    "evidence_from",
    "perform",
    "reported",
    "request_of",
    "written",
]

KEYS: Final = frozenset({"Enter", "Space", " ", "ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"})
"""Keys that are emulated with their default action; others need trusted keys."""

COMMANDS: Final = frozenset(
    (
        *("click", "double-click", "triple-click", "right-click", "hover", "focus", "press", "set-value", "type"),
        *("clear", "select", "check", "uncheck", "toggle", "expand", "collapse", "scroll", "scroll-to", "drag"),
    )
)
"""Commands that are one task in the page."""

POINTER_LIKE: Final = frozenset(
    (
        *("click", "double-click", "triple-click", "right-click", "hover"),
        *("check", "uncheck", "toggle", "expand", "collapse", "drag"),
    )
)
"""Those that send a pointer's events (the same ones as in evidence.js)."""

_REACHED_GRACE_S: Final = 0.05


@dataclass(slots=True)
class Signals:
    """What the browser tells out of the task while a dispatch is under way."""

    number: int
    reached: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    """Events of physical input that the interceptor let through, as it told them."""
    stopped: str | None = None
    """The first that it did not."""
    dialog: Dialog | None = None
    _event: asyncio.Event = field(default_factory=asyncio.Event)

    def tell_reached(self, event: str) -> None:
        self.reached.append(event)
        self._event.set()

    def tell(self, note: Mapping[str, Any]) -> None:
        """What our world told, in the target's document or in another frame."""
        if "reached" in note:
            self.tell_reached(note["reached"])
        elif "physical" in note:
            self.passed.append(note["physical"])
        elif self.stopped is None:
            self.stopped = note.get("stopped") or note.get("strayed")
            self._event.set()

    def tell_dialog(self, dialog: Dialog) -> None:
        self.dialog = dialog
        self._event.set()

    async def next(self) -> None:
        await self._event.wait()
        self._event.clear()


def evidence_from(
    raw: Mapping[str, Any], compared: str, *, document: str, node: str, other: str | None = None
) -> Evidence:
    """E from the page's JSON. The digest is ours: over exactly the text that a dispatch would compare. `other`: the id
    of the element that a drag ends on."""
    digest = sha256(compared.encode("utf-8", "surrogatepass")).hexdigest()
    ours = {"document": document, "digest": digest}
    more = {"other": {**raw["other"], **ours, "node": other}} if raw.get("other") else {}
    return Evidence.from_json({**raw, **ours, **more, "node": node, "compared": compared})


async def await_first(
    task: asyncio.Task[Any],
    signals: Signals,
    alive: Liveness,
    *,
    budget_ms: int,
    announce: Callable[[], Any] | None = None,
) -> None:
    """Returns when the call is over, a dialog opened, the page died, or the budget ended. `announce` is awaited once,
    when the target was reached; its time does not count."""
    deadline = time.monotonic() + budget_ms / 1000
    told = announce is None
    gone = asyncio.ensure_future(alive.wait())
    try:
        while True:
            if signals.reached and not told and announce is not None:
                told, before = True, time.monotonic()
                await announce()
                deadline += time.monotonic() - before
            left = deadline - time.monotonic()
            if task.done() or signals.dialog is not None or gone.done() or left <= 0:
                return
            news = asyncio.ensure_future(signals.next())
            try:
                await asyncio.wait({task, gone, news}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
    finally:
        gone.cancel()


async def written() -> None:
    """Lets a call that was just started get as far as the driver's pipe."""
    for _ in range(3):
        await asyncio.sleep(0)


def request_of(number: int, action: Action, expected: Evidence) -> dict[str, Any]:
    """What our world is asked. Paths of files stay here."""
    return {
        "number": number,
        "command": action.command,
        "value": action.value if action.command != "upload" else None,
        "key": action.key,
        "direction": action.direction,
        "amount": action.amount,
        "to": action.to.node.partition("@")[0] if action.to is not None else None,
        "expected": expected.compared,
    }


async def perform(
    channel: Channel,
    alive: Liveness,
    signals: Signals,
    *,
    context: int,
    node: str,
    action: Action,
    expected: Evidence,
    budget_ms: int,
    at: PointHook,
) -> Dispatch:
    request = request_of(signals.number, action, expected)
    task = channel.start(
        "Runtime.callFunctionOn",
        {
            "functionDeclaration": action_function(signals.number),
            "executionContextId": context,
            "arguments": [{"value": node}, {"value": json.dumps(request)}],
            "returnByValue": True,
            "userGesture": True,
        },
    )
    await written()
    await at("dispatched")
    announced = False

    async def announce() -> None:
        nonlocal announced
        announced = True
        await at("reached")

    await await_first(task, signals, alive, budget_ms=budget_ms, announce=announce)
    if signals.dialog is not None and not signals.reached:
        # The dialog's event and the receipt come from two processes; give the second one a moment.
        await await_first(task, Signals(signals.number), alive, budget_ms=int(_REACHED_GRACE_S * 1000))
    found = _outcome(channel, task, signals, expected)
    if found.reached and not announced:
        await announce()
    return found


def _outcome(channel: Channel, task: asyncio.Task[Any], signals: Signals, expected: Evidence) -> Dispatch:
    reached = bool(signals.reached)
    try:
        answer = channel.result(task)
    except (ChannelTimeout, ChannelLost) as error:
        return Dispatch(
            DispatchEnd.NO_ANSWER, reached, tuple(signals.reached), dialog=signals.dialog, error=_why(signals, error)
        )
    except ChannelRefused as error:
        # The browser did not find the context: the document is gone and nothing ran in it.
        end = DispatchEnd.NO_ANSWER if reached else DispatchEnd.NOT_SENT
        return Dispatch(end, reached, tuple(signals.reached), error=str(error))
    if "exceptionDetails" in answer:
        text = answer["exceptionDetails"].get("exception", {}).get("description") or answer["exceptionDetails"]["text"]
        # Our function ran, so events may have gone out before it failed.
        return Dispatch(DispatchEnd.NO_ANSWER, reached, tuple(signals.reached), error=text)
    return reported(json.loads(answer["result"]["value"]), signals, expected)


def _why(signals: Signals, error: Exception) -> str:
    return "a dialog blocks the page" if signals.dialog is not None else str(error)


def _live(raw: Mapping[str, Any], compared: str, expected: Evidence) -> Evidence:
    other = expected.other.node if expected.other is not None else None
    return evidence_from(raw, compared, document=expected.document, node=expected.node, other=other)


def reported(raw: Mapping[str, Any], signals: Signals, expected: Evidence) -> Dispatch:
    live, hit = raw.get("live"), raw.get("hit")
    return Dispatch(
        end=DispatchEnd(raw["end"]),
        reached=bool(raw.get("reached")) or bool(signals.reached),
        events_sent=tuple(raw.get("events_sent", ())),
        stopped_before=raw.get("stopped_before"),
        differences=tuple(raw.get("differences", ())),
        live=_live(live, raw["compared"], expected) if live else None,
        hit=Hit(hit["role"], hit["name"], hit["same_as_target"]) if hit else None,
        dialog=signals.dialog,
        preparatory_scroll=bool(raw.get("preparatory_scroll")),
        error=raw.get("error"),
    )
