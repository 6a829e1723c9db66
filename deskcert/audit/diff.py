"""Two runs side by side, aligned by what was done: the same command on the same thing, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from deskcert.audit.story import Group, Step

__all__ = ["Pair", "align", "differences"]

_COMPARED = frozenset(
    {Group.ACTION, Group.DENIAL, Group.REFUSAL, Group.CLAIM, Group.ORACLE, Group.NETWORK, Group.CHANGE, Group.LOOK}
)
_MOST = 20_000
"""Steps of one run that are aligned: beyond that the comparison would take minutes."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One thing that was done, in both runs or in one."""

    a: Step | None
    b: Step | None

    @property
    def same(self) -> bool:
        return self.a is not None and self.b is not None and _came_out(self.a) == _came_out(self.b)

    @property
    def sign(self) -> str:
        if self.a is None:
            return "+"
        if self.b is None:
            return "-"
        return " " if self.same else "~"

    def as_json(self) -> dict[str, Any]:
        one = self.a or self.b
        assert one is not None
        told: dict[str, Any] = {"sign": self.sign, "what": one.what, "target": one.target}
        for side, step in (("a", self.a), ("b", self.b)):
            if step is not None:
                told |= {
                    f"seq_{side}": step.seq,
                    f"outcome_{side}": step.outcome,
                    f"code_{side}": step.code or step.rule,
                }
        return told


def align(a: Sequence[Step], b: Sequence[Step]) -> list[Pair]:
    left = [s for s in a if s.group in _COMPARED][:_MOST]
    right = [s for s in b if s.group in _COMPARED][:_MOST]
    matcher = SequenceMatcher(None, [_done(s) for s in left], [_done(s) for s in right], autojunk=False)
    pairs: list[Pair] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            pairs += [Pair(one, other) for one, other in zip(left[i1:i2], right[j1:j2], strict=True)]
            continue
        pairs += [Pair(step, None) for step in left[i1:i2]]
        pairs += [Pair(None, step) for step in right[j1:j2]]
    return pairs


def differences(pairs: Sequence[Pair]) -> Iterator[Pair]:
    return (p for p in pairs if not p.same)


def _done(step: Step) -> tuple[str, ...]:
    """What was done. A look is a look; how it ended is not part of it."""
    if step.group is Group.LOOK:
        return ("look",)
    acting = {Group.ACTION, Group.DENIAL, Group.REFUSAL}
    return (
        "act" if step.group in acting else step.group.value,
        step.what,
        "" if step.group is Group.CLAIM else step.target,
    )


def _came_out(step: Step) -> tuple[str, ...]:
    if step.group is Group.LOOK:
        return (step.target, step.outcome)
    return (step.group.value, step.outcome, step.code, step.rule)
