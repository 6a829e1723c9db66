"""Decides whether an AI agent may touch a screen: guard, ledger, verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deskcert.api import Answer, GuardedSession, Snapshot, guard_page, open_session, open_session_sync

__all__ = [
    "Answer",
    "GuardedSession",
    "Snapshot",
    "__version__",
    "guard_page",
    "open_session",
    "open_session_sync",
]

__version__: str


def __getattr__(name: str) -> Any:
    """Everything here is looked up when it is asked for: package metadata and a browser library are slow to read."""
    if name == "__version__":
        from importlib.metadata import version

        globals()[name] = version("deskcert")
        return globals()[name]
    if name in __all__:
        from deskcert import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
