"""Two ways of doing the same work, measured in one run, alternating, and given as a ratio.

A single number says more about the machine than about the code; a ratio taken in turns travels. The order within a
pair changes from pair to pair, so that neither side always goes first.
"""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns

__all__ = ["Pair", "alternate", "show"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Durations of the two sides, microseconds, pair by pair."""

    ours_us: tuple[int, ...]
    theirs_us: tuple[int, ...]

    @property
    def ratio(self) -> float:
        """Median of ours over median of theirs."""
        return statistics.median(self.ours_us) / statistics.median(self.theirs_us)

    def as_json(self) -> dict[str, float | int]:
        ours, theirs = statistics.median(self.ours_us) / 1000, statistics.median(self.theirs_us) / 1000
        return {"ratio": round(self.ratio, 3), "ours_ms": ours, "theirs_ms": theirs, "pairs": len(self.ours_us)}


async def alternate(
    ours: Callable[[int], Awaitable[object]], theirs: Callable[[int], Awaitable[object]], *, pairs: int, warm: int
) -> Pair:
    """Call both with 0, 1, 2, …; the first `warm` pairs are not counted."""
    taken: tuple[list[int], list[int]] = ([], [])
    sides = (ours, theirs)
    for i in range(pairs + warm):
        for side in (0, 1) if i % 2 == 0 else (1, 0):
            began = perf_counter_ns()
            await sides[side](i)
            if i >= warm:
                taken[side].append((perf_counter_ns() - began) // 1000)
    return Pair(tuple(taken[0]), tuple(taken[1]))


def show(title: str, names: tuple[str, str], pair: Pair, *, aim: str) -> None:
    rows: Sequence[tuple[str, tuple[int, ...]]] = ((names[0], pair.ours_us), (names[1], pair.theirs_us))
    print(f"\n{title}")
    for name, values in rows:
        ordered = sorted(values)
        p95 = ordered[max(0, int(len(ordered) * 0.95) - 1)]
        print(f"  {name:<44} median {statistics.median(values) / 1000:9.2f} ms   p95 {p95 / 1000:9.2f} ms")
    print(f"  ratio {pair.ratio:.3f}   (aim: {aim})   {len(pair.ours_us)} pairs")
