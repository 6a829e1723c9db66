"""Lines that are recognised by their form alone: only such as the full check accepts, and with what it would say."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskcert_ledger.classes import classify
from deskcert_ledger.line import encode
from deskcert_ledger.merkle import Tree, leaf_hash, subtrees
from deskcert_ledger.reader import check_record
from deskcert_ledger.scan import _CLOSELY as CLOSELY
from deskcert_ledger.shapes import Shapes, Taken
from deskcert_schema.errors import LedgerFormatError

DIGEST = "ab" * 32


def record(seq: int, choose: random.Random) -> dict[str, Any]:
    head = {"v": 1, "seq": seq, "t": "2026-11-30T20:00:00.000100Z", "m": choose.randrange(10**9), "w": "guard"}
    match choose.randrange(4):
        case 0:
            looks = [{"t_us": 1, "changed": choose.choice([{}, {"a": "pass"}])} for _ in range(choose.randrange(3))]
            return {
                **head,
                "kind": "action.intent",
                "n": choose.randrange(3),
                "args": {},
                "a": [1, "x"],
                "looks": looks,
            }
        case 1:
            delivery = choose.choice(["delivered_verified", "unknown", "not_delivered"])
            of = choose.randrange(seq) if seq else 0
            return {**head, "kind": "action.result", "of": of, "ok": choose.random() < 0.5, "delivery": delivery}
        case 2:
            tree = {"blob": DIGEST, "bytes": choose.randrange(16, 99)}
            return {**head, "kind": "observation", "title": choose.choice(["Orders", "Größe · ≤"]), "tree": tree}
        case _:
            deep = {"a": {"b": -choose.randrange(1, 9)}}
            return {**head, "kind": "claim", "text": "x" * choose.randrange(9), "deep": deep}


def lines_of(count: int, choose: random.Random, first: int = 1) -> list[bytes]:
    return [encode(record(seq, choose)) for seq in range(first, first + count)]


def taught() -> Shapes:
    """One that has seen every form."""
    shapes = Shapes(CLOSELY)
    lines = lines_of(200, random.Random(1))
    shapes.learn([check_record(line, seq) for seq, line in enumerate(lines, 1)], lines)
    return shapes


def by_the_full_check(lines: list[bytes], seq: int, skip: list[int]) -> Taken | None:
    """What is right, of all lines but those in `skip`; None when one of the others is no record."""
    right = Taken(skip)
    for at, line in enumerate(lines):
        if at in skip:
            continue
        try:
            row = check_record(line, seq + at)
        except LedgerFormatError:
            return None
        right.kinds[row["kind"]] += 1
        if row["kind"] == "action.intent":
            right.opened.append(seq + at)
        elif row["kind"] == "action.result":
            right.closed += [row["of"]] if row["of"] < seq + at else []
            if row["delivery"] in ("unknown", "delivery_uncertain"):
                right.uncertain.append((at, {"kind": "action.result", "delivery": row["delivery"]}))
        right.references += [(at, value) for value in row.values() if isinstance(value, dict) and "blob" in value]
        right.last_kind = row["kind"] if at == len(lines) - 1 else ""
    return right


def same(taken: Taken, lines: list[bytes], seq: int) -> bool:
    right = by_the_full_check(lines, seq, taken.unknown)
    taken.kinds = Counter({kind: count for kind, count in taken.kinds.items() if count})
    taken.uncertain = [item for item in taken.uncertain if classify(item[1])]  # it may hand over too many
    return taken == right


def test_lines_of_known_forms_are_taken_with_what_the_full_check_says(fresh_seed: int) -> None:
    shapes = taught()
    for turn in range(20):
        lines = lines_of(50, random.Random(fresh_seed + turn), first=7)
        taken = shapes.take(lines, 7)
        assert taken is not None
        assert taken.unknown == []
        assert same(taken, lines, 7)


def test_no_changed_byte_passes_that_the_full_check_refuses(fresh_seed: int) -> None:
    """Every place of a line, with bytes that mean something to JSON and a random one."""
    choose = random.Random(fresh_seed)
    shapes = taught()
    lines = lines_of(4, choose, first=70)
    passed = left = 0
    for number, line in enumerate(lines):
        for place in range(len(line)):
            for byte in (*choose.sample(b'"\\{}[],:0-.eE\n\t \x7f\x00\xc3', 5), choose.randrange(256)):
                changed = [*lines[:number], line[:place] + bytes([byte]) + line[place + 1 :], *lines[number + 1 :]]
                changed = b"\n".join(changed).split(b"\n")  # as lines come: none holds a newline
                taken = shapes.take(changed, 70)
                if taken is None:
                    left += 1
                    continue
                passed += not taken.unknown
                left += bool(taken.unknown)
                assert same(taken, changed, 70), changed[number]
    assert passed > 20  # other digits and letters
    assert left > 300


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"n":1', b'"n":01'),
        (b'"n":1', b'"n":-0'),
        (b'"n":1', b'"n":1.0'),
        (b'"n":1', b'"n":1e5'),
        (b'"n":1', b'"n":9007199254740992'),
        (b'"n":1', b'"n":1,"n":1'),
        (b'"n":1', b'"n": 1'),
        (b'"seq":5', b'"seq":6'),
        (b'"x"', b'"\\u0041"'),
        (b'"x"', b'"\xff"'),
        (b'"x"', b'"\xed\xa0\x80"'),
        (b'"x"', b'"\t"'),
        (b'"x"', '"\ufffd:ü"'.encode()),
        (b'"kind":"action.intent"', b'"kind":"recovery"'),
        (b'"kind":"action.intent"', b'"kind":"run.end"'),
        (b'"kind":"action.intent"', b'"kind":""'),
        (b"[1,", b"[,1,"),
        (b'"x"]', b'"x",]'),
        (b'"looks":[]', b'"looks":[{"t_us":1,"changed":{}},]'),
        (b'"looks":[]', b'"looks":[{"t_us":1,"changed":{},"changed":{}}]'),
        (b'"looks":[]', b'"looks":[{"changed":{},"t_us":1}]'),
    ],
)
def test_other_spellings_are_left_to_the_full_check(old: bytes, new: bytes) -> None:
    head = {"v": 1, "seq": 5, "t": "2026-11-30T20:00:00.000100Z", "m": 5, "w": "guard", "kind": "action.intent"}
    line = encode({**head, "n": 1, "args": {}, "a": [1, "x"], "looks": []})
    shapes = taught()
    taken = shapes.take([line], 5)
    assert taken is not None
    assert taken.unknown == []
    assert old in line
    taken = shapes.take([line.replace(old, new, 1)], 5)
    assert taken is None or taken.unknown == [0]


def test_a_reference_within_a_list_is_not_learned() -> None:
    """A group of an expression within a repetition holds its last match only."""
    head = {"v": 1, "seq": 5, "t": "2026-11-30T20:00:00.000100Z", "m": 5, "w": "guard", "kind": "observation"}
    line = encode({**head, "shots": [{"blob": DIGEST, "bytes": 16}, {"blob": "cd" * 32, "bytes": 16}]})
    shapes = taught()
    shapes.learn([check_record(line, 5)] * 50, [line] * 50)
    taken = shapes.take([line], 5)
    assert taken is not None
    assert taken.unknown == [0]


def test_two_lines_are_never_taken_for_one_and_one_for_two() -> None:
    shapes = taught()
    first, second = lines_of(2, random.Random(3), first=8)
    assert shapes.take([first, second], 8) is not None
    taken = shapes.take([first, b"", second], 8)
    assert taken is not None
    assert taken.unknown == [1, 2]
    taken = shapes.take([first + second], 8)
    assert taken is not None
    assert taken.unknown == [0]


@settings(max_examples=60)
@given(st.lists(st.integers(0, 70), min_size=1, max_size=6))
def test_many_leaves_at_once_make_the_same_tree(parts: list[int]) -> None:
    leaves = [leaf_hash(bytes([number])) for number in range(sum(parts) % 256)]
    one, many, joined = Tree(), Tree(), Tree()
    for leaf in leaves:
        one.append(leaf)
    at = 0
    for part in parts:
        for level, node in subtrees(at, leaves[at : at + part]):
            joined.push(level, node)
        many.extend(leaves[at : at + part])
        at += part
    assert (many.size, many.root(), many._edge) == (one.size, one.root(), one._edge)
    assert (joined.size, joined.root(), joined._edge) == (one.size, one.root(), one._edge)
