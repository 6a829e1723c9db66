"""Lines that are recognised by their form alone: only such as the full check accepts, and with what it would say."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskcert_ledger.batch import LineChecker
from deskcert_ledger.classes import WATCHED_KINDS
from deskcert_ledger.line import encode
from deskcert_ledger.merkle import Tree, leaf_hash
from deskcert_ledger.reader import check_record
from deskcert_ledger.shapes import Checked, Shapes
from deskcert_schema.errors import LedgerFormatError

WATCHED = WATCHED_KINDS | {"action.intent", "recovery"}
CLOSELY = WATCHED - {"action.intent", "action.result"}


def record(seq: int, choose: random.Random) -> dict[str, Any]:
    head = {"v": 1, "seq": seq, "t": "2026-11-30T20:00:00.000100Z", "m": choose.randrange(10**9), "w": "guard"}
    match choose.randrange(3):
        case 0:
            return {**head, "kind": "action.intent", "n": choose.randrange(3), "args": {}, "a": [1, "x", None]}
        case 1:
            delivery = choose.choice(["delivered_verified", "unknown", "not_delivered"])
            of = choose.randrange(seq) if seq else 0
            return {**head, "kind": "action.result", "of": of, "ok": choose.random() < 0.5, "delivery": delivery}
        case _:
            return {
                **head,
                "kind": "claim",
                "text": "x" * choose.randrange(9),
                "deep": {"a": {"b": -choose.randrange(1, 9)}},
            }


def lines_of(count: int, choose: random.Random, first: int = 1) -> list[bytes]:
    return [encode(record(seq, choose)) for seq in range(first, first + count)]


def taught() -> Shapes:
    """One that has seen every form."""
    shapes = Shapes(CLOSELY)
    for seq, line in enumerate(lines_of(60, random.Random(1)), 1):
        shapes.learn(line, check_record(line, seq))
    return shapes


def by_the_full_check(lines: list[bytes], seq: int) -> tuple[list[str], dict[int, None], list[tuple[int, str]]] | None:
    try:
        rows = [check_record(line, number) for number, line in enumerate(lines, seq)]
    except LedgerFormatError:
        return None
    opened: dict[int, None] = {}
    uncertain = []
    for number, row in enumerate(rows, seq):
        if row["kind"] == "action.intent":
            opened[number] = None
        elif row["kind"] == "action.result":
            opened.pop(row["of"], None)
            if row["delivery"] == "unknown":
                uncertain.append((number - seq, "unknown"))
    return [row["kind"] for row in rows], opened, uncertain


def said(taken: Checked) -> tuple[list[str], dict[int, None], list[tuple[int, str]]]:
    opened = dict.fromkeys(taken.opened)
    for of in taken.closed:
        opened.pop(of, None)
    return taken.kinds, opened, [(index, "unknown") for index, row in taken.watched if row["delivery"] == "unknown"]


def test_lines_of_known_forms_are_taken_with_what_the_full_check_says(fresh_seed: int) -> None:
    shapes = taught()
    for turn in range(20):
        lines = lines_of(50, random.Random(fresh_seed + turn), first=7)
        taken = shapes.take(lines, 7)
        assert taken is not None
        assert said(taken) == by_the_full_check(lines, 7)


def test_no_changed_byte_passes_that_the_full_check_refuses(fresh_seed: int) -> None:
    """Every place of a line, with bytes that mean something to JSON and a random one."""
    choose = random.Random(fresh_seed)
    shapes = taught()
    lines = lines_of(6, choose, first=70)
    passed = 0
    for number, line in enumerate(lines):
        for place in range(len(line)):
            for byte in (*b'"\\{}[],:0-.eE\n\t \x7f\x00\xc3', choose.randrange(256)):
                changed = [*lines[:number], line[:place] + bytes([byte]) + line[place + 1 :], *lines[number + 1 :]]
                shapes._skip = 0
                taken = shapes.take(changed, 70)
                if taken is not None:
                    passed += 1
                    assert said(taken) == by_the_full_check(changed, 70), changed[number]
    assert passed > 100  # other digits and letters


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
        (b'"n":1', b'"n":1}\n{"v":1'),
        (b'"seq":5', b'"seq":6'),
        (b'"x"', b'"\\u0041"'),
        (b'"x"', b'"\xff"'),
        (b'"x"', b'"\t"'),
        (b'"x"', '"ü"'.encode()),
        (b'"kind":"action.intent"', b'"kind":"recovery"'),
        (b'"kind":"action.intent"', b'"kind":"run.end"'),
        (b'"kind":"action.intent"', b'"kind":""'),
    ],
)
def test_other_spellings_are_left_to_the_full_check(old: bytes, new: bytes) -> None:
    head = {"v": 1, "seq": 5, "t": "2026-11-30T20:00:00.000100Z", "m": 5, "w": "guard", "kind": "action.intent"}
    line = encode({**head, "n": 1, "args": {}, "a": [1, "x", None]})
    shapes = taught()
    assert shapes.take([line], 5) is not None
    assert old in line
    assert shapes.take([line.replace(old, new, 1)], 5) is None


def test_a_result_is_taken_when_another_kind_has_the_same_form() -> None:
    head = {"v": 1, "seq": 5, "t": "2026-11-30T20:00:00.000100Z", "m": 5, "w": "guard"}
    shapes = Shapes(CLOSELY)
    for kind in ("claim", "claim", "action.result", "action.result"):
        line = encode({**head, "kind": kind, "of": 3, "delivery": "unknown"})
        shapes.learn(line, check_record(line, 5))
    taken = shapes.take([line], 5)
    assert taken is not None
    assert (taken.closed, taken.watched[0][1]["delivery"]) == ([3], "unknown")


def test_two_lines_are_never_taken_for_one_and_one_for_two() -> None:
    shapes = taught()
    first, second = lines_of(2, random.Random(3), first=8)
    assert shapes.take([first + b"\n" + second], 8) is None
    assert shapes.take([first, second], 8) is not None
    assert shapes.take([first, b"", second], 8) is None
    assert shapes.take([first + second], 8) is None


def test_the_checker_gives_the_same_answer_in_either_way(fresh_seed: int) -> None:
    choose = random.Random(fresh_seed)
    lines = lines_of(300, choose, first=0)
    checker = LineChecker(watched=WATCHED, closely=CLOSELY, whole=False)
    kinds: list[str] = []
    taken = 0
    for at in range(0, 300, 30):
        checked = checker.check(lines[at : at + 30], at)
        assert checked is not None
        kinds += checked.kinds
        taken += bool(checked.opened)
    assert kinds == [check_record(line, seq)["kind"] for seq, line in enumerate(lines)]
    assert taken > 5


@settings(max_examples=60)
@given(st.lists(st.integers(0, 70), min_size=1, max_size=6))
def test_many_leaves_at_once_make_the_same_tree(parts: list[int]) -> None:
    leaves = [leaf_hash(bytes([number])) for number in range(sum(parts) % 256)]
    one, many = Tree(), Tree()
    for leaf in leaves:
        one.append(leaf)
    at = 0
    for part in parts:
        many.extend(leaves[at : at + part])
        at += part
    assert (many.size, many.root(), many._edge) == (one.size, one.root(), one._edge)
