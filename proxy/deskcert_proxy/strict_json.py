"""JSON that every reader reads alike (RFC 8259): UTF-8, unique keys, no NaN, whole characters, bounded depth."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Never

from deskcert_proxy.request import Unreadable

__all__ = [
    "MAX_DEPTH",
    "NotJson",
    "is_loose_json",
    "loads",
    "looks_like_json",
    "looks_wide",
    "maps",
    "unfolded",
    "utf8",
]

MAX_DEPTH: Final = 200
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_DEPTH: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


_IGNORED: Final = r"(?>(?:[\s\ufeff]|(?://|\#)[^\n]*\n|/\*(?:[^*]|\*(?!/))*+\*/)*+)"
_LOOSE: Final = re.compile(
    rf"{_IGNORED}(?:\[{_IGNORED})?\{{{_IGNORED}(?:\"[^\"\n]*\"|'[^'\n]*'|[\w$-]+){_IGNORED}[:=]", re.DOTALL
)
_WIDE: Final = re.compile(rb"""[{\["<]\x00|\x00[{\["<]\x00|\x00{3}[{\["<]\x00""")
_MAX_INT: Final = 400
"""Digits; longer ones Python itself refuses at some length."""


class NotJson(ValueError):
    """No JSON reader would take it."""


def looks_like_json(text: str) -> bool:
    return text.lstrip(" \t\r\n\ufeff")[:1] in ("{", "[")


def is_loose_json(text: str) -> bool:
    """Does it begin with an object and its first key, as JSON5 with comments might? For text that strict readers refuse
    and lenient ones may take: bare keys, comments, a comma too many, something behind the end."""
    return _LOOSE.match(text) is not None


def looks_wide(data: bytes) -> bool:
    """UTF-16 or UTF-32 without a mark: a first character of JSON or XML among null bytes."""
    return _WIDE.match(data) is not None


def utf8(data: bytes) -> str:
    """Text of a body; a byte order mark is dropped. Raises `Unreadable`."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        raise Unreadable("the body is UTF-16 or UTF-32")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("the body is not UTF-8") from error
    if looks_wide(data):
        raise Unreadable("the body is UTF-16 or UTF-32 without a mark")
    return text


def loads(text: str) -> Any:
    """Raises `NotJson` for what no reader takes, `Unreadable` for what readers take differently.

    Numbers with a fraction or an exponent come as `Decimal`, so that none is rounded before it is compared.
    """
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_constant,
            parse_float=_number,
            parse_int=_integer,
        )
    except Unreadable:
        raise
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error
    if "\\u" in text:
        _check_characters(value)
    return value


def _check_depth(text: str) -> None:
    depth = 0
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return
    for token in _DEPTH.finditer(text):
        if token[0][0] in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise Unreadable(f"JSON nested deeper than {MAX_DEPTH}")
        elif token[0] in "]}":
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unreadable("a JSON key stands there twice")
    return found


def _constant(name: str) -> Never:
    raise Unreadable(f"{name} is no JSON, but some readers take it")


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise Unreadable(f"the number {text[:40]} cannot be read") from error


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _MAX_INT else _number(text)


def unfolded(document: Any) -> Iterator[Any]:
    """Documents written as texts: a text that is JSON, or a list of such, as SockJS sends it."""
    for item in document if isinstance(document, list) else [document]:
        if isinstance(item, str) and looks_like_json(item):
            try:
                yield loads(item)
            except NotJson:
                continue


def maps(document: Any) -> Iterator[dict[str, Any]]:
    """Objects down to the third level: a payload may stand inside an envelope."""
    level = [document]
    for _ in range(4):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                yield item
                below += item.values()
            elif isinstance(item, list):
                below += item
        level = below


def _check_characters(value: Any) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if _SURROGATE.search(item):
                raise Unreadable("half of a surrogate pair in a JSON text")
        elif isinstance(item, dict):
            stack += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            stack += item
