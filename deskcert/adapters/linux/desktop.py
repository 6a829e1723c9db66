"""`LinuxDesktop`: programs, windows and the clipboard around the guarded application. X11 only: see `x11`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType
from typing import Final, assert_never

from deskcert.adapters.base import Dispatch, DispatchEnd, PointHook
from deskcert.adapters.desktop import DesktopApp, DesktopWindow, Operated, Operation, ReadBack
from deskcert.adapters.linux import windows as placing
from deskcert.adapters.linux.application import Application, list_applications
from deskcert.adapters.linux.bus import AccessBus, Deadline
from deskcert.adapters.linux.clipboard import Clipboard, text_of_clipboard
from deskcert.adapters.linux.processes import Process
from deskcert.adapters.linux.programs import Ended, Program, end, launch
from deskcert.adapters.linux.x11 import Desk, XWindow, windows_of
from deskcert.contract.evidence import Known
from deskcert_schema.disposition import Delivery
from deskcert_schema.errors import AdapterError

__all__ = ["LinuxDesktop", "Programs"]

_LIST_MS: Final = 2_000
_NAME_MS: Final = 300
_LOOK_EVERY_S: Final = 0.05
_SETTLE_S: Final = 1.0
_CLIPBOARD_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Programs:
    """What a session may launch, given by whoever starts it: name → the whole command, which no agent can add to."""

    commands: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """That they are started with: the desktop's."""


class LinuxDesktop:
    """Implements `deskcert.adapters.desktop.Desktop`. `app` gives the application that is guarded now."""

    def __init__(
        self, bus: AccessBus, desk: Desk, display: str | None, app: Callable[[], Application], programs: Programs
    ) -> None:
        self._bus, self._desk, self._app, self._programs = bus, desk, app, programs
        self._clipboard = Clipboard(display)
        self._launched: dict[str, tuple[str, Program]] = {}
        """By generation: what it is called, and the program. Until it has said what it is called, which a busy machine
        delays, it is known by its file's name, as it was when the policy judged its launch."""

    # Looking

    def programs(self) -> Mapping[str, str]:
        return {name: PurePath(command[0]).name for name, command in self._programs.commands.items()}

    async def apps(self) -> tuple[DesktopApp, ...]:
        """Those on the accessibility bus, and those that were launched, on it or not. Raises `AdapterError`."""
        listed = await list_applications(self._bus, Deadline(_LIST_MS), name_ms=_NAME_MS)
        mine = {app.pid: app for app in self._mine()}
        seen = []
        for one in listed:
            own = mine.get(one.process.pid)
            guarded = own is not None and own.generation == _generation(one.process)
            # One that hangs cannot say what it is called; it is known since it could.
            known = own.name if guarded and own is not None else None
            name = one.name.value if isinstance(one.name, Known) else known
            if guarded and name and (kept := self._launched.get(_generation(one.process))):
                self._launched[_generation(one.process)] = name, kept[1]
            seen.append(_app(name, one.process, guarded=guarded))
        there = {app.pid for app in seen}
        return (*seen, *(app for app in mine.values() if app.pid not in there))

    def _mine(self) -> list[DesktopApp]:
        guarded = self._app()
        found = [_app(guarded.name, guarded.process, guarded=True)] if guarded.process.alive else []
        running = [(name, p.process) for name, p in self._launched.values() if p.process.alive]
        return found + [_app(name, there, guarded=True) for name, there in running]

    async def windows(self) -> tuple[DesktopWindow, ...]:
        """Raises `AdapterError` where there is no X server to ask."""
        found: list[DesktopWindow] = []
        for app in self._mine():
            for window in await self._desk.run(windows_of(app.pid)):
                if window.title or window.shown:  # a toolkit keeps nameless helpers that were never on the screen
                    found.append(_window(window, app, await placing.states(self._desk, window)))
        return tuple(found)

    async def managed(self) -> bool:
        return await placing.managed(self._desk)

    async def clipboard(self) -> str | None:
        return await self._desk.run(text_of_clipboard(budget_s=_CLIPBOARD_S), budget_s=_CLIPBOARD_S + 1)

    # Acting

    async def operate(self, operation: Operation, *, budget_ms: int, at: PointHook) -> Operated:
        try:
            match operation:
                case Operation("launch", program=str(name)):
                    return await self._launch(name, budget_ms, at)
                case Operation("close-app", app=DesktopApp() as app):
                    return await self._close(app, operation.force, budget_ms, at)
                case Operation("clipboard-set", text=str(text)):
                    return await self._set_clipboard(text, at)
                case Operation(window=DesktopWindow() as window):
                    return await self._on_window(operation, window, at)
                case _:
                    return _not_sent(f"{operation.command} cannot be done here", unsupported=True)
        except _Lost as lost:
            return Operated(Dispatch(DispatchEnd.NO_ANSWER, reached=False, error=str(lost)), ReadBack(None))
        except AdapterError as error:  # raised before anything went out
            return _not_sent(str(error))

    async def _launch(self, name: str, budget_ms: int, at: PointHook) -> Operated:
        command = self._programs.commands.get(name)
        if command is None:
            return _not_sent(f"{name} is no program of this session", unsupported=True)
        deadline = Deadline(budget_ms)
        await at("dispatched")
        try:
            program = await launch(command, self._programs.environment)
        except AdapterError as error:
            if error.delivery != Delivery.NOT_DELIVERED:
                return _sent("exec", ReadBack(False, str(error)))
            return _not_sent(str(error))
        self._launched[_generation(program.process)] = PurePath(command[0]).name, program
        return _sent("exec", await self._appeared(program, deadline))

    async def _appeared(self, program: Program, deadline: Deadline) -> ReadBack:
        """On the accessibility bus; or ended, with the exit that was seen."""
        pid = program.process.pid
        while True:
            if not program.process.alive:
                return ReadBack(False, f"process {pid} ended with code {await program.handle.wait()}")
            listed = await self._listed(deadline)
            if pid in listed:
                return ReadBack(True, f"process {pid} is on the accessibility bus")
            if deadline.left_s() <= 0:
                return ReadBack(None, f"process {pid} runs", "it is not on the accessibility bus yet")
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _listed(self, deadline: Deadline) -> frozenset[int]:
        own = Deadline(min(1_000.0, max(100.0, deadline.left_s() * 1_000)))
        try:
            return frozenset(app.process.pid for app in await list_applications(self._bus, own))
        except AdapterError:
            return frozenset()

    async def _close(self, app: DesktopApp, force: bool, budget_ms: int, at: PointHook) -> Operated:
        there = next((a for a in self._mine() if a.pid == app.pid and a.generation == app.generation), None)
        if there is None:
            return _changed("process")
        await at("dispatched")
        ended = await end(_process(there), budget_ms=budget_ms, kill=force)
        _, program = self._launched.get(there.generation, (None, None))
        match ended:
            case Ended.ALREADY:
                return _not_sent("it had ended by itself")
            case Ended.STILL_THERE:
                return _sent("SIGTERM", ReadBack(False, f"process {app.pid} still runs"))
            case Ended.ASKED | Ended.KILLED:
                code = f" with code {await program.handle.wait()}" if program is not None else ""
                how = "SIGTERM" if ended is Ended.ASKED else "SIGTERM, then SIGKILL"
                return _sent(how, ReadBack(True, f"process {app.pid} ended{code}"))
            case _:
                assert_never(ended)

    async def _set_clipboard(self, text: str, at: PointHook) -> Operated:
        await self._desk.run(lambda display: display.screen().root.get_geometry())  # no X server: nothing was sent
        await at("dispatched")

        async def read() -> ReadBack:
            return ReadBack(await self.clipboard() == text)

        return await _after("own CLIPBOARD", lambda: asyncio.to_thread(self._clipboard.set, text), read)

    async def _on_window(self, operation: Operation, window: DesktopWindow, at: PointHook) -> Operated:
        now = next((w for w in await self.windows() if w.id == window.id), None)
        if now is None:
            return _not_sent("the window is gone")
        if differs := [k for k in ("title", "app") if getattr(now, k) != getattr(window, k)]:
            return _changed(*differs)
        target = _x(now)
        match operation.command:
            case "move-window" | "resize-window" if operation.box is not None:
                box = operation.box
                await at("dispatched")
                return await self._placed(target, box)
            case "focus-window":
                await at("dispatched")
                return await self._fronted(target)
            case "minimize" | "maximize" | "restore" as wanted:
                if not await placing.managed(self._desk):
                    return _not_sent("no window manager runs on this display", unsupported=True)
                await at("dispatched")
                return await _after(
                    wanted, lambda: placing.state(self._desk, target, wanted), lambda: self._became(target, wanted)
                )
            case _:
                return _not_sent(f"{operation.command} cannot be done to a window", unsupported=True)

    async def _placed(self, target: XWindow, box: tuple[int, int, int, int]) -> Operated:
        try:
            found = await placing.place(self._desk, target, box)
        except AdapterError as error:
            raise _Lost(str(error)) from error
        seen = "x={}, y={}, width={}, height={}".format(*found.observed) if found.observed is not None else None
        reason = None if seen is not None else "the window is gone"
        return _sent("configure", ReadBack(found.satisfied, seen, reason, found.tolerance, found.unit))

    async def _fronted(self, target: XWindow) -> Operated:
        """A window manager gives the keyboard a moment later than it is asked to."""
        until = time.monotonic() + _SETTLE_S
        try:
            held = await placing.front(self._desk, target)
            while not held and time.monotonic() < until:
                await asyncio.sleep(_LOOK_EVERY_S)
                held = await placing.has_keyboard(self._desk, target)
        except AdapterError as error:
            raise _Lost(str(error)) from error
        return _sent("focus", ReadBack(held))

    async def _became(self, target: XWindow, wanted: str) -> ReadBack:
        until = time.monotonic() + _SETTLE_S
        while True:
            found = await placing.states(self._desk, target)
            held = {
                "minimize": "minimized" in found,
                "maximize": "maximized" in found,
                "restore": not found & {"minimized", "maximized"},
            }[wanted]
            if held or time.monotonic() >= until:
                return ReadBack(held, ", ".join(sorted(found)) or "normal")
            await asyncio.sleep(_LOOK_EVERY_S)

    async def close(self) -> None:
        """Gives the clipboard up; leaves every program as it is."""
        await asyncio.to_thread(self._clipboard.close)


class _Lost(Exception):
    """The request may have gone out; its answer is lost."""


async def _after(label: str, send: Callable[[], Awaitable[None]], read: Callable[[], Awaitable[ReadBack]]) -> Operated:
    try:
        await send()
    except AdapterError as error:
        raise _Lost(str(error)) from error
    try:
        return _sent(label, await read())
    except AdapterError as error:
        return _sent(label, ReadBack(None, None, str(error)))


def _sent(label: str, read: ReadBack) -> Operated:
    return Operated(Dispatch(DispatchEnd.COMPLETED, reached=True, events_sent=(label,)), read)


def _not_sent(why: str, *, unsupported: bool = False) -> Operated:
    return Operated(Dispatch(DispatchEnd.NOT_SENT, reached=False, error=why, unsupported=unsupported))


def _changed(*differences: str) -> Operated:
    return Operated(Dispatch(DispatchEnd.CHANGED, reached=False, differences=differences))


def _app(name: str | None, there: Process, *, guarded: bool) -> DesktopApp:
    url = f"desktop://{name if name is not None else there.pid}/"
    return DesktopApp(name, there.pid, _generation(there), guarded, url)


def _generation(there: Process) -> str:
    return f"{there.pid}@{there.start}"


def _process(app: DesktopApp) -> Process:
    return Process(app.pid, int(app.generation.partition("@")[2]))


def _window(window: XWindow, app: DesktopApp, states: frozenset[str]) -> DesktopWindow:
    more = [word for word, holds in (("modal", window.modal), ("shown", window.shown)) if holds]
    return DesktopWindow(f"x{window.id:x}", window.title, app, window.box, states | frozenset(more))


def _x(window: DesktopWindow) -> XWindow:
    number = int(window.id.removeprefix("x"), 16)
    return XWindow(number, window.title, window.app.pid, window.box, "modal" in window.states, "shown" in window.states)
