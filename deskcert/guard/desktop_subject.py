"""What a rule may ask about a command on the desktop: a program, a window or the clipboard, instead of an element.

| command | name and role | window | value |
| --- | --- | --- | --- |
| launch | the program's name, and its executable's; `application` | | |
| close-app | the application's name; `application` | titles of its windows | |
| focus-window, move-window, resize-window, minimize, maximize, restore | the title; `window` | title, url | |
| clipboard-set | `clipboard`; `clipboard` | | the text |

All of it stands in the record's target, so that a replay decides from that alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deskcert.adapters.desktop import DesktopApp, DesktopWindow
from deskcert.contract.evidence import ABSENT, Known, NameSources
from deskcert.guard.patterns import Match
from deskcert.guard.retry_gate import EXEMPT, digest_of
from deskcert.guard.subject import PAGE_COMMANDS, Subject, Surface

__all__ = [
    "DESKTOP_COMMANDS",
    "WITHOUT_ELEMENT",
    "app_target",
    "clipboard_target",
    "desktop_fingerprint",
    "desktop_subject",
    "program_target",
    "window_target",
]

_ON_WINDOW: Final = frozenset({"focus-window", "move-window", "resize-window", "minimize", "maximize", "restore"})
DESKTOP_COMMANDS: Final = _ON_WINDOW | {"launch", "close-app", "clipboard-set"}
WITHOUT_ELEMENT: Final = PAGE_COMMANDS | DESKTOP_COMMANDS
"""Commands that name no element: nothing about one is compared or checked."""

_MEANS: Final[Mapping[str, frozenset[str]]] = {"clipboard-set": frozenset({"set-value"})}
"""What is put there can be pasted: a rule about setting a value means it, too."""


def program_target(name: str, executable: str) -> dict[str, Any]:
    return {"url": f"desktop://{name}/", "program": {"name": name, "executable": executable}}


def app_target(app: DesktopApp, windows: tuple[DesktopWindow, ...]) -> dict[str, Any]:
    titles = [w.title for w in windows if w.app.generation == app.generation]
    return {
        "url": app.url,
        "app": {"name": app.name, "pid": app.pid, "generation": app.generation, "windows": titles},
    }


def window_target(window: DesktopWindow) -> dict[str, Any]:
    told = {"id": window.id, "title": window.title, "app": window.app.name, "generation": window.app.generation}
    return {"url": window.app.url, "window": told}


def clipboard_target() -> dict[str, Any]:
    return {"url": "desktop://clipboard/", "clipboard": True}


def desktop_subject(command: str, target: Mapping[str, Any], facts: Mapping[str, Match] | None = None) -> Subject:
    """`facts` comes from `policy.value_facts`. An application that does not say its name is named by its url alone."""
    surface, windows = _surface(target), _windows(target)
    return Subject(
        command=command,
        actions=frozenset({command}) | _MEANS.get(command, frozenset()),
        key=None,
        groups=((surface,),),
        destinations=(),
        urls=(target["url"],),
        windows=windows,
        value_facts=facts or {},
    )


def _surface(target: Mapping[str, Any]) -> Surface:
    if (program := target.get("program")) is not None:
        names = NameSources(accessible=Known(program["name"]), text=Known(program["executable"]))
        return Surface("target", "application", names)
    if (app := target.get("app")) is not None:
        name = app["name"]
        return Surface("target", "application", NameSources(accessible=Known(name) if name is not None else ABSENT))
    if (window := target.get("window")) is not None:
        return Surface("target", "window", NameSources(accessible=Known(window["title"])))
    return Surface("target", "clipboard", NameSources(accessible=Known("clipboard")))


def _windows(target: Mapping[str, Any]) -> tuple[str, ...]:
    if (app := target.get("app")) is not None:
        return (*app["windows"], target["url"])
    if (window := target.get("window")) is not None:
        return (window["title"], target["url"])
    return ()


def desktop_fingerprint(command: str, target: Mapping[str, Any], mac: str | None) -> str:
    """Placing a window says which state it wants, and may be repeated at will. A second launch is a second program."""
    if command in _ON_WINDOW:
        return EXEMPT + digest_of({"action": command, "window": target["window"]["id"]})
    app = target.get("app")
    return digest_of(
        {
            "action": command,
            "url": target["url"],
            "generation": app["generation"] if app is not None else None,
            "value": mac,
        }
    )
