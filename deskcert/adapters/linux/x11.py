"""What AT-SPI does not give, over X11: which windows are modal and where they are, input by XTEST, pictures.

Every call here blocks; `Display.run` takes it to a thread, with a deadline. Wayland shows none of this to a client: an
X server (or Xwayland, for programs on it) is what `DISPLAY` must name.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import DetailKind

__all__ = ["Desk", "XWindow", "owner_at", "windows_of"]

_CLOSE_S: Final = 0.2
_DEEPEST: Final = 4
_VIEWABLE: Final = 2


@dataclass(frozen=True, slots=True)
class XWindow:
    """A top-level window of a program, as the X server and its properties tell."""

    id: int
    title: str
    pid: int
    box: tuple[int, int, int, int]
    """x, y, width, height in pixels of the screen, without a frame."""
    modal: bool
    shown: bool


class Desk:
    """One connection to an X server, opened when it is first needed."""

    def __init__(self, display: str | None) -> None:
        self._name = display
        self._connection: Any = None
        self._one_at_a_time = threading.Lock()

    async def run[T](self, what: Callable[[Any], T], *, budget_s: float = 1.0) -> T:
        """`what` gets the connection. Raises `AdapterError` when there is none, or no answer.

        A thread of its own for each call: a server that hangs keeps its thread for ever, and a pool's would run out.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def settle(error: AdapterError | None, found: Any = None) -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(found)

        def work() -> None:
            error, found = self._locked(what, budget_s)
            with contextlib.suppress(RuntimeError):  # nobody waits any more, and the loop is closed
                loop.call_soon_threadsafe(settle, error, found)

        threading.Thread(target=work, daemon=True).start()
        try:
            async with asyncio.timeout(budget_s):
                return await answer
        except TimeoutError:
            raise _silent() from None

    def _locked(self, what: Callable[[Any], Any], budget_s: float) -> tuple[AdapterError | None, Any]:
        if not self._one_at_a_time.acquire(timeout=budget_s):
            return _silent(), None
        try:
            return None, what(self._open())
        except AdapterError as error:
            return error, None
        except Exception as error:  # Xlib raises its own kinds, OSError and bare strings of the server
            return _unusable(error), None
        finally:
            self._one_at_a_time.release()

    def _open(self) -> Any:
        if self._connection is None:
            from Xlib.display import Display

            self._connection = Display(self._name)
            # A window may go away between two questions: that is an answer, and nothing to print.
            self._connection.set_error_handler(lambda *_: None)
        return self._connection

    def close(self) -> None:
        """Leaves a server that hangs alone: the connection ends with the process."""
        if not self._one_at_a_time.acquire(timeout=_CLOSE_S):
            return
        try:
            connection, self._connection = self._connection, None
            if connection is not None:
                with contextlib.suppress(Exception):  # as above: the server may be gone
                    connection.close()
        finally:
            self._one_at_a_time.release()


def _silent() -> AdapterError:
    return AdapterError("the X server did not answer in time", kind=DetailKind.COMPONENT_LOST)


def _unusable(error: Exception) -> AdapterError:
    return AdapterError(
        f"X11 cannot be used here ({type(error).__name__}: {error}); physical input, window geometry and pictures need "
        "an X server, named by DISPLAY",
        kind=DetailKind.COMPONENT_LOST,
    )


def windows_of(pid: int) -> Callable[[Any], tuple[XWindow, ...]]:
    """The program's windows that are on the screen or were, in stacking order, the topmost last."""

    def read(display: Any) -> tuple[XWindow, ...]:
        root = display.screen().root
        found = (_window(display, root, w) for w in _tree(root, 0))
        return tuple(w for w in found if w is not None and w.pid == pid)

    return read


def owner_at(x: int, y: int) -> Callable[[Any], tuple[int, str] | None]:
    """Process id and title of what a pointer at this point would meet; None: the bare screen."""

    def read(display: Any) -> tuple[int, str] | None:
        root = display.screen().root
        for window in reversed(root.query_tree().children):
            attributes = window.get_attributes()
            place = window.get_geometry()
            inside = 0 <= x - place.x < place.width and 0 <= y - place.y < place.height
            # 2 is InputOnly: such a window takes the input, and shows nothing.
            if attributes.map_state != _VIEWABLE or not inside:
                continue
            for candidate in (window, *_tree(window, 1)):
                pid = _property(display, candidate, "_NET_WM_PID")
                if pid:
                    return int(pid[0]), title_of(display, candidate)
            return 0, title_of(display, window)
        return None

    return read


def _tree(window: Any, depth: int) -> Iterator[Any]:
    """A window manager puts its own frames between the root and a program's windows."""
    if depth >= _DEEPEST:
        return
    from Xlib.error import XError

    try:
        children = window.query_tree().children
    except XError:  # it went away
        return
    for child in children:
        yield child
        yield from _tree(child, depth + 1)


def _window(display: Any, root: Any, window: Any) -> XWindow | None:
    from Xlib.error import XError

    try:
        pid = _property(display, window, "_NET_WM_PID")
        if not pid:
            return None
        place, attributes = window.get_geometry(), window.get_attributes()
        at = root.translate_coords(window, 0, 0)
        modal = display.intern_atom("_NET_WM_STATE_MODAL") in _property(display, window, "_NET_WM_STATE")
    except XError:  # it went away
        return None
    box = (int(at.x), int(at.y), int(place.width), int(place.height))
    return XWindow(window.id, title_of(display, window), int(pid[0]), box, modal, attributes.map_state == _VIEWABLE)


def title_of(display: Any, window: Any) -> str:
    title = _bytes(display, window, "_NET_WM_NAME") or _bytes(display, window, "WM_NAME")
    return title.decode("utf-8", "replace")


def _property(display: Any, window: Any, name: str) -> Any:
    from Xlib import X

    found = window.get_full_property(display.intern_atom(name), X.AnyPropertyType)
    return found.value if found is not None else ()


def _bytes(display: Any, window: Any, name: str) -> bytes:
    value = _property(display, window, name)
    return value if isinstance(value, bytes) else b""
