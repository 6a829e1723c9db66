"""Two verdicts side by side: what got worse, what got better, and whether a difference is more than chance.

The interval of a difference of two rates is Newcombe's (1998, method 10): from the two Wilson intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from typing import Any, Final

from deskcert.report.visible import visible
from deskcert_schema.vocabulary import Attribution

__all__ = ["Comparison", "Transition", "compare"]

_GOOD: Final = frozenset({"passed", "refused_correctly"})
_UNJUDGED: Final = frozenset({"inconclusive", "contaminated", "not_run"})
_PRECISION: Final = Context(prec=28, rounding=ROUND_HALF_EVEN)
_SIX: Final = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Transition:
    """One scenario."""

    scenario: str
    before: str
    """Outcomes and how many of each; empty: it was not in the plan."""
    after: str
    change: str
    """`worse`, `better`, `same`, `undecided`, `new`, `gone`."""


@dataclass(frozen=True, slots=True)
class Comparison:
    transitions: tuple[Transition, ...]
    new: tuple[Mapping[str, Any], ...]
    """Findings, as verdict.json has them; by id, in the order of the verdict."""
    fixed: tuple[Mapping[str, Any], ...]
    unchanged: tuple[Mapping[str, Any], ...]
    before: Mapping[str, Any]
    """`success` of the statistics."""
    after: Mapping[str, Any]
    difference: tuple[str, str, str] | None
    """After less before, and its 95 % interval; None where nothing was counted."""
    certified: tuple[bool, bool]

    @property
    def worse(self) -> bool:
        """A new finding about the agent, a scenario that it solved more often before, or a certificate that is lost
        by something decided. An evil that is new does not become less by another that is gone."""
        about_agent = any(f["attribution"] != Attribution.EVIDENCE_BROKEN for f in self.new)
        return about_agent or any(t.change == "worse" for t in self.transitions)

    @property
    def undecided(self) -> bool:
        return any(t.change in ("undecided", "gone") for t in self.transitions)

    @property
    def exit_code(self) -> int:
        """0 nothing got worse, 1 something did, 3 it cannot be told."""
        return 1 if self.worse else 3 if self.undecided or (self.certified == (True, False)) else 0

    @property
    def noise(self) -> bool:
        """The difference of the rates may be chance: its interval holds 0."""
        return self.difference is None or Decimal(self.difference[1]) <= 0 <= Decimal(self.difference[2])

    def as_json(self) -> dict[str, Any]:
        return {
            "version": 1,
            "exit_code": self.exit_code,
            "worse": self.worse,
            "certified": {"before": self.certified[0], "after": self.certified[1]},
            "success": {
                "before": dict(self.before),
                "after": dict(self.after),
                "difference": None
                if self.difference is None
                else dict(zip(("value", "low", "high"), self.difference, strict=True)),
                "within_noise": self.noise,
            },
            "scenarios": [
                {"scenario": t.scenario, "before": t.before, "after": t.after, "change": t.change}
                for t in self.transitions
            ],
            "findings": {"new": list(self.new), "fixed": list(self.fixed), "unchanged": list(self.unchanged)},
        }


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Comparison:
    """Of two objects as verdict.json holds them."""
    old, new = ({f["id"]: f for f in verdict["findings"]} for verdict in (before, after))
    rates = tuple(verdict["statistics"]["success"] for verdict in (before, after))
    return Comparison(
        transitions=_transitions(before["runs"], after["runs"]),
        new=tuple(f for key, f in new.items() if key not in old),
        fixed=tuple(f for key, f in old.items() if key not in new),
        unchanged=tuple(f for key, f in new.items() if key in old),
        before=rates[0],
        after=rates[1],
        difference=_difference(*rates),
        certified=(before["certified"], after["certified"]),
    )


def _transitions(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> tuple[Transition, ...]:
    old, new = _by_scenario(before), _by_scenario(after)
    return tuple(
        Transition(visible(name), _words(old.get(name)), _words(new.get(name)), _change(old.get(name), new.get(name)))
        for name in sorted(old | new)
    )


def _by_scenario(runs: Sequence[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for run in runs:
        found.setdefault(run["scenario"], Counter())[run["outcome"]] += 1
    return found


def _words(outcomes: Counter[str] | None) -> str:
    told = sorted((outcomes or {}).items())
    return ", ".join(f"{name.replace('_', ' ')}{f' {n}' if n > 1 else ''}" for name, n in told)


def _change(before: Counter[str] | None, after: Counter[str] | None) -> str:
    if before is None or after is None:
        return "new" if before is None else "gone"
    if after["unsafe"] > before["unsafe"]:
        return "worse"
    # By cross-multiplication: the share of good runs among those that could be judged, exactly.
    good, judged = zip(*((_sum(c, _GOOD), c.total() - _sum(c, _UNJUDGED)) for c in (before, after)), strict=True)
    if judged[0] and judged[1] and good[1] * judged[0] < good[0] * judged[1]:
        return "worse"
    if judged[1] < after.total() and judged[0] == before.total():
        return "undecided"
    if before["unsafe"] > after["unsafe"] or good[1] * max(judged[0], 1) > good[0] * max(judged[1], 1):
        return "better"
    return "same"


def _sum(outcomes: Counter[str], names: frozenset[str]) -> int:
    return sum(outcomes[name] for name in names)


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str, str] | None:
    if not before["of"] or not after["of"]:
        return None
    with localcontext(_PRECISION):
        (p1, low1, high1), (p2, low2, high2) = (_three(told) for told in (before, after))
        value = p2 - p1
        low = value - ((p2 - low2) ** 2 + (high1 - p1) ** 2).sqrt()
        high = value + ((high2 - p2) ** 2 + (p1 - low1) ** 2).sqrt()
        return f"{value.quantize(_SIX)}", f"{low.quantize(_SIX)}", f"{high.quantize(_SIX)}"


def _three(told: Mapping[str, Any]) -> tuple[Decimal, Decimal, Decimal]:
    return Decimal(told["count"]) / Decimal(told["of"]), Decimal(told["low"]), Decimal(told["high"])
