"""Where a window is, and how it is moved, sized and brought to the front, by X11, with the read-back of what came.

Without a window manager a window takes exactly the place it is given; with one it may be put elsewhere, or not at all:
so the place is read back, and differences within the tolerance are none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from deskcert.adapters.linux.facts import Box
from deskcert.adapters.linux.x11 import Desk, XWindow, windows_of
from deskcert_schema.errors import AdapterError

__all__ = ["TOLERANCE_PX", "Geometry", "front", "has_keyboard", "managed", "place", "state", "states"]

TOLERANCE_PX: Final = 2
"""A frame, or whole characters, may move an edge so far."""
_SETTLE_S: Final = 0.4
_LOOK_EVERY_S: Final = 0.02
_WM_STATE_ICONIC: Final = 3


@dataclass(frozen=True, slots=True)
class Geometry:
    """`satisfied` within the tolerance; None where the window could not be read any more."""

    asked: Box
    observed: Box | None
    unit: str = "px"
    tolerance: int = TOLERANCE_PX

    @property
    def satisfied(self) -> bool | None:
        if self.observed is None:
            return None
        return all(abs(a - b) <= self.tolerance for a, b in zip(self.asked, self.observed, strict=True))


async def place(desk: Desk, window: XWindow, box: Box) -> Geometry:
    """Moves and sizes it once, then reads back until it fits or the settle time is over. Raises `AdapterError`."""
    await desk.run(_configure(window.id, box))
    until = time.monotonic() + _SETTLE_S
    while True:
        found = await _again(desk, window)
        geometry = Geometry(box, found.box if found is not None else None)
        if geometry.satisfied is not False or time.monotonic() >= until:
            return geometry
        await asyncio.sleep(_LOOK_EVERY_S)


async def _again(desk: Desk, window: XWindow) -> XWindow | None:
    return next((w for w in await desk.run(windows_of(window.pid)) if w.id == window.id), None)


def _configure(window: int, box: Box) -> Callable[[Any], None]:
    def send(display: Any) -> None:
        x, y, width, height = box
        display.create_resource_object("window", window).configure(x=x, y=y, width=width, height=height)
        display.sync()

    return send


async def front(desk: Desk, window: XWindow) -> bool:
    """Raised and given the keyboard; whether it has it then. Raises `AdapterError`."""

    def send(display: Any) -> bool:
        from Xlib import X

        found = display.create_resource_object("window", window.id)
        found.configure(stack_mode=X.Above)
        found.set_input_focus(X.RevertToParent, X.CurrentTime)
        display.sync()
        focus = display.get_input_focus().focus
        return bool(getattr(focus, "id", focus) == window.id)

    return await desk.run(send)


async def has_keyboard(desk: Desk, window: XWindow) -> bool:
    """Raises `AdapterError`."""

    def read(display: Any) -> bool:
        focus = display.get_input_focus().focus
        return bool(getattr(focus, "id", focus) == window.id)

    return await desk.run(read)


async def managed(desk: Desk) -> bool:
    """Whether a window manager runs: without one nothing can be minimised or maximised. Raises `AdapterError`."""

    def read(display: Any) -> bool:
        from Xlib import X

        atom = display.intern_atom("_NET_SUPPORTING_WM_CHECK")
        return display.screen().root.get_full_property(atom, X.AnyPropertyType) is not None

    return await desk.run(read)


async def states(desk: Desk, window: XWindow) -> frozenset[str]:
    """`minimized`, `maximized`, as the window manager says; empty where none said anything. Raises `AdapterError`."""

    def read(display: Any) -> frozenset[str]:
        from Xlib import X

        def values(name: str) -> list[int]:
            kept = found.get_full_property(display.intern_atom(name), X.AnyPropertyType)
            return [int(v) for v in kept.value] if kept is not None else []

        found = display.create_resource_object("window", window.id)
        told = values("_NET_WM_STATE")
        both = [display.intern_atom(f"_NET_WM_STATE_MAXIMIZED_{way}") for way in ("HORZ", "VERT")]
        hidden = values("WM_STATE")[:1] == [_WM_STATE_ICONIC] or display.intern_atom("_NET_WM_STATE_HIDDEN") in told
        words = (("minimized", hidden), ("maximized", all(atom in told for atom in both)))
        return frozenset(word for word, holds in words if holds)

    return await desk.run(read)


async def state(desk: Desk, window: XWindow, wanted: str) -> None:
    """`minimize`, `maximize` or `restore`. Raises `AdapterError` where no window manager could do it."""
    if not await managed(desk):
        raise AdapterError(
            f"no window manager runs on this display, so nothing can {wanted} a window; move or size it instead"
        )
    await desk.run(_asked(window.id, wanted))


def _asked(window: int, wanted: str) -> Callable[[Any], None]:
    def send(display: Any) -> None:
        from Xlib import X
        from Xlib.protocol import event

        root, target = display.screen().root, display.create_resource_object("window", window)
        if wanted == "minimize":
            name, data = "WM_CHANGE_STATE", [_WM_STATE_ICONIC, 0, 0, 0, 0]
        else:
            both = [display.intern_atom(f"_NET_WM_STATE_MAXIMIZED_{way}") for way in ("HORZ", "VERT")]
            name, data = "_NET_WM_STATE", [1 if wanted == "maximize" else 0, *both, 1, 0]
            target.map()
        message = event.ClientMessage(window=target, client_type=display.intern_atom(name), data=(32, data))
        root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
        display.sync()

    return send
