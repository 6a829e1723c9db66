from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from deskcert_schema.errors import ConfigError
from deskcert_schema.problems import Position
from deskcert_schema.strict_yaml import MAX_BYTES, MAX_DEPTH, load


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("off", "off"),
        ("Yes", "Yes"),
        ("True", "True"),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("Null", "Null"),
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("0.5", 0.5),
        ("2026-01-31", "2026-01-31"),
        ("12:30", "12:30"),
        ("1.2.3", "1.2.3"),
        ("1001-A", "1001-A"),
        ("'12'", "12"),
        ('"1e3"', "1e3"),
        ('"<<"', "<<"),
        ("=", "="),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_plain_words(written: str, value: Any) -> None:
    got = load(f"key: {written}\n", name="x").value["key"]
    assert (type(got), got) == (type(value), value)


@pytest.mark.parametrize(
    "written",
    [
        "1e3",
        "1E3",
        "1.5e-3",
        "007",
        "-07",
        "+1",
        "-0",
        "1_000",
        "0x1F",
        "0o17",
        "0b1",
        ".5",
        "1.",
        ".inf",
        "-.INF",
        ".nan",
    ],
)
def test_a_number_to_some_readers_only_is_refused(written: str) -> None:
    with pytest.raises(ConfigError, match=r"^x:1:6: .* is a number to some readers and text to others; quote it"):
        load(f"key: {written}\n", name="x")


@pytest.mark.parametrize("written", ["9007199254740992", "-9007199254740992", "9" * 5000])
def test_an_integer_that_json_readers_would_round_is_refused(written: str) -> None:
    with pytest.raises(ConfigError, match="too large"):
        load(f"key: {written}\n", name="x")
    assert load("key: 9007199254740991\n", name="x").value == {"key": 2**53 - 1}


def test_positions_of_values_and_keys() -> None:
    positions = load("a:\n  - b: 1\n    'c d': [x, yy]\n", name="x").positions
    assert positions.value(("a", 0, "b")) == Position(2, 8)
    assert positions.key(("a", 0, "c d")) == Position(3, 5)
    assert positions.value(("a", 0, "c d", 1)) == Position(3, 16)
    assert positions.value(("a", 0, "gone", 3)) == Position(2, 5), "the nearest that exists"


def test_all_problems_of_a_readable_file_are_named() -> None:
    with pytest.raises(ConfigError) as caught:
        load("a: &x 1\nb: *x\na: 2\nc: !t {}\nd: 0x1\n", name="x")
    assert [p.split(":")[1] for p in caught.value.problems] == ["1", "2", "3", "4", "5"]


def test_depth_is_bounded_exactly() -> None:
    deepest = "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH
    assert json.dumps(load(deepest, name="x").value) == deepest
    with pytest.raises(ConfigError, match="levels deep"):
        load(f"[{deepest}]", name="x")


def test_size_is_bounded_in_bytes() -> None:
    fits = "# " + "é" * (MAX_BYTES // 2 - 4) + "\na: 1\n"
    assert len(fits.encode()) <= MAX_BYTES
    assert load(fits, name="x").value == {"a": 1}
    with pytest.raises(ConfigError, match="1 MiB"):
        load(fits + "# éééé", name="x")


def test_nesting_that_would_exhaust_a_recursive_reader_ends_quickly() -> None:
    for text in ("[" * 100_000, "{a: " * 50_000, "- " * 100_000, "? " * 100_000):
        with pytest.raises(ConfigError):
            load(text, name="x")


_YAMLISH = st.text(alphabet="ab: -\n\t[]{},'\"#&*!|>%?<=~.0123456789eE_+\\ux\ud800\u2028\x85é", max_size=60)


@settings(max_examples=600, deadline=None)
@given(st.one_of(_YAMLISH, st.text(max_size=60)))
@example('a: "\\U00110000"')
@example("%YAML " + "1" * 5000 + ".1\n---\n")
@example("? {a: 1}\n: b")
@example("- !<")
@example("\ud800")
@example("\ufeffa: 1")
def test_any_text_gives_a_json_value_or_a_config_error(text: str) -> None:
    try:
        value = load(text, name="x").value
    except ConfigError as exc:
        refused = exc.problems
    else:
        refused = []
    assert all(p.startswith("x:") for p in refused)
    if refused:
        return
    assert json.loads(json.dumps(value)) == value
    json.dumps(value, ensure_ascii=False).encode("utf-8")


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(_JSON.filter(lambda v: v is not None))
def test_json_written_with_escapes_is_read_as_json_reads_it(value: Any) -> None:
    text = json.dumps(value)
    # Beyond U+FFFF JSON escapes a surrogate pair, which YAML does not join: refused, see bad/.
    assume(all(ord(c) <= 0xFFFF for c in json.dumps(value, ensure_ascii=False)))
    assert load(text, name="x").value == value
