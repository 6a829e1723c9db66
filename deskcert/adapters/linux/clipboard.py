"""The clipboard under X11: its text is read from whoever owns it; to set it, one owns it for as long as one lives."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from deskcert_schema.errors import AdapterError

__all__ = ["Clipboard", "text_of_clipboard"]

_SELECTION: Final = "CLIPBOARD"
_TARGETS: Final = ("UTF8_STRING", "STRING")
_POLL_S: Final = 0.01
_MOST_BYTES: Final = 1_000_000


def text_of_clipboard(*, budget_s: float) -> Callable[[Any], str | None]:
    """None: nobody owns it, or what it holds is no text. An owner that does not answer raises `AdapterError`."""

    def read(display: Any) -> str | None:
        from Xlib import X

        selection, wanted = display.intern_atom(_SELECTION), display.intern_atom("UTF8_STRING")
        if display.get_selection_owner(selection) == X.NONE:
            return None
        window = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        place = display.intern_atom("DESKCERT_CLIPBOARD")
        try:
            window.convert_selection(selection, wanted, place, X.CurrentTime)
            display.flush()
            until = time.monotonic() + budget_s
            while time.monotonic() < until:
                if not display.pending_events():
                    time.sleep(_POLL_S)
                    continue
                event = display.next_event()
                if event.type == X.SelectionNotify and event.requestor.id == window.id:
                    if event.property == X.NONE:
                        return None
                    found = window.get_full_property(place, X.AnyPropertyType, sizehint=_MOST_BYTES)
                    value = found.value if found is not None else b""
                    return bytes(value).decode("utf-8", "replace") if isinstance(value, bytes) else None
        finally:
            window.destroy()
            display.flush()
        raise AdapterError("the program that owns the clipboard did not answer in time")

    return read


class Clipboard:
    """Owns the clipboard from `set` until `close`, or until another program takes it."""

    def __init__(self, display: str | None) -> None:
        self._name = display
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def set(self, text: str) -> None:
        """Blocks until it is owned. Raises `AdapterError`."""
        self.close()
        self._over = threading.Event()
        owned, failed = threading.Event(), list[Exception]()
        self._thread = threading.Thread(target=self._serve, args=(text, owned, failed, self._over), daemon=True)
        self._thread.start()
        if not owned.wait(5) or failed:
            raise AdapterError(f"the clipboard could not be taken: {failed[0] if failed else 'no answer'}")

    def _serve(self, text: str, owned: threading.Event, failed: list[Exception], over: threading.Event) -> None:
        from Xlib import X
        from Xlib.display import Display

        display = None
        try:
            display = Display(self._name)
            window = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
            selection = display.intern_atom(_SELECTION)
            window.set_selection_owner(selection, X.CurrentTime)
            display.sync()
            owned.set()
            while not over.is_set():
                if not display.pending_events():
                    over.wait(_POLL_S)
                    continue
                event = display.next_event()
                if event.type == X.SelectionClear:
                    return
                if event.type == X.SelectionRequest:
                    _answer(display, event, text)
        except Exception as error:  # in a thread of its own: whatever it is, `set` raises it
            failed.append(error)
            owned.set()
        finally:
            if display is not None:
                with contextlib.suppress(Exception):  # the server may be gone
                    display.close()

    def close(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(2)
        self._thread = None


def _answer(display: Any, request: Any, text: str) -> None:
    from Xlib import X, Xatom
    from Xlib.protocol import event

    asked, place = request.target, request.property or request.target
    targets = [display.intern_atom(name) for name in _TARGETS]
    if asked == display.intern_atom("TARGETS"):
        request.requestor.change_property(place, Xatom.ATOM, 32, targets)
    elif asked in targets:
        request.requestor.change_property(place, asked, 8, text.encode())
    else:
        place = X.NONE
    told = event.SelectionNotify(
        time=request.time, requestor=request.requestor, selection=request.selection, target=asked, property=place
    )
    request.requestor.send_event(told)
    display.flush()
