"""Physical input under X11, by XTEST, where the session is headed: at a point that was verified just before.

X has no way to hold an event back until it is known what it hits. So the point is tested twice before (what window the
X server has there, what element the toolkit has there), and once more after; what differs is said.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from deskcert.adapters.base import Action
from deskcert.adapters.linux import words
from deskcert.adapters.linux.application import Application
from deskcert.adapters.linux.bus import AccessBus, Deadline
from deskcert.adapters.linux.facts import Facts
from deskcert.adapters.linux.x11 import Desk, owner_at
from deskcert.contract.evidence import HitTest, Known
from deskcert_schema.errors import AdapterError

__all__ = ["PHYSICAL", "focus_window", "middle", "pointed_at", "pointer", "pressed"]

PHYSICAL: Final = frozenset({"click", "double-click", "triple-click", "right-click", "hover", "scroll"})
"""Commands that go out through the pointer. `press` goes through the keyboard."""
_CLICKS: Final = {"click": (1, 1), "double-click": (1, 2), "triple-click": (1, 3), "right-click": (3, 1)}
_WHEEL: Final = {"up": 4, "down": 5, "left": 6, "right": 7}
_SCREEN: Final = 0
_BETWEEN_S: Final = 0.01
_KEYSYMS: Final = {
    "enter": "Return",
    "space": "space",
    "tab": "Tab",
    "escape": "Escape",
    "backspace": "BackSpace",
    "delete": "Delete",
    "home": "Home",
    "end": "End",
    "pageup": "Prior",
    "pagedown": "Next",
    "arrowleft": "Left",
    "arrowup": "Up",
    "arrowright": "Right",
    "arrowdown": "Down",
    "ctrl": "Control_L",
    "alt": "Alt_L",
    "shift": "Shift_L",
    "meta": "Super_L",
}


def middle(facts: Facts) -> tuple[int, int] | None:
    if not isinstance(facts.box, Known) or min(facts.box.value[2:]) <= 0:
        return None
    x, y, width, height = facts.box.value
    return x + width // 2, y + height // 2


async def pointed_at(bus: AccessBus, desk: Desk, app: Application, target: Facts, deadline: Deadline) -> HitTest:
    """What a pointer at the middle of the target would meet. Raises `ProcessGone`."""
    point = middle(target)
    if point is None:
        return HitTest("unknown")
    try:
        owner = await desk.run(owner_at(*point))
    except AdapterError:
        return HitTest("unknown")
    if owner is None:
        return HitTest("deferred")
    if owner[0] != app.process.pid:
        return HitTest("fail", "window", owner[1] or None)
    return await _element_at(bus, target, point, deadline)


async def _element_at(bus: AccessBus, target: Facts, point: tuple[int, int], deadline: Deadline) -> HitTest:
    """Asked of the target itself: its own part of the tree, by the toolkit's own geometry."""
    found = await bus.ask(target.ref, words.COMPONENT, "Contains", deadline, signature="iiu", body=[*point, _SCREEN])
    if found == Known(True):
        return HitTest("pass")
    return HitTest("fail") if found == Known(False) else HitTest("unknown")


def pointer(action: Action, point: tuple[int, int]) -> Callable[[Any], None]:
    """Moves there, and clicks or turns the wheel. A button that was pressed is always released."""

    def send(display: Any) -> None:
        from Xlib import X
        from Xlib.ext import xtest

        xtest.fake_input(display, X.MotionNotify, x=point[0], y=point[1])
        display.sync()
        button, count = _CLICKS.get(action.command, (0, 0))
        if action.command == "scroll":
            button, count = _WHEEL[action.direction or "down"], action.amount
        for turn in range(count):
            if turn:  # Qt takes two presses within one millisecond for two single clicks
                time.sleep(_BETWEEN_S)
            try:
                xtest.fake_input(display, X.ButtonPress, button)
            finally:
                xtest.fake_input(display, X.ButtonRelease, button)
            display.sync()

    return send


def focus_window(window: int) -> Callable[[Any], None]:
    """Without a window manager nobody else gives a window the keyboard."""

    def send(display: Any) -> None:
        from Xlib import X

        display.create_resource_object("window", window).set_input_focus(X.RevertToParent, X.CurrentTime)
        display.sync()

    return send


def pressed(key: str) -> Callable[[Any], None]:
    """One key, with what is held during it; all of it is released, whatever happens."""

    def send(display: Any) -> None:
        from Xlib import XK, X
        from Xlib.ext import xtest

        names = [part.casefold() for part in key.split("+")]
        codes = []
        for name in names:
            symbol = XK.string_to_keysym(_KEYSYMS.get(name, name.upper() if name[:1] == "f" and name[1:] else name))
            code = display.keysym_to_keycode(symbol)
            if not code:
                raise ValueError(f"this keyboard has no key {name!r}")
            codes.append(code)
        down: list[int] = []
        try:
            for code in codes:
                down.append(code)
                xtest.fake_input(display, X.KeyPress, code)
        finally:
            for code in reversed(down):
                xtest.fake_input(display, X.KeyRelease, code)
            display.sync()

    return send
