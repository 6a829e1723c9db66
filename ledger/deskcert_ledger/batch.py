"""Checking many lines at once: the same answer as `check_record` line by line, in a fraction of the time.

Where anything at all is unusual it answers None, and the caller goes line by line, which finds place and reason.
Batches are small on purpose: thousands of parsed records kept at once make the garbage collector the largest cost.
"""

from __future__ import annotations

import re
from itertools import repeat
from typing import Any

from deskcert_ledger.line import MARK, MAX_DEPTH, MAX_LINE_BYTES, too_deep
from deskcert_ledger.payload import FORMAT_VERSION
from deskcert_ledger.reader import TIME

try:
    import orjson
except ImportError:  # pragma: no cover - without the `fast` extra every line takes the slow way
    orjson = None  # type: ignore[assignment]

__all__ = ["check_batch"]

# How orjson writes a float: with a point, or with an exponent. In a string it is not followed by one of these.
_POINT = re.compile(rb"\.[0-9]+[,}\]e]")
_EXPONENT = re.compile(rb"e[-+]?[0-9]{1,3}[,}\]]")
_MARK = MARK.encode()


def check_batch(lines: list[bytes], seq: int) -> list[dict[str, Any]] | None:
    """The objects of `lines`, numbered from `seq`, if `check_record` would accept every one of them; else None.

    It may also answer None for good lines.
    """
    if orjson is None:
        return None
    whole = b"\n".join(lines)
    if _POINT.search(whole) or _EXPONENT.search(whole) or _MARK in whole:
        return None
    if max(map(len, lines)) > MAX_LINE_BYTES:
        return None
    try:
        rows: list[dict[str, Any]] = list(map(orjson.loads, lines))
        written = list(map(orjson.dumps, rows, repeat(None), repeat(orjson.OPT_STRICT_INTEGER)))
        if written != lines or not _headers(rows, seq):
            return None
        bushy = (row for row, line in zip(rows, lines, strict=True) if line.count(b"{") + line.count(b"[") > MAX_DEPTH)
        if any(map(too_deep, bushy)):
            return None
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None
    return rows


def _headers(rows: list[dict[str, Any]], seq: int) -> bool:
    count = len(rows)
    numbers = [row["seq"] for row in rows]
    times = [row["m"] for row in rows]
    words = [row["w"] for row in rows] + [row["kind"] for row in rows]
    return (
        {type(row) for row in rows} == {dict}
        and [row["v"] for row in rows] == [FORMAT_VERSION] * count
        and {type(row["v"]) for row in rows} == {int}
        and numbers == list(range(seq, seq + count))
        and set(map(type, numbers)) == {int}
        and set(map(type, times)) == {int}
        and min(times) >= 0
        and set(map(type, words)) == {str}
        and "" not in words
        and all(map(TIME.fullmatch, [row["t"] for row in rows]))
    )
