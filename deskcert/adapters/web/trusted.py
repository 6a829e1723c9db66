"""Trusted keys, where the mode allows them: the browser's own input, so the page cannot tell them from a person's.

They go to whatever has the focus. E is compared and the focus taken just before; an interceptor in the capture phase,
in documents that were loaded under the guard, stops a key that arrives elsewhere before the page sees it.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any, Final

from deskcert.adapters.base import Action, Dispatch, DispatchEnd, PointHook
from deskcert.adapters.web.channel import FAILURES, Channel, ChannelLost, ChannelRefused, ChannelTimeout, Liveness
from deskcert.adapters.web.dispatch import Signals, await_first, reported, request_of, written
from deskcert.adapters.web.script import call_function
from deskcert.contract.evidence import Evidence

__all__ = ["TRUSTED_KEYS", "trusted_press"]

_MODIFIERS: Final = {"alt": 1, "ctrl": 2, "meta": 4, "shift": 8}
_NAMED: Final = {
    "enter": ("Enter", "Enter", 13),
    "space": (" ", "Space", 32),
    "tab": ("Tab", "Tab", 9),
    "escape": ("Escape", "Escape", 27),
    "backspace": ("Backspace", "Backspace", 8),
    "delete": ("Delete", "Delete", 46),
    "home": ("Home", "Home", 36),
    "end": ("End", "End", 35),
    "pageup": ("PageUp", "PageUp", 33),
    "pagedown": ("PageDown", "PageDown", 34),
    "arrowleft": ("ArrowLeft", "ArrowLeft", 37),
    "arrowup": ("ArrowUp", "ArrowUp", 38),
    "arrowright": ("ArrowRight", "ArrowRight", 39),
    "arrowdown": ("ArrowDown", "ArrowDown", 40),
    **{f"f{n}": (f"F{n}", f"F{n}", 111 + n) for n in range(1, 13)},
    **{c: (c, f"Key{c.upper()}", ord(c.upper())) for c in "abcdefghijklmnopqrstuvwxyz"},
    **{c: (c, f"Digit{c}", ord(c)) for c in "0123456789"},
}
TRUSTED_KEYS: Final = frozenset(_NAMED)
"""The last part of a combination; before it any of alt, ctrl, meta, shift."""


def _events(key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    *held, name = key.split("+")
    modifiers = sum(_MODIFIERS[m] for m in held)
    shown, code, virtual = _NAMED[name]
    shown = shown.upper() if len(shown) == 1 and modifiers & _MODIFIERS["shift"] else shown
    event = {"key": shown, "code": code, "windowsVirtualKeyCode": virtual, "modifiers": modifiers}
    # Only a key without ctrl, alt or meta writes; Chromium needs the text to do so, and to press what Enter presses.
    writes = (len(shown) == 1 or name == "enter") and modifiers in (0, _MODIFIERS["shift"])
    text = "\r" if name == "enter" else shown
    down = event | ({"type": "keyDown", "text": text} if writes else {"type": "rawKeyDown"})
    return down, event | {"type": "keyUp"}


async def trusted_press(
    channel: Channel,
    alive: Liveness,
    signals: Signals,
    *,
    keys: Channel,
    context: int,
    node: str,
    action: Action,
    expected: Evidence,
    budget_ms: int,
    at: PointHook,
) -> Dispatch:
    """`channel`: to the element's process; `keys`: to the page, whose input goes to whatever has the focus."""

    async def call(function: str, *args: str) -> Any:
        params = {
            "functionDeclaration": call_function(function),
            "executionContextId": context,
            "arguments": [{"value": a} for a in args],
            "returnByValue": True,
        }
        return json.loads(
            (await channel.call("Runtime.callFunctionOn", params, budget_ms=budget_ms))["result"]["value"]
        )

    try:
        armed = await call("arm", node, json.dumps(request_of(signals.number, action, expected)))
    except FAILURES as error:
        return Dispatch(DispatchEnd.NOT_SENT, reached=False, error=str(error))
    if armed["end"] is not None:
        return replace(reported(armed, signals, expected), late=bool(armed.get("late")))
    down, up = _events(action.key or "")
    task = keys.start("Input.dispatchKeyEvent", down)
    await written()
    await at("dispatched")
    await await_first(task, signals, alive, budget_ms=budget_ms)
    released = keys.start("Input.dispatchKeyEvent", up)  # whatever came of it: no key stays held
    try:
        keys.result(task)
        await keys.answer(released, budget_ms=budget_ms)
        found = reported(await call("disarm"), signals, expected)
    except (ChannelTimeout, ChannelLost, ChannelRefused) as error:
        reached = bool(signals.reached)
        # A key that was taken may have led away from its document; that it was is known from both calls' answers.
        done = reached and signals.dialog is None and _answered(task) and _answered(released)
        end = DispatchEnd.COMPLETED if done else DispatchEnd.NO_ANSWER
        why = None if done else str(error)
        return Dispatch(end, reached, tuple(signals.reached), dialog=signals.dialog, error=why, physical=True)
    if found.reached:
        await at("reached")
    return replace(found, physical=True)


def _answered(task: asyncio.Task[Any]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
