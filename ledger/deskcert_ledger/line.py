r"""The JSON subset of a ledger line, and its only two doors: `encode` and `decode`.

Unique keys, strings of valid Unicode, integers below 2^53, booleans, null, arrays; no floats; depth at most 32. Within
it the standard library and orjson write the same bytes, so what is hashed is what is on disk and nothing needs to be
canonicalised. `decode` accepts exactly what `encode` writes: it re-encodes and compares, which refuses duplicate keys,
odd escapes, spaces, exponents and minus zero at no extra cost.

Ill-formed strings (a page can hold lone surrogates, JSON in UTF-8 cannot) are escaped reversibly and marked: the string
becomes `MARK` and the text with `\` doubled and each surrogate as `\udxxx`. A well-formed string that happens to begin
with the mark is escaped too, so that `decode` always gives back what `encode` was given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from deskcert_schema.errors import ContractError, LedgerFormatError

try:  # the `fast` extra; the same bytes either way
    import orjson
except ImportError:  # pragma: no cover - covered by a test that hides the module
    orjson = None  # type: ignore[assignment]

__all__ = [
    "MARK",
    "MARK_UTF8",
    "MAX_DEPTH",
    "MAX_INT",
    "MAX_LINE_BYTES",
    "Json",
    "decode",
    "dumps",
    "dumps_strict",
    "encode",
    "escape_text",
    "is_plain",
    "loads",
    "plain",
    "too_deep",
    "unescape_text",
]

type Json = bool | int | str | list[Json] | dict[str, Json] | None

MAX_LINE_BYTES = 65_535
"""A tlog-tiles entry has a 16-bit length (C2SP tlog-tiles.md); every line can become one."""
MAX_DEPTH = 32
MAX_INT = 2**53 - 1
"""jq and JavaScript silently change larger integers."""
MARK = "\ufffd:"
"""U+FFFD and a colon: begins a string that was escaped because it is no valid Unicode."""

MARK_UTF8 = MARK.encode()
_TOO_DEEP = f"nested deeper than {MAX_DEPTH}"
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:\\|u(d[89a-f][0-9a-f]{2}))")
# Outside a string a float, and an integer that may be too large, look like this. A match within a string only costs the
# slower walk; times such as 20:25:42.123456Z, which every line has, do not match.
_SUSPECT = re.compile(rb"[:,\[]-?(?:[0-9]+(?:\.[0-9]|[eE])[0-9.eE+-]*[,}\]]|[0-9]{16})")


def escape_text(text: str) -> str:
    """`text` itself if UTF-8 can carry it and it does not begin with the mark; else its marked form."""
    if not text.startswith(MARK) and (text.isascii() or _SURROGATE.search(text) is None):
        return text
    body = text.replace("\\", "\\\\")
    return MARK + _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", body)


def unescape_text(text: str) -> str:
    """The inverse of `escape_text`. Raises `LedgerFormatError` for a marked string that it would not have written."""
    if not text.startswith(MARK):
        return text
    body = text[len(MARK) :]
    original = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", body)
    if escape_text(original) != text:
        raise LedgerFormatError(f"a string is marked as escaped and is not: {text[:60]!a}")
    return original


def plain(value: Any, depth: int = 0, swap: Callable[[Any], Any] | None = None) -> Json:
    """A copy of `value` that `dumps` can write: mappings as dicts, sequences as lists, ill-formed strings marked.

    `swap` is asked once for every value that is no scalar, and may put another in its place (commitments, blobs).
    Raises `ContractError` for floats, integers from 2^53 on, keys that are no strings, other types, and depth over 32.
    """
    match value:
        case None | bool():
            return value
        case int():
            if not -MAX_INT <= value <= MAX_INT:
                raise ContractError(f"integer {value} does not fit a ledger line: use a decimal string")
            return int(value)
        case str():
            return escape_text(str(value))
    if depth >= MAX_DEPTH:
        raise ContractError(f"a ledger value is nested deeper than {MAX_DEPTH}")
    if swap is not None:
        value = swap(value)
    match value:
        case Mapping():
            out: dict[str, Json] = {}
            for key, item in value.items():
                if not isinstance(key, str):
                    raise ContractError(f"object keys in a ledger line are strings, not {type(key).__name__}")
                out[escape_text(str(key))] = plain(item, depth + 1, swap)
            return out
        case list() | tuple():
            return [plain(item, depth + 1, swap) for item in value]
        case float():
            raise ContractError("floats do not stand in a ledger: use whole µs, ms or 1/1000 px, or a decimal string")
    raise ContractError(f"a value of type {type(value).__name__} cannot stand in a ledger line")


def _std_dumps(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _refuse(token: str) -> Json:
    raise LedgerFormatError(f"a number that is no integer: {token[:30]}")


def _std_loads(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8"), parse_float=_refuse, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise LedgerFormatError(f"not JSON: {str(error)[:120]}") from error


def _fast_loads(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise LedgerFormatError(f"not JSON: {str(error)[:120]}") from error


dumps: Callable[[Any], bytes] = _std_dumps if orjson is None else orjson.dumps
"""Bytes of a value that `plain` returned."""
loads: Callable[[bytes], Any] = _std_loads if orjson is None else _fast_loads
"""Parse without the checks of `decode`; raises `LedgerFormatError`."""


def _std_strict(value: Any) -> bytes:
    return _std_dumps(plain(value))


def _fast_strict(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)


dumps_strict: Callable[[Any], bytes] = _std_strict if orjson is None else _fast_strict
"""Bytes of a value for which `is_plain` holds. Raises TypeError, ValueError, `ContractError` for what is no UTF-8 or no
integer below 2^53; marks nothing."""


def is_plain(value: Any, depth: int = 0) -> bool:
    """Does `value` hold nothing but exact built-in types that a ledger line has, and nothing that could be taken for a
    reference or a commitment? Strings and the size of integers are not looked at."""
    if type(value) is dict:
        if depth >= MAX_DEPTH or "blob" in value or "_sd" in value:
            return False
        for key, item in value.items():
            if type(key) is not str:
                return False
            kind = type(item)
            if kind is str or kind is int or kind is bool or item is None:
                continue
            if not is_plain(item, depth + 1):
                return False
        return True
    if type(value) is list:
        if depth >= MAX_DEPTH:
            return False
        for item in value:
            kind = type(item)
            if not (kind is str or kind is int or kind is bool or item is None or is_plain(item, depth + 1)):
                return False
        return True
    return type(value) in _SCALARS


_SCALARS = frozenset({str, int, bool, type(None)})


def encode(value: Any, *, limit: int = MAX_LINE_BYTES) -> bytes:
    """The bytes of `value`. Raises `ContractError` when it is outside the subset or longer than `limit` bytes."""
    raw = dumps(plain(value))
    if len(raw) > limit:
        raise ContractError(f"{len(raw)} bytes where at most {limit} fit")
    return raw


def decode(raw: bytes, *, limit: int = MAX_LINE_BYTES) -> Any:
    """The value of `raw`, marked strings restored. Raises `LedgerFormatError` for all that `encode` would not write."""
    if len(raw) > limit:
        raise LedgerFormatError(f"{len(raw)} bytes where at most {limit} are allowed")
    value = loads(raw)
    if _SUSPECT.search(raw) is not None or raw[:1] not in b"{[":
        _check(value, 0)
    elif raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and too_deep(value):
        raise LedgerFormatError(_TOO_DEEP)
    try:
        same = dumps(value) == raw
    except (TypeError, ValueError, RecursionError) as error:  # lone surrogates from "\ud800", too deep
        raise LedgerFormatError("not in the ledger's JSON subset") from error
    if not same:
        raise LedgerFormatError("not in its one spelling (re-serialised by another program?)")
    return _restore(value) if MARK_UTF8 in raw else value


def _check(value: Any, depth: int) -> None:
    if isinstance(value, float):
        raise LedgerFormatError("a number that is no integer")
    if isinstance(value, int) and not -MAX_INT <= value <= MAX_INT:
        raise LedgerFormatError("an integer of 2^53 or more")
    if isinstance(value, dict | list):
        if depth >= MAX_DEPTH:
            raise LedgerFormatError(_TOO_DEEP)
        for item in value.values() if isinstance(value, dict) else value:
            _check(item, depth + 1)


def too_deep(value: Any, left: int = MAX_DEPTH) -> bool:
    """Is a parsed value nested deeper than `left`? Looks at objects and arrays only."""
    if type(value) is not dict and type(value) is not list:
        return False
    if left == 0:
        return True
    for item in value.values() if type(value) is dict else value:
        if (type(item) is dict or type(item) is list) and too_deep(item, left - 1):
            return True
    return False


def _restore(value: Any) -> Any:
    if isinstance(value, str):
        return unescape_text(value)
    if isinstance(value, dict):
        return {unescape_text(key): _restore(item) for key, item in value.items()}
    return [_restore(item) for item in value] if isinstance(value, list) else value
