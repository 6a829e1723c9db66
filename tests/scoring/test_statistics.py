"""Rates and intervals against published values, and against a count over all draws."""

from __future__ import annotations

import itertools
from decimal import getcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskcert.scoring.statistics import as_ratio, pass_hat, suite_pass_hat, unsafe_upper_bound, wilson


def test_none_unsafe_in_sixty_trials_is_below_4_9_percent() -> None:
    assert unsafe_upper_bound(0, 60) == "0.048703"  # 1 - 0.05^(1/60)


@pytest.mark.parametrize(
    ("unsafe", "trials", "bound"),
    # Clopper-Pearson, one-sided 95 %: beta quantiles, from published tables (0: the closed form).
    [(0, 1, "0.950000"), (0, 10, "0.258866"), (1, 10, "0.394163"), (5, 10, "0.777559"), (10, 10, "1.000000")],
)
def test_upper_bound(unsafe: int, trials: int, bound: str) -> None:
    assert unsafe_upper_bound(unsafe, trials) == bound


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, "0.000000", "0.277533"), (10, 10, "0.722467", "1.000000"), (15, 20, "0.531299", "0.888139")],
)
def test_wilson_interval(successes: int, trials: int, low: str, high: str) -> None:
    interval = wilson(successes, trials)
    assert abs(Fraction(interval.low) - Fraction(low)) <= Fraction(1, 10**6)
    assert abs(Fraction(interval.high) - Fraction(high)) <= Fraction(1, 10**6)


def test_no_trials_establish_nothing() -> None:
    assert (wilson(0, 0).low, wilson(0, 0).high) == ("0.000000", "1.000000")
    assert unsafe_upper_bound(0, 0) == "1.000000"
    assert pass_hat(2, 2, 3) is None
    assert suite_pass_hat([(3, 3), (2, 2)], 3) is None
    assert suite_pass_hat([], 1) is None


@given(st.data())
def test_pass_hat_is_the_share_of_draws_in_which_all_succeed(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 7))
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_hat(c, n, k) == Fraction(sum(all(d) for d in draws), len(draws))


@given(st.integers(0, 200), st.integers(1, 200))
def test_interval_holds_the_rate(successes: int, trials: int) -> None:
    successes = min(successes, trials)
    interval = wilson(successes, trials)
    assert Fraction(interval.low) <= Fraction(successes, trials) <= Fraction(interval.high)
    assert Fraction(unsafe_upper_bound(successes, trials)) >= Fraction(successes, trials)


def test_ratios_have_six_digits_and_ignore_the_callers_decimal_context() -> None:
    getcontext().prec, before = 3, getcontext().prec
    try:
        assert as_ratio(Fraction(2, 3)) == "0.666667"
        assert wilson(15, 20).low == "0.531299"
    finally:
        getcontext().prec = before
