"""Options of how a guarded page is opened, shared by `session start` and `mcp`. Nothing of the guard is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

__all__ = ["how_opened", "mode_of", "read_how"]

_MODES: Final = ("headless", "focus_fallback", "headed")


def how_opened(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--mode`, `--headed`, `--uploads` and `--cdp`."""
    for option in (
        click.option(
            "--cdp", metavar="URL", help="Attach to the browser at this debugging address; custody is shared."
        ),
        click.option(
            "--uploads",
            multiple=True,
            type=click.Path(path_type=Path, file_okay=False, exists=True),
            help="A folder whose files may be uploaded; may be given more than once.",
        ),
        click.option("--headed", is_flag=True, help="Permit physical pointer and keys; short for --mode headed."),
        click.option(
            "--mode", type=click.Choice(_MODES), help="focus_fallback permits trusted keys (default: headless)."
        ),
    ):
        command = option(command)
    return command


def mode_of(mode: str | None, *, headed: bool) -> str:
    """Raises `UsageError` where the two say different things."""
    from deskcert_schema.errors import UsageError

    if headed and mode not in (None, "headed"):
        raise UsageError(f"--headed and --mode {mode} say different things; give one of them")
    return "headed" if headed else mode or "headless"


def read_how(*, mode: str | None, headed: bool, uploads: Sequence[Path], cdp: str | None) -> dict[str, Any]:
    """As `Wanted` takes them, in plain values."""
    return {"mode": mode_of(mode, headed=headed), "uploads": [str(p.resolve()) for p in uploads], "cdp": cdp}
