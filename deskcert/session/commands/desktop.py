"""The commands on the desktop: programs, windows, the clipboard. What guards them stands in the guard's `desktop`.

`list-apps` tells what runs; acted on is only the guarded application, and what this session has launched. `launch`
starts only programs that the session was given by name, and takes no arguments for them. The lists and `clipboard-get`
look, and stand in no record.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deskcert.adapters.desktop import Desktop, DesktopAdapter, DesktopApp, DesktopWindow, Operation
from deskcert.contract.envelope import success
from deskcert.guard.desktop import DesktopRequest, operate
from deskcert.guard.desktop_subject import app_target, clipboard_target, program_target, window_target
from deskcert.session.answers import Refused
from deskcert.session.args import Arg, boolean, text, whole_number
from deskcert.session.commands.acting import COMMON, run_pipeline
from deskcert.session.desk import Call, Desk, Handler
from deskcert_ledger import Secret
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import Code, Command, DetailKind

__all__ = ["COMMANDS", "Meant", "meant"]

_TIMEOUT_MS: Final = 10_000
_MOST_CHARACTERS: Final = 100_000
"""Of the clipboard: an answer is one line of at most 1 MiB, each character up to six bytes of it."""
_FARTHEST: Final = 32_767
"""X11 counts places and sizes in 16 bits."""


def _desktop(desk: Desk) -> Desktop:
    if not isinstance(desk.adapter, DesktopAdapter):
        raise Refused(
            Code.PLATFORM_NOT_SUPPORTED, "there is no desktop here: this session guards a page", phase="parse"
        )
    return desk.adapter.desktop


async def _read[T](reading: Awaitable[T]) -> T:
    try:
        return await reading
    except AdapterError as exc:
        kind = DetailKind(exc.kind) if exc.kind in set(DetailKind) else DetailKind.OBSERVATION_INCOMPLETE
        why = f"the desktop could not be read: {exc}"
        raise Refused(Code.APP_UNRESPONSIVE, why, phase="resolve", kind=kind) from exc


# Looking


async def _list_apps(desk: Desk, _call: Call) -> dict[str, Any]:
    found = await _read(_desktop(desk).apps())
    return success(Command.LIST_APPS, {"apps": [_app_shown(app) for app in found]})


async def _list_windows(desk: Desk, _call: Call) -> dict[str, Any]:
    found = await _read(_desktop(desk).windows())
    return success(Command.LIST_WINDOWS, {"windows": [_window_shown(w) for w in found]})


async def _clipboard_get(desk: Desk, _call: Call) -> dict[str, Any]:
    found = await _read(_desktop(desk).clipboard())
    if found is None:
        return success(Command.CLIPBOARD_GET, {"absent": True})
    if len(found) > _MOST_CHARACTERS:
        raise Refused(Code.ACTION_FAILED, "the clipboard's text is longer than an answer may be", phase="resolve")
    return success(Command.CLIPBOARD_GET, {"text": found})


def _app_shown(app: DesktopApp) -> dict[str, Any]:
    named = {"name": app.name} if app.name is not None else {}
    return named | {"pid": app.pid, "guarded": app.guarded}


def _window_shown(window: DesktopWindow) -> dict[str, Any]:
    return {
        "id": window.id,
        "title": window.title,
        "app": _app_shown(window.app),
        "bounds": dict(zip(("x", "y", "width", "height"), window.box, strict=True)),
        "states": sorted(window.states),
    }


# Acting


@dataclass(frozen=True, slots=True)
class Meant:
    """One acting command, with what it would be done to as it is now."""

    operation: Operation
    target: Mapping[str, Any]
    args: Mapping[str, Any]


async def meant(desk: Desk, call: Call) -> Meant:
    """Raises `Refused`: there is no such program or window, or this session may not act on it."""
    match call.command:
        case Command.LAUNCH:
            return _launch(desk, call)
        case Command.CLOSE_APP:
            return await _close_app(desk, call)
        case Command.CLIPBOARD_SET:
            _desktop(desk)
            return Meant(Operation(call.command, text=call.values["text"]), clipboard_target(), {})
        case _:
            return await _on_window(desk, call)


def _launch(desk: Desk, call: Call) -> Meant:
    programs = _desktop(desk).programs()
    name = call.values["app"]
    if not programs:
        raise Refused(Code.ACTION_NOT_SUPPORTED, "no programs were given to this session to launch", phase="parse")
    if name not in programs:
        raise Refused(
            Code.POLICY_DENIED,
            f"{name[:60]!r} is none of the programs that this session may launch: {', '.join(sorted(programs))}",
            phase="gate",
            kind=DetailKind.NOT_ALLOWED,
        )
    return Meant(Operation(call.command, program=name), program_target(name, programs[name]), {"app": name})


async def _close_app(desk: Desk, call: Call) -> Meant:
    wanted, pid = call.values["app"], call.values["pid"]
    if wanted is None and pid is None:
        raise Refused(Code.INVALID_ARGS, "close-app needs app or pid", phase="parse")
    desktop = _desktop(desk)
    seen = await _read(desktop.apps())
    app = _one(
        [a for a in seen if (wanted is None or a.name == wanted) and (pid is None or a.pid == pid)],
        f"no program is called {wanted!r}" if pid is None else f"no such program has the process id {pid}",
    )
    windows = await _read(desktop.windows())
    operation = Operation(call.command, app=app, force=call.values["force"])
    args = {k: v for k, v in (("app", wanted), ("pid", pid), ("force", operation.force)) if v is not None}
    return Meant(operation, app_target(app, windows), args)


def _one(found: list[DesktopApp], absent: str) -> DesktopApp:
    """Exactly one, and one that is guarded. Raises `Refused`."""
    if not found:
        raise Refused(Code.APP_NOT_FOUND, absent, phase="resolve", suggestion="list-apps tells what runs")
    if len(found) > 1:
        pids = ", ".join(str(app.pid) for app in found)
        raise Refused(
            Code.AMBIGUOUS_TARGET,
            f"{len(found)} programs have this name: process ids {pids}",
            phase="resolve",
            suggestion="name one by pid",
        )
    if not found[0].guarded:
        raise Refused(
            Code.POLICY_DENIED,
            "this is neither the guarded application nor a program that this session has launched",
            phase="gate",
            kind=DetailKind.NOT_ALLOWED,
        )
    return found[0]


async def _on_window(desk: Desk, call: Call) -> Meant:
    desktop, asked = _desktop(desk), call.values["window"]
    window = next((w for w in await _read(desktop.windows()) if w.id == asked), None)
    if window is None:
        raise Refused(
            Code.WINDOW_NOT_FOUND,
            f"no guarded program has a window {asked[:40]!r}",
            phase="resolve",
            suggestion="list-windows tells which there are",
        )
    if call.command in _BY_MANAGER and not await _read(desktop.managed()):
        raise Refused(
            Code.ACTION_NOT_SUPPORTED,
            f"no window manager runs on this display, so nothing can {call.command} a window",
            phase="resolve",
            suggestion="move-window and resize-window work without one",
        )
    operation = Operation(call.command, window=window, box=_box(call, window))
    given = {k: call.values[k] for k in ("window", "x", "y", "width", "height") if k in call.values}
    return Meant(operation, window_target(window), given)


def _box(call: Call, window: DesktopWindow) -> tuple[int, int, int, int] | None:
    """Where the whole window is to be: what is not asked for stays."""
    x, y, width, height = window.box
    match call.command:
        case Command.MOVE_WINDOW:
            return call.values["x"], call.values["y"], width, height
        case Command.RESIZE_WINDOW:
            return x, y, call.values["width"], call.values["height"]
        case _:
            return None


async def _act(desk: Desk, call: Call) -> dict[str, Any]:
    found = await meant(desk, call)
    newest = desk.state.snapshots.newest
    timeout_ms = call.values["timeout_ms"]
    request = DesktopRequest(
        action_no=call.action,
        operation=found.operation,
        target=found.target,
        args=found.args,
        newest_snapshot_seq=newest.seq if newest is not None else 0,
        policy=desk.policy,
        gate=desk.state.gate,
        run_key=desk.key,
        now_us=desk.now_us(),
        secret=Secret,
        repeat_of=call.values["repeat_of"],
        timeout_ms=_TIMEOUT_MS if timeout_ms is None else timeout_ms,
        mode=desk.options.mode,
        prev_commit_us=desk.records.prev_commit_us,
    )
    return await run_pipeline(desk, call, operate(request))


_BY_MANAGER: Final = frozenset({Command.MINIMIZE, Command.MAXIMIZE, Command.RESTORE})
_PLACE: Final = whole_number(-_FARTHEST, _FARTHEST)
_SIZE: Final = whole_number(1, _FARTHEST)
_APP: Final = text(200, empty=False)
_WINDOW: Final = Arg("window", text(40, empty=False), required=True)

COMMANDS: Final = (
    Handler(Command.LIST_APPS, (), _list_apps),
    Handler(Command.LIST_WINDOWS, (), _list_windows),
    Handler(Command.CLIPBOARD_GET, (), _clipboard_get),
    Handler(Command.LAUNCH, (Arg("app", _APP, required=True), *COMMON), _act, acting=True),
    Handler(
        Command.CLOSE_APP,
        (Arg("app", _APP), Arg("pid", whole_number(1, 2**31 - 1)), Arg("force", boolean, default=False), *COMMON),
        _act,
        acting=True,
    ),
    *(Handler(c, (_WINDOW, *COMMON), _act, acting=True) for c in (Command.FOCUS_WINDOW, *sorted(_BY_MANAGER))),
    Handler(
        Command.MOVE_WINDOW,
        (_WINDOW, Arg("x", _PLACE, required=True), Arg("y", _PLACE, required=True), *COMMON),
        _act,
        acting=True,
    ),
    Handler(
        Command.RESIZE_WINDOW,
        (_WINDOW, Arg("width", _SIZE, required=True), Arg("height", _SIZE, required=True), *COMMON),
        _act,
        acting=True,
    ),
    Handler(
        Command.CLIPBOARD_SET,
        (Arg("text", text(_MOST_CHARACTERS), required=True), *COMMON),
        _act,
        acting=True,
    ),
)
