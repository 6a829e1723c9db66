"""The reports of a verdict on the command line: the same options for `ci`, `score`, `merge` and `report`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["report_options"]

_FORMATS = (
    ("junit", "JUnit XML"),
    ("sarif", "SARIF 2.1.0"),
    ("ctrf", "Common Test Report Format"),
    ("html", "one self-contained page"),
)


def report_options[F: Callable[..., Any]](*, html: bool = True) -> Callable[[F], F]:
    """`--junit FILE` and the others, given to the command as `junit`, `sarif`, `ctrf`, `html`."""

    def add(command: F) -> F:
        for name, words in reversed(_FORMATS):
            if html or name != "html":
                file = click.Path(path_type=Path, dir_okay=False)
                command = click.option(f"--{name}", type=file, metavar="FILE", help=f"Also write {words}.")(command)
        return command

    return add
