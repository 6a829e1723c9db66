"""A problem in somebody's file: where it stands, and what was expected there.

A path is a tuple of keys and indexes from the document's root; `()` is the document itself. Lines and columns are
1-based, columns in characters. `Positions` belongs to one loaded file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Path", "Position", "Positions", "Problem", "path_text"]

type Path = tuple[str | int, ...]

_PLAIN_KEY: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Position:
    line: int
    column: int


START: Final = Position(1, 1)


@dataclass(frozen=True, slots=True)
class Positions:
    """Where each value and each key of a loaded file stands."""

    values: Mapping[Path, Position] = field(default_factory=dict)
    keys: Mapping[Path, Position] = field(default_factory=dict)

    def value(self, path: Path) -> Position:
        """Of the value at `path`, or of the nearest one around it that exists."""
        for end in range(len(path), -1, -1):
            if (found := self.values.get(path[:end])) is not None:
                return found
        return START

    def key(self, path: Path) -> Position:
        """Of the key that ends `path`, or of the value, where there is no such key (an index)."""
        return self.keys.get(path) or self.value(path)


@dataclass(frozen=True, slots=True)
class Problem:
    """`line` and `column` are None where the document did not come from a file."""

    line: int | None
    column: int | None
    path: str
    """As `path_text` writes it; empty for the whole document."""
    message: str

    def sentence(self, name: str) -> str:
        """`policy.yaml:7:5: deny[1].name: expected a string …`"""
        where = name if self.line is None else f"{name}:{self.line}:{self.column}"
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


def path_text(path: Path) -> str:
    """`("deny", 1, "name")` as `deny[1].name`; a key that is no plain word is quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{shorten(part)!r}]"
    return text


def shorten(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
