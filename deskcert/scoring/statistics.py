"""Rates, intervals and pass^k. Exact: fractions and `decimal`, never a float, so that every machine gets the same text.

Sources: the Wilson score interval (E. B. Wilson, 1927); the one-sided upper bound by Clopper and Pearson (1934), whose
case of 0 failures is 1 - 0.05^(1/n); pass^k = C(c, k) / C(n, k), the chance that k trials drawn from n all succeed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from math import comb
from typing import Final

__all__ = ["Interval", "as_ratio", "pass_hat", "suite_pass_hat", "unsafe_upper_bound", "wilson"]

_PRECISION: Final = Context(prec=50, rounding=ROUND_HALF_EVEN)
_Z: Final = Decimal("1.959963984540054235524594430520551527956")
"""The normal quantile of 0.975: two-sided 95 %."""
_ALPHA: Final = Decimal("0.05")
_SIX: Final = Decimal("0.000001")
_HALVINGS: Final = 40


@dataclass(frozen=True, slots=True)
class Interval:
    """Two ratios as decimal strings of 6 digits, rounded outwards."""

    low: str
    high: str


def as_ratio(value: Fraction | Decimal, rounding: str = ROUND_HALF_EVEN) -> str:
    """`0.833333`. Values outside 0 to 1 are cut to it: rounding outwards must not leave it."""
    with localcontext(_PRECISION):
        number = Decimal(value.numerator) / Decimal(value.denominator) if isinstance(value, Fraction) else value
        number = number.quantize(_SIX, rounding=rounding)
        return f"{min(max(number, Decimal('0.000000')), Decimal('1.000000')):f}"


def wilson(successes: int, trials: int) -> Interval:
    """The 95 % score interval. With no trials everything is possible: 0 to 1."""
    if trials == 0:
        return Interval("0.000000", "1.000000")
    with localcontext(_PRECISION):
        n, p, zz = Decimal(trials), Decimal(successes) / Decimal(trials), _Z * _Z
        centre = p + zz / (2 * n)
        spread = _Z * (p * (1 - p) / n + zz / (4 * n * n)).sqrt()
        scale = 1 + zz / n
        low = Decimal(0) if successes == 0 else (centre - spread) / scale
        high = Decimal(1) if successes == trials else (centre + spread) / scale
        return Interval(as_ratio(low, ROUND_FLOOR), as_ratio(high, ROUND_CEILING))


def unsafe_upper_bound(unsafe: int, trials: int) -> str:
    """With 95 % confidence the true rate is below this: there, as few as `unsafe` in `trials` has a chance of 5 %."""
    if trials == 0 or unsafe >= trials:
        return "1.000000"
    with localcontext(_PRECISION):
        low, high = Decimal(0), Decimal(1)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if _at_most(unsafe, trials, middle) > _ALPHA:
                low = middle
            else:
                high = middle
        return as_ratio(high)


def _at_most(count: int, trials: int, p: Decimal) -> Decimal:
    """P(X <= count) for X binomial: the terms by their ratio, from the first."""
    q = 1 - p
    term = q**trials
    total = term
    for i in range(count):
        term = term * (trials - i) / (i + 1) * p / q
        total += term
    return total


def pass_hat(successes: int, trials: int, k: int) -> Fraction | None:
    """None where fewer than k trials count: not established."""
    return None if trials < k or k < 1 else Fraction(comb(successes, k), comb(trials, k))


def suite_pass_hat(scenarios: Iterable[tuple[int, int]], k: int) -> Fraction | None:
    """The mean over scenarios of (successes, trials); None where one of them has too few trials, or there is none."""
    values = [pass_hat(successes, trials, k) for successes, trials in scenarios]
    known = [v for v in values if v is not None]
    return sum(known, Fraction(0)) / len(known) if known and len(known) == len(values) else None
