"""The pack's own verifier and `ledger verify` are two programs: what one refuses in a line, the other refuses too."""

from __future__ import annotations

import random

import pytest
from conftest import ORIGIN

from deskcert_ledger import ProjectKey, pack_verifier
from deskcert_ledger.line import encode
from deskcert_ledger.note import Signer
from deskcert_ledger.reader import check_record
from deskcert_schema.errors import LedgerFormatError

HEAD = {"v": 1, "seq": 1, "t": "2026-11-30T20:00:00.000100Z", "m": 5, "w": "guard", "kind": "claim"}


def taken(line: bytes, key: ProjectKey) -> bool:
    """Does the pack's verifier take this as the second line of a run?"""
    run = pack_verifier.Run({}, None)
    run.origin = ORIGIN
    vkey = str(Signer(ORIGIN, b"\5" * 32).verifier)
    intro = key.introduce(ORIGIN, vkey)
    start = {**HEAD, "seq": 0, "kind": "run.start", "origin": ORIGIN, "vkey": vkey, "key_intro": intro}
    run.line(encode(start))
    try:
        run.line(line)
    except pack_verifier.Tampered:
        return False
    return True


def right(line: bytes) -> bool:
    try:
        check_record(line, 1)
    except LedgerFormatError:
        return False
    return True


@pytest.mark.parametrize(
    "line",
    [
        encode(HEAD),
        encode({**HEAD, "v": True}),
        encode({**HEAD, "seq": True}),
        encode({**HEAD, "m": True}),
        encode({**HEAD, "m": -1}),
        encode({**HEAD, "w": ""}),
        encode({**HEAD, "kind": ""}),
        encode({**HEAD, "t": "yesterday"}),
        encode({**HEAD, "t": "2026-11-30T20:00:00.000100"}),
        encode({**HEAD, "x": 2**53 - 1}),
        encode(HEAD)[:-1] + b',"x":9007199254740992}',
        encode(HEAD)[:-1] + b',"x":1.0}',
        encode(HEAD)[:-1] + b',"x":1e2}',
        encode(HEAD)[:-1] + b',"x":NaN}',
        encode(HEAD)[:-1] + b',"x":-0}',
        encode(HEAD)[:-1] + b',"x":1,"x":1}',
        encode(HEAD)[:-1] + b',"x":"\\u0041"}',
        encode(HEAD)[:-1] + b',"x":"\\ud800"}',
        encode(HEAD)[:-1] + b',"x":"\xed\xa0\x80"}',
        encode(HEAD)[:-1] + b',"x":"\t"}',
        encode(HEAD)[:-1] + b',"x":' + b"[" * 31 + b"]" * 31 + b"}",
        encode(HEAD)[:-1] + b',"x":' + b"[" * 32 + b"]" * 32 + b"}",
        encode(HEAD)[:-1] + b',"x":"' + b"y" * 65_536 + b'"}',
        b"\xef\xbb\xbf" + encode(HEAD),
        b"[]",
        b"",
        b"1",
    ],
)
def test_both_say_the_same_of_a_line(line: bytes, key: ProjectKey) -> None:
    assert taken(line, key) is right(line)


def test_both_say_the_same_of_any_changed_byte(key: ProjectKey, fresh_seed: int) -> None:
    choose = random.Random(fresh_seed)
    line = encode({**HEAD, "a": [1, -2, None, "é\n"], "b": {"c": True}})
    for position in range(len(line)):
        for new in {*choose.sample(b'"\\{}[],:0-.eE\n\t \x7f\x00\xc3', 6), choose.randrange(256)}:
            changed = line[:position] + bytes([new]) + line[position + 1 :]
            assert taken(changed, key) is right(changed), changed
