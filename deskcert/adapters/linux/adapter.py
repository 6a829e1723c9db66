"""`LinuxAdapter`: one guarded application on a Linux desktop, over AT-SPI. Only `AdapterError` leaves."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from deskcert.adapters.base import (
    Action,
    Dialog,
    Dispatch,
    DispatchEnd,
    Gone,
    Handle,
    Navigation,
    ObserveOptions,
    PointHook,
    Probed,
    RawObservation,
    RequestSeen,
    Unreadable,
    WindowState,
)
from deskcert.adapters.linux import words
from deskcert.adapters.linux.application import Application, AppSelector, find
from deskcert.adapters.linux.bus import AccessBus, Deadline, ProcessGone
from deskcert.adapters.linux.desktop import LinuxDesktop, Programs
from deskcert.adapters.linux.dispatch import Dispatcher
from deskcert.adapters.linux.evidence import Look
from deskcert.adapters.linux.facts import Facts
from deskcert.adapters.linux.picture import framed, png, taken
from deskcert.adapters.linux.reading import Reader, bounds_showing, refs_of
from deskcert.adapters.linux.tree import Place, flat
from deskcert.adapters.linux.walk import Walk
from deskcert.adapters.linux.words import State
from deskcert.adapters.linux.x11 import Desk, windows_of
from deskcert.contract.evidence import Evidence, Known, Unknown
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import DetailKind

__all__ = ["LinuxAdapter"]

_LOOK_EVERY_S: Final = 0.05
_WINDOW_MS: Final = 1_000


class LinuxAdapter:
    """Implements `deskcert.adapters.base.Adapter`. Make one with `open`."""

    def __init__(
        self,
        bus: AccessBus,
        selector: AppSelector,
        app: Application,
        *,
        headed: bool,
        display: str | None = None,
        programs: Programs | None = None,
    ) -> None:
        self._bus, self._selector, self._app = bus, selector, app
        self._headed, self._desk = headed, Desk(display)
        self.desktop = LinuxDesktop(bus, self._desk, display, lambda: self._app, programs or Programs())
        self._places: dict[str, Place] = {}

    @classmethod
    async def open(
        cls,
        selector: AppSelector,
        *,
        bus_address: str | None = None,
        display: str | None = None,
        headed: bool = False,
        wait_ms: int = 10_000,
        programs: Programs | None = None,
    ) -> LinuxAdapter:
        """Waits up to `wait_ms` for the application. `programs`: what may be launched; none by default. Raises
        `AdapterError` when it does not come, or comes twice."""
        bus = await AccessBus.connect(bus_address)
        deadline = Deadline(wait_ms)
        try:
            while True:
                app = await find(bus, selector, Deadline(min(2_000.0, max(100.0, deadline.left_s() * 1000))))
                if app is not None:
                    return cls(bus, selector, app, headed=headed, display=display, programs=programs)
                if deadline.left_s() <= 0:
                    raise _absent(selector)
                await asyncio.sleep(_LOOK_EVERY_S)
        except BaseException:
            await bus.close()
            raise

    # Observing

    async def observe(self, options: ObserveOptions) -> RawObservation:
        """The whole application. Raises `AdapterError`: it is not there, or does not answer at all."""
        started = time.monotonic()
        deadline = Deadline(options.budget_ms)
        app = await self._current(deadline)
        walk = Walk(self._bus, app, options, deadline)
        try:
            root = await walk.run()
        except ProcessGone as error:
            raise AdapterError("the application ended while it was read", kind=DetailKind.PROCESS_CHANGED) from error
        if not root.children and (not isinstance(root.facts.children, Known) or walk.reasons):
            raise AdapterError(
                f"the application did not answer within {options.budget_ms} ms", kind=DetailKind.OBSERVATION_INCOMPLETE
            )
        tree = flat(root, app, headed=self._headed)
        self._places.update(tree.places)
        took = int((time.monotonic() - started) * 1_000_000)
        return RawObservation(_window(app, list(tree.windows)), tree.nodes, not walk.reasons, walk.reasons, took)

    async def _current(self, deadline: Deadline) -> Application:
        """The run that is guarded; a program that was started again is found by the same selector."""
        self._check_bus()
        if self._app.process.alive:
            return self._app
        latest = deadline.left_s() / 2
        while True:
            found = await find(self._bus, self._selector, deadline)
            if found is not None or deadline.left_s() <= latest:
                break
            await asyncio.sleep(_LOOK_EVERY_S)  # it may be on its way back
        if found is None:
            raise _absent(self._selector)
        if found.generation != self._app.generation:
            self._places.clear()
        self._app = found
        return found

    async def probe(self, handle: Handle, action: Action, *, budget_ms: int) -> Probed:
        place = self._place(handle)
        if not isinstance(place, Place):
            return place
        looked = await Look(self._bus, self._desk, self._app, place, headed=self._headed).at(
            action, Deadline(budget_ms)
        )
        return looked.probed

    def _place(self, handle: Handle) -> Place | Gone | Unreadable:
        if handle.document != self._app.generation or not self._app.process.alive:
            return Gone("process_changed")
        if self._bus.lost:
            return Unreadable("the accessibility bus is gone")
        return self._places.get(handle.node) or Unreadable("this session has not observed the element")

    # Acting

    async def perform(
        self,
        handle: Handle,
        action: Action,
        expected: Evidence,
        *,
        number: int,  # noqa: ARG002 - there are no requests to attribute
        budget_ms: int,
        at: PointHook,
    ) -> Dispatch:
        match self._place(handle):
            case Place() as place:
                dispatcher = Dispatcher(self._bus, self._desk, self._app, place, headed=self._headed)
                return await dispatcher.perform(action, expected, budget_ms=budget_ms, at=at)
            case Gone(reason):
                return Dispatch(DispatchEnd.NOT_SENT, reached=False, error=f"the target is gone ({reason})")
            case Unreadable(why):
                return Dispatch(DispatchEnd.NOT_SENT, reached=False, error=why)

    async def navigate(self, url: str, *, number: int, budget_ms: int, at: PointHook) -> Navigation:  # noqa: ARG002
        return Navigation(DispatchEnd.NOT_SENT, error="a desktop application has no addresses to go to")

    # Looking at the rest

    async def window(self) -> WindowState:
        """The window that is active, else the one shown last. Raises `AdapterError`."""
        self._check_bus()
        app = self._app
        if not app.process.alive:
            raise AdapterError("the application has ended", kind=DetailKind.PROCESS_CHANGED)
        deadline = Deadline(_WINDOW_MS)
        try:
            found = await self._bus.ask(app.root, words.ACCESSIBLE, "GetChildren", deadline)
            if not isinstance(found, Known):
                why = found.why if isinstance(found, Unknown) else "it lists no windows"
                raise AdapterError(f"the windows could not be read: {why}", kind=DetailKind.OBSERVATION_INCOMPLETE)
            reader = Reader(self._bus, app.toolkit)
            windows = await asyncio.gather(
                *(reader.core(ref, deadline, children=False) for ref in refs_of(found.value))
            )
        except ProcessGone as error:
            raise AdapterError("the application has ended", kind=DetailKind.PROCESS_CHANGED) from error
        return _window(app, list(windows))

    async def picture(self, box: tuple[int, int, int, int] | None, *, node: str = "", budget_ms: int) -> str:  # noqa: ARG002
        """Of the window that is in front, as a PNG in base 64, with a frame around `box`. Raises `AdapterError`."""
        now = await self.window()
        on_screen = await self._desk.run(windows_of(self._app.process.pid), budget_s=budget_ms / 1000)
        shown = [w for w in on_screen if w.shown]
        chosen = next((w for w in reversed(shown) if w.title.strip() == now.title), shown[-1] if shown else None)
        if chosen is None:
            raise AdapterError("the application has no window on the screen", kind=DetailKind.COMPONENT_LOST)
        left, top, width, height, pixels = await self._desk.run(taken(chosen.box), budget_s=budget_ms / 1000)
        if box is not None:
            x, y, wide, tall = (v // 1_000 for v in box)
            if not self._app.toolkit.places_on_screen:
                x, y = x + chosen.box[0], y + chosen.box[1]
            pixels = framed(width, height, pixels, (x - left, y - top, wide, tall))
        return await asyncio.to_thread(png, width, height, pixels)

    def dialog(self) -> Dialog | None:
        """Always None: a dialog is a window of the tree, and does not keep the others from being read."""
        return None

    def requests(self, number: int) -> tuple[RequestSeen, ...]:  # noqa: ARG002
        """Always empty: a desktop application's traffic is not seen here."""
        return ()

    @property
    def bus_lost(self) -> bool:
        """The accessibility bus itself is gone: nothing can be seen or done any more."""
        return bool(self._bus.lost)

    def _check_bus(self) -> None:
        if self._bus.lost:
            raise AdapterError("the accessibility bus is gone", kind=DetailKind.COMPONENT_LOST)

    async def close(self) -> None:
        """Leaves the application as it is."""
        await self.desktop.close()
        await self._bus.close()
        self._desk.close()


def _absent(selector: AppSelector) -> AdapterError:
    return AdapterError(
        f"no {selector} is on the accessibility bus; is it running, and does it expose its tree "
        "(Qt: QT_LINUX_ACCESSIBILITY_ALWAYS_ON=1, Chromium: GNOME_ACCESSIBILITY=1 and --force-renderer-accessibility)?",
        kind=DetailKind.PROCESS_CHANGED,
    )


def _window(app: Application, windows: list[Facts]) -> WindowState:
    shown = [w for w in windows if bounds_showing(w, app.toolkit) == Known(True)]
    active = next((w for w in shown if w.is_(State.ACTIVE)), shown[-1] if shown else None)
    if active is None:
        return WindowState(f"w-{app.root.bus}", app.name, app.url, app.generation)
    title = active.name.value.strip() if isinstance(active.name, Known) else ""
    tail = active.ref.path.rpartition("/")[2]
    return WindowState(f"w-{active.ref.bus}-{tail}", title, app.url, app.generation)
