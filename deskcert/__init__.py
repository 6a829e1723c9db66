"""Decides whether an AI agent may touch a screen: guard, ledger, verdict."""

from __future__ import annotations

__all__ = ["__version__"]

__version__: str


def __getattr__(name: str) -> str:
    """The version is looked up when it is asked for: package metadata is slow to read."""
    if name == "__version__":
        from importlib.metadata import version

        return version("deskcert")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
