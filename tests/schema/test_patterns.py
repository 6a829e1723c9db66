from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskcert_schema.patterns import MAX_EXPANDED, expanded_size, is_readable


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("abc", 3),
        (r"a\{3}", 4),
        ("[0-9]{16}", 16),
        ("[]{9}]{2}", 2),
        ("(ab){3}", 9),
        ("((a{10}){10}){10}", 1110),
        ("a{2,5}b{,4}", 9),
        ("(a{3}", 3),
    ],
)
def test_counts_what_repetitions_write_out(pattern: str, size: int) -> None:
    assert expanded_size(pattern) == size


@pytest.mark.parametrize("pattern", ["((a{1000}){1000}){1000}", "(?:[0-9]{999}){999}", "a{99999999999999999999}"])
def test_a_pattern_that_would_take_the_memory_is_refused_unread(pattern: str) -> None:
    assert expanded_size(pattern) > MAX_EXPANDED
    assert not is_readable(pattern)


@pytest.mark.parametrize("pattern", ["(", "[0-9{16}", "a**", "(?P<a", "\\", "(?<=", "(" * 990])
def test_what_the_engine_cannot_read(pattern: str) -> None:
    assert not is_readable(pattern)


@pytest.mark.parametrize("pattern", ["[0-9]{4}(?:[ -]?[0-9]{4}){3}", r"(?i)pay\s?out", r"\p{L}+", "x{0,3}"])
def test_ordinary_patterns(pattern: str) -> None:
    assert is_readable(pattern)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab()[]{}0129,\\^*+?|.-P<>=!:", max_size=30))
def test_any_text_is_readable_or_not(pattern: str) -> None:
    assert is_readable(pattern) in (True, False)
