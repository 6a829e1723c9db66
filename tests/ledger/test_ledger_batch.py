"""The fast way through many lines answers as the slow way does, or leaves the answer to it."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deskcert_ledger.batch import check_batch
from deskcert_ledger.line import encode
from deskcert_ledger.reader import check_record
from deskcert_schema.errors import LedgerFormatError

HEAD: dict[str, Any] = {"v": 1, "seq": 0, "t": "2026-11-30T20:00:00.000100Z", "m": 5, "w": "guard", "kind": "claim"}


def line(seq: int, **fields: Any) -> bytes:
    return encode({**HEAD, "seq": seq, **fields})


def slowly(lines: list[bytes]) -> list[dict[str, Any]] | None:
    try:
        return [check_record(item, seq) for seq, item in enumerate(lines)]
    except LedgerFormatError:
        return None


def test_ordinary_lines_take_the_fast_way() -> None:
    lines = [line(seq, text='1.5 e "5"', n=-3, deep=[[[]]], digest="a3e5" * 16) for seq in range(5)]
    assert check_batch(lines, 0) == slowly(lines)
    assert check_batch(lines, 0) is not None


@pytest.mark.parametrize(
    "bad",
    [
        line(2),
        line(1, m=-1),
        line(1, v=2),
        line(1, v=True),
        line(1).replace(b'"seq":1', b'"seq":true'),
        line(1, t="yesterday"),
        line(1, t=5),
        line(1, w=""),
        line(1, kind=7),
        line(1) + b" ",
        line(1).replace(b'"m":5', b'"m":5.0'),
        line(1)[:-1] + b',"x":1e16}',
        line(1)[:-1] + b',"x":1e-7}',
        line(1)[:-1] + b',"x":[1.5]}',
        line(1)[:-1] + b',"x":9007199254740992}',
        line(1)[:-1] + b',"x":1,"x":2}',
        line(1)[:-1] + b',"x":' + b"[" * 33 + b"]" * 33 + b"}",
        line(1)[:-1] + b',"x":"\\ud800"}',
        b"[]",
        b"1",
        b"",
        b'{"v":1}',
        line(1)[:-1] + b',"x":"' + b"y" * 65535 + b'"}',
    ],
)
def test_a_bad_line_never_passes_with_good_ones(bad: bytes) -> None:
    lines = [line(0), bad, line(2)]
    assert slowly(lines) is None
    assert check_batch(lines, 0) is None


@given(st.lists(st.recursive(st.integers() | st.floats() | st.text() | st.booleans() | st.none(),
                             lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8),
                min_size=1, max_size=4), st.binary(max_size=3), st.integers(0, 400))  # fmt: skip
@example([1e16], b"", 0)
@example(["\ufffd:x"], b"", 0)
def test_what_the_fast_way_takes_the_slow_way_takes(values: list[Any], junk: bytes, place: int) -> None:
    lines = []
    for seq, value in enumerate(values):
        try:
            lines.append(orjson.dumps({**HEAD, "seq": seq, "x": value}))
        except TypeError:
            lines.append(json.dumps({**HEAD, "seq": seq, "x": value}).encode())
    lines[0] = lines[0][:place] + junk + lines[0][place:] if junk else lines[0]
    fast = check_batch(lines, 0)
    if fast is not None:
        assert fast == slowly(lines)
