"""How one argument of a command is told, and those that many commands share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["COMMON", "REF", "CommandInfo", "Param", "flag", "number", "one_of", "word"]


@dataclass(frozen=True, slots=True)
class Param:
    name: str
    schema: Mapping[str, Any]
    """JSON Schema of its value."""
    help: str
    required: bool = False
    positional: bool = False
    """On the command line it stands without an option's name."""


@dataclass(frozen=True, slots=True)
class CommandInfo:
    line: str
    """One sentence, for lists."""
    params: tuple[Param, ...] = ()
    acting: bool = False
    """It reaches the application: never to be repeated blindly."""
    may_act: bool = False
    """It carries out others, which may."""
    example: str = ""
    """Of the command line."""


REF: Final = Param(
    "ref",
    {"type": "string", "pattern": "^@s[0-9a-z]{3,63}:e[1-9][0-9]{0,8}$"},
    "Whose: @<snapshot id>:e<n>, from a snapshot.",
    required=True,
    positional=True,
)
COMMON: Final = (
    Param(
        "timeout_ms",
        {"type": "integer", "minimum": 0, "maximum": 60_000},
        "How long to wait until it can be done, in ms; 0 is one look.",
    ),
    Param(
        "repeat_of",
        {"type": "integer", "minimum": 0, "maximum": 2**53 - 1},
        "The ledger.seq of the earlier attempt that this one repeats on purpose.",
    ),
)


def one_of(words: tuple[str, ...], help_: str, *, required: bool) -> Param:
    return Param("property", {"type": "string", "enum": list(words)}, help_, required=required, positional=True)


def flag(name: str, help_: str) -> Param:
    return Param(name, {"type": "boolean"}, help_)


def word(name: str, help_: str) -> Param:
    return Param(name, {"type": "string", "minLength": 1}, help_)


def number(name: str, least: int, most: int, help_: str) -> Param:
    return Param(name, {"type": "integer", "minimum": least, "maximum": most}, help_)
