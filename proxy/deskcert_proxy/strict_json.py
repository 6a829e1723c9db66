"""JSON that every reader reads alike (RFC 8259): UTF-8, unique keys, no NaN, whole characters, bounded depth."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Never

from deskcert_proxy.request import Unreadable

__all__ = ["MAX_DEPTH", "NotJson", "loads", "looks_like_json", "utf8"]

MAX_DEPTH: Final = 200
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_DEPTH: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


class NotJson(ValueError):
    """No JSON reader would take it."""


def looks_like_json(text: str) -> bool:
    return text.lstrip(" \t\r\n\ufeff")[:1] in ("{", "[")


def utf8(data: bytes) -> str:
    """Text of a body; a byte order mark is dropped. Raises `Unreadable`."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        raise Unreadable("the body is UTF-16 or UTF-32")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("the body is not UTF-8") from error
    if text[:1] in ("{", "[", '"', "<") and "\0" in text[:4]:
        raise Unreadable("the body is UTF-16 or UTF-32 without a mark")
    return text


def loads(text: str) -> Any:
    """Raises `NotJson` for what no reader takes, `Unreadable` for what readers take differently.

    Numbers with a fraction or an exponent come as `Decimal`, so that none is rounded before it is compared.
    """
    _check_depth(text)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_constant, parse_float=_number)
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
