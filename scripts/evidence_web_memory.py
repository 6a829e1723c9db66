"""What is held after many actions in one session on one page: the page's heap, the browser, and deskcert itself.

Two clicks in turn, one that opens a dialog of the page and one that closes it, so that the page itself has nothing more
to show at the end than at the beginning. A measure is taken every 250 actions, the page's heap after its garbage was
collected; what counts is the slope over the second half.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from deskcert.adapters.web.browser import WebBrowser
from scripts.evidence_parts import Outcome
from scripts.web_bench import Bench, bench

__all__ = ["ACTIONS", "LIMIT_BYTES", "judge_slope", "memory", "slope"]

ACTIONS: Final = 10_000
_EVERY: Final = 250
LIMIT_BYTES: Final = {"page_heap": 100, "browser_rss": 1_500, "deskcert_rss": 1_500}
"""A single action may leave behind so much: below it 10,000 actions come to a megabyte in the page, and to 15 in a
process. The ledger and the table of the retry gate grow by what they record, with each action."""


async def _measured(found: Bench) -> dict[str, int]:
    channel: Any = found.adapter._channel
    for _ in range(2):  # what the first one finalises the second one frees
        await channel.call("HeapProfiler.collectGarbage", {}, budget_ms=20_000)
    heap = await channel.call("Runtime.getHeapUsage", {}, budget_ms=20_000)
    gc.collect()
    browser = sum(_rss(pid) for pid in _family(os.getpid()) if "chrom" in _name(pid))
    return {"page_heap": int(heap["usedSize"]), "browser_rss": browser, "deskcert_rss": _rss(os.getpid())}


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def _rss(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = [c for task in Path(f"/proc/{pid}/task").iterdir() for c in (task / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield from _family(int(child))


def slope(values: Sequence[int], every: int = _EVERY) -> float:
    """Bytes an action over the second half: the median of all slopes between two measures (Theil and Sen)."""
    half = list(values[len(values) // 2 :])
    found = sorted((b - a) / ((j - i) * every) for i, a in enumerate(half) for j, b in enumerate(half) if j > i)
    return found[len(found) // 2] if found else 0.0


def judge_slope(measures: Sequence[dict[str, int]], every: int = _EVERY) -> list[str]:
    """A sentence for each that grows."""
    return [
        f"{name} grows by {slope([m[name] for m in measures], every):.0f} bytes an action; {limit} are allowed"
        for name, limit in LIMIT_BYTES.items()
        if slope([m[name] for m in measures], every) > limit
    ]


def _ref(tree: Any, name: str, inside: str) -> str:
    def found(node: Any) -> Iterator[str]:
        for one in node if isinstance(node, list) else [node]:
            if one.get("name") == name and any(inside in label for _, label in one.get("context", ())):
                yield str(one["ref_id"])
            yield from found(one.get("children", ()))

    return next(found(tree))


async def acted(found: Bench, count: int, every: int = _EVERY) -> list[dict[str, int]]:
    """That many clicks, half of them on the page and half in its dialog, with a measure now and then."""
    await found.set_up("/orders", {"orders": 3}, number=1)
    measures = []
    for number in range(count):
        if number % every == 0:
            measures.append(await _measured(found))
        tree = (await found.session.handle("snapshot", {}))["data"]["tree"]
        name, inside = ("Cancel", "Order 1001") if number % 2 == 0 else ("Keep order", "Cancel Order 1001?")
        answer = await found.session.handle("click", {"ref": _ref(tree, name, inside), "timeout_ms": 5_000})
        if not answer["ok"]:
            raise RuntimeError(f"{name!r} was not clicked: {answer['error']}")
    measures.append(await _measured(found))
    return measures


async def _memory(count: int) -> list[dict[str, int]]:
    browser = await WebBrowser.launch()
    try:
        async with bench(browser) as found:
            return await acted(found, count)
    finally:
        await browser.close()


def memory(seed: str, units: int) -> Outcome:  # noqa: ARG001 - nothing in it is random
    outcome = Outcome(units)
    measures = asyncio.run(_memory(ACTIONS))
    outcome.counts["actions"] = ACTIONS
    for name in LIMIT_BYTES:
        values = [m[name] for m in measures]
        outcome.counts |= {f"{name}_at_first": values[0], f"{name}_half_way": values[len(values) // 2]}
        outcome.counts |= {f"{name}_at_last": values[-1], f"{name}_bytes_an_action": round(slope(values))}
        outcome.counts[f"{name}_largest_step"] = max(b - a for a, b in pairwise(values))
    outcome.failures += judge_slope(measures)
    return outcome
