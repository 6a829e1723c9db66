"""The commands that only a session on a desktop has, as every way in tells them. Plain data, like `arguments`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from deskcert.ways.params import COMMON, CommandInfo, Param, flag, number

__all__ = ["DESKTOP_COMMANDS"]

_WINDOW: Final = Param(
    "window", {"type": "string", "minLength": 1}, "Its id, from list-windows.", required=True, positional=True
)
_STATES: Final = {
    "focus-window": "Bring a window to the front and give it the keyboard.",
    "minimize": "Minimize a window; needs a window manager.",
    "maximize": "Maximize a window; needs a window manager.",
    "restore": "Give a window back its place and size; needs a window manager.",
}


def _whole(name: str, least: int, help_: str) -> Param:
    schema: dict[str, Any] = {"type": "integer", "minimum": least, "maximum": 32_767}
    return Param(name, schema, help_, required=True)


DESKTOP_COMMANDS: Final[Mapping[str, CommandInfo]] = MappingProxyType(
    {
        "list-apps": CommandInfo(
            "Programs that run; guarded are those that may be acted on.", example="deskcert list-apps"
        ),
        "list-windows": CommandInfo(
            "Windows of the guarded programs: ids, titles, places and states.", example="deskcert list-windows"
        ),
        "clipboard-get": CommandInfo("Read the clipboard's text.", example="deskcert clipboard-get"),
        "launch": CommandInfo(
            "Start a program that this session may start, and wait until it shows its tree.",
            (
                Param(
                    "app", {"type": "string", "minLength": 1}, "Its name, as the session was given it.", required=True
                ),
                *COMMON,
            ),
            acting=True,
            example="deskcert launch --app editor",
        ),
        "close-app": CommandInfo(
            "Ask a guarded program to end, and see whether it has.",
            (
                Param("app", {"type": "string", "minLength": 1}, "Its name, from list-apps."),
                number("pid", 1, 2**31 - 1, "Its process id, where several have the name."),
                flag("force", "Kill it if it does not end when it is asked to."),
                *COMMON,
            ),
            acting=True,
            example="deskcert close-app --app editor",
        ),
        **{
            name: CommandInfo(line, (_WINDOW, *COMMON), acting=True, example=f"deskcert {name} x400007")
            for name, line in _STATES.items()
        },
        "move-window": CommandInfo(
            "Move a window; where it came is read back.",
            (
                _WINDOW,
                _whole("x", -32_767, "Its left edge, in pixels of the screen."),
                _whole("y", -32_767, "Its upper edge, in pixels of the screen."),
                *COMMON,
            ),
            acting=True,
            example="deskcert move-window x400007 --x 40 --y 30",
        ),
        "resize-window": CommandInfo(
            "Size a window; the size that it took is read back.",
            (_WINDOW, _whole("width", 1, "In pixels."), _whole("height", 1, "In pixels."), *COMMON),
            acting=True,
            example="deskcert resize-window x400007 --width 800 --height 600",
        ),
        "clipboard-set": CommandInfo(
            "Put a text into the clipboard; it is secret in the records.",
            (Param("text", {"type": "string"}, "The text.", required=True, positional=True), *COMMON),
            acting=True,
            example='deskcert clipboard-set "two boxes"',
        ),
    }
)
