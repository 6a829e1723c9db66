"""What an adapter of a desktop can do beyond `Adapter`: programs, windows, the clipboard. The guard knows only this.

Acted on is only what a session guards: the application it was opened for, and the programs that it has launched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from deskcert.adapters.base import Dispatch, PointHook

__all__ = ["Desktop", "DesktopAdapter", "DesktopApp", "DesktopWindow", "Operated", "Operation", "ReadBack"]


@dataclass(frozen=True, slots=True)
class DesktopApp:
    """A running program. `name` is its own word; None where it did not say."""

    name: str | None
    pid: int
    generation: str
    """Of this very process: a number that is used again has another one."""
    guarded: bool
    """The session may act on it."""
    url: str


@dataclass(frozen=True, slots=True)
class DesktopWindow:
    """A top-level window of a guarded program."""

    id: str
    title: str
    app: DesktopApp
    box: tuple[int, int, int, int]
    """x, y, width, height in pixels of the screen."""
    states: frozenset[str]
    """Of `minimized maximized modal shown`."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One command on the desktop, in full. What it is to be done to is compared in the act."""

    command: str
    program: str | None = None
    app: DesktopApp | None = None
    window: DesktopWindow | None = None
    box: tuple[int, int, int, int] | None = None
    """Where the window is to be, for move-window and resize-window."""
    text: str | None = None
    """For the clipboard."""
    force: bool = False
    """close-app: kill what does not end when it is asked to."""


@dataclass(frozen=True, slots=True)
class ReadBack:
    """`satisfied`: None where there was no evidence, and `reason` says why."""

    satisfied: bool | None
    observed: str | None = None
    """Only where it is no secret."""
    reason: str | None = None
    tolerance: int | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Operated:
    dispatch: Dispatch
    read: ReadBack | None = None
    """None where nothing was sent."""


class Desktop(Protocol):
    """Reading raises `AdapterError`; `operate` answers with what is known about delivery."""

    def programs(self) -> Mapping[str, str]:
        """Name → executable of what this session may launch; empty where it was given none."""
        ...

    async def apps(self) -> tuple[DesktopApp, ...]:
        """All that can be seen, guarded or not."""
        ...

    async def windows(self) -> tuple[DesktopWindow, ...]:
        """Of the guarded programs."""
        ...

    async def managed(self) -> bool:
        """Whether anything here can minimise and maximise windows."""
        ...

    async def clipboard(self) -> str | None:
        """Its text; None where it holds none."""
        ...

    async def operate(self, operation: Operation, *, budget_ms: int, at: PointHook) -> Operated:
        """Once, compared in the act, with the read-back of what came of it."""
        ...


@runtime_checkable
class DesktopAdapter(Protocol):
    @property
    def desktop(self) -> Desktop: ...
