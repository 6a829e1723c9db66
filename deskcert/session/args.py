"""(1) Typed arguments. Each command lists its own; an argument that is not on the list is refused."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deskcert.contract.refs import Ref, parse_ref
from deskcert_ledger import Secret
from deskcert_schema.errors import ContractError

__all__ = [
    "KNOWN_ARGUMENTS",
    "Arg",
    "boolean",
    "clean",
    "one_of",
    "parse_args",
    "recordable",
    "ref",
    "text",
    "text_lines",
    "whole_number",
]

type Reader = Callable[[str, object], Any]
"""Name and raw value in, typed value out. Raises `ContractError` with what is expected."""


@dataclass(frozen=True, slots=True)
class Arg:
    name: str
    read: Reader
    required: bool = False
    default: Any = None


def parse_args(command: str, known: tuple[Arg, ...], raw: Mapping[str, object]) -> dict[str, Any]:
    """Every known argument, typed, defaults filled in. Raises `ContractError` with what to change."""
    names = [a.name for a in known]
    for name in raw:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, 1)
            hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(names)}" if names else "it takes none"
            raise ContractError(f"{command} has no argument {str(name)[:60]!r}; {hint}")
    values: dict[str, Any] = {}
    for arg in known:
        if arg.name in raw:
            values[arg.name] = arg.read(arg.name, raw[arg.name])
        elif arg.required:
            raise ContractError(f"{command} needs {arg.name}")
        else:
            values[arg.name] = arg.default
    return values


def ref(_name: str, raw: object) -> Ref:
    return parse_ref(raw)


def text(limit: int, *, empty: bool = True) -> Reader:
    def read(name: str, raw: object) -> str:
        if not isinstance(raw, str):
            raise ContractError(f"{name} must be text, not {_kind(raw)}")
        if not raw and not empty:
            raise ContractError(f"{name} must not be empty")
        if len(raw.encode("utf-8", "surrogatepass")) > limit:
            raise ContractError(f"{name} is longer than {limit} bytes")
        if any("\ud800" <= c <= "\udfff" for c in raw):
            raise ContractError(f"{name} holds half of a surrogate pair, which is no text")
        return raw

    return read


def text_lines(most: int, limit: int) -> Reader:
    """A text, or a list of up to `most` texts; each of one line and at most `limit` bytes."""

    def read(name: str, raw: object) -> tuple[str, ...]:
        lines = [raw] if isinstance(raw, str) else raw
        if not isinstance(lines, list) or not 1 <= len(lines) <= most:
            raise ContractError(f"{name} must be a text, or a list of 1 to {most} texts")
        found = tuple(text(limit, empty=False)(name, line) for line in lines)
        if any("\n" in line for line in found):
            raise ContractError(f"{name} must not hold a line end: give a list for several")
        return found

    return read


def whole_number(least: int, most: int) -> Reader:
    def read(name: str, raw: object) -> int:
        if not isinstance(raw, int) or isinstance(raw, bool) or not least <= raw <= most:
            raise ContractError(f"{name} must be a whole number from {least} to {most}")
        return raw

    return read


def boolean(name: str, raw: object) -> bool:
    if not isinstance(raw, bool):
        raise ContractError(f"{name} must be true or false, not {_kind(raw)}")
    return raw


def one_of(*words: str) -> Reader:
    def read(name: str, raw: object) -> str:
        if raw not in words:
            near = difflib.get_close_matches(str(raw), words, 1)
            hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(words)}"
            raise ContractError(f"{name} cannot be {str(raw)[:60]!r}; {hint}")
        return str(raw)

    return read


KNOWN_ARGUMENTS: Final = frozenset(
    (
        *("ref", "to", "timeout_ms", "repeat_of", "property", "state", "url", "outcome", "key"),
        *("direction", "amount", "role", "first", "last", "nth", "count", "limit", "exact", "predicate"),
        *("dialog", "tab", "download", "root", "surface", "skeleton"),
        *("app", "pid", "force", "window", "x", "y", "width", "height"),
        *("navigation", "network_quiet_ms", "ms", "stop_on_error"),
        *("interactive_only", "compact", "max_depth", "include_bounds", "budget_ms", "max_nodes"),
    )
)
"""Arguments that a record shows as they were given. Everything else, typed text above all, is a secret in it."""

_MAX_RECORDED: Final = 20
_LEDGERS_OWN: Final = frozenset({"_sd", "_sd_alg", "..."})
"""Keys by which a record holds its commitments (RFC 9901): an argument of that name is recorded under another one."""


def recordable(raw: Mapping[str, object]) -> dict[str, Any]:
    """Arguments as a record may hold them, whatever was sent: known short ones as they are, others committed to."""
    shown: dict[str, Any] = {}
    for name, value in list(raw.items())[:_MAX_RECORDED]:
        plain = isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**53)
        if name in KNOWN_ARGUMENTS and (plain or (isinstance(value, str) and len(value) <= 2048 and _is_text(value))):
            shown[name] = value
        else:
            shown[_recorded_name(name)] = Secret(clean(value if isinstance(value, str) else repr(value))[:10_000])
    return shown


def _recorded_name(name: object) -> str:
    told = clean(str(name))[:64]
    return f"argument {told}" if told in _LEDGERS_OWN else told


def clean(value: str) -> str:
    """As text that can be recorded: without halves of surrogate pairs."""
    return value.encode("utf-8", "replace").decode("utf-8")


def _is_text(value: str) -> bool:
    return clean(value) == value


def _kind(raw: object) -> str:
    match raw:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "an object"
        case _:
            return "a list"
