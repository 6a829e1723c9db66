"""The JSON subset: one spelling, both libraries the same bytes, documented errors only."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deskcert_ledger.line import MARK, MAX_DEPTH, MAX_INT, MAX_LINE_BYTES, decode, encode
from deskcert_schema.errors import ContractError, LedgerFormatError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
any_texts = texts | st.text(st.sampled_from("a\\u\ud800\udfff\ufffd:é😀"), max_size=12)
ints = st.integers(-MAX_INT, MAX_INT)


def trees(strings: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | ints | strings,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(strings, inner, max_size=5),
        max_leaves=20,
    )


@given(trees(any_texts))
@example("\ud83d\ude00")  # two halves that JSON would join
@example(MARK)
@example({MARK + "\\": [MARK + "\ud800"]})
def test_what_is_written_is_read_back(value: Any) -> None:
    assert decode(encode(value, limit=1 << 20), limit=1 << 20) == value


@given(trees(texts))
def test_both_libraries_write_the_same_bytes(value: Any) -> None:
    assert orjson.dumps(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@given(st.binary(max_size=200) | trees(texts).map(lambda v: json.dumps(v).encode()))
@example(b'{"a":1,"a":2}')
@example(b'{"a":1.0}')
@example(b"[1e5]")
@example(b"1.5")
@example(b"-0")
@example(b"9007199254740992")
@example(b"[-9007199254740993]")
@example(b'["\\ud800"]')
@example(b'["\\u0041"]')
@example(b"[1 ]")
@example(b"[" * 40 + b"]" * 40)
@example(b"[" * 30000)
@example('["�:\\\\x"]'.encode())
@example('["�:plain"]'.encode())
@example(b"NaN")
@example(b"\xff")
def test_only_our_own_spelling_is_read(raw: bytes) -> None:
    try:
        value = decode(raw)
    except LedgerFormatError:
        return
    assert encode(value) == raw


@pytest.mark.parametrize(
    "raw",
    [b'{"a":1,"a":2}', b'{"a":1.5}', b"[1e5]", b"[-0]", b"[9007199254740992]", b"[1 ]", b'["\\ud800"]', b"[1]\r", b""],
)
def test_outside_the_subset_is_refused(raw: bytes) -> None:
    with pytest.raises(LedgerFormatError):
        decode(raw)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_depth_and_length_have_limits() -> None:
    assert decode(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    with pytest.raises(ContractError):
        encode(nested(MAX_DEPTH + 1))
    with pytest.raises(LedgerFormatError):
        decode(b"[" * 33 + b"]" * 33)
    assert len(encode("x" * (MAX_LINE_BYTES - 2))) == MAX_LINE_BYTES
    with pytest.raises(ContractError):
        encode("x" * (MAX_LINE_BYTES - 1))
    with pytest.raises(LedgerFormatError):
        decode(b'"' + b"x" * (MAX_LINE_BYTES - 1) + b'"')


@pytest.mark.parametrize("value", [1.0, float("nan"), 2**53, -(2**53), {1: 2}, b"x", {"a": object()}, {2}])
def test_a_value_outside_the_subset_is_not_written(value: Any) -> None:
    with pytest.raises(ContractError):
        encode(value)


def test_a_lone_surrogate_is_marked_and_valid_utf8() -> None:
    raw = encode({"name": "a\\\ud800"})
    assert raw == '{"name":"�:a\\\\\\\\\\\\ud800"}'.encode()
    assert json.loads(raw) == {"name": "�:a\\\\\\ud800"}


_WITHOUT_ORJSON = """
import json, sys
sys.modules["orjson"] = None
from deskcert_ledger import line
from deskcert_schema.errors import LedgerFormatError
assert line.orjson is None
for text in json.loads(sys.stdin.read()):
    raw = text.encode()
    try:
        answer = line.encode(line.decode(raw)).hex()
    except LedgerFormatError:
        answer = "refused"
    print(answer)
"""


def test_without_orjson_the_same_is_read_and_written() -> None:
    samples = ['{"a":1,"a":2}', "[1.5]", "[1e5]", "[9007199254740992]", '["\\ud800"]', '["\\u00e9"]', '["é😀\x7f"]']
    samples += ['{"a":[true,false,null,-5],"b":"\\n\\u0001"}', "[" * 5000, "NaN", '"x"', "[" + "9" * 5000 + "]"]
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_ORJSON], input=json.dumps(samples), capture_output=True, text=True, check=True
    )
    expected = []
    for text in samples:
        try:
            expected.append(encode(decode(text.encode())).hex())
        except LedgerFormatError:
            expected.append("refused")
    assert done.stdout.split() == expected
    assert expected.count("refused") == 9
