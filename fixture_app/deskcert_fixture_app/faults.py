"""Misbehaviour on request. A fault plan is a list in the scenario's `start.faults`:

    {on: "POST /api/orders/*/approve", do: commit_then_hang, times: 1, ms: 800, text: "…"}

`on` is a method and a path with `*` (one part of the path); `times` (default: always) counts the requests, or for page
faults the pages served with it; `ms` and `text` mean what the table says.

| server fault | what happens to a matching request |
| --- | --- |
| `commit_then_hang` | commits, then never answers |
| `hang_before_commit` | never commits and never answers |
| `commit_then_500` | commits, then answers 500 as if it had failed |
| `error_500` | answers 500, nothing committed |
| `slow` | waits `ms` (800), then does its work |
| `optimistic_rollback` | answers 422 after `ms` (300), nothing committed; the page showed the new state and keeps it |

| page fault | what the control that would send a matching request does |
| --- | --- |
| `double_bind` | its handler is bound twice, so one click sends two requests |
| `late_enable` | it is disabled for the first `ms` (1500) |
| `hang_handler` | the handler sends its request, then keeps the page busy for `ms` (3500) |
| `confirm_dialog` | the handler calls `confirm(text)` first |
| `trusted_only` | the handler ignores events that a script made |
| `read_only` | its text fields cannot be edited |
| `new_tab` | the handler first opens the page `text` in a tab of its own |
| `covered` | something lies over it and never goes away; `text` is what it says |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["BadPlan", "Fault", "FaultKind", "FaultPlan", "parse_faults"]


class BadPlan(ValueError):
    """The fault plan, the seed or a perturbation cannot be understood; the message says what to write instead."""


class FaultKind(StrEnum):
    COMMIT_THEN_HANG = "commit_then_hang"
    HANG_BEFORE_COMMIT = "hang_before_commit"
    COMMIT_THEN_500 = "commit_then_500"
    ERROR_500 = "error_500"
    SLOW = "slow"
    OPTIMISTIC_ROLLBACK = "optimistic_rollback"
    DOUBLE_BIND = "double_bind"
    LATE_ENABLE = "late_enable"
    HANG_HANDLER = "hang_handler"
    CONFIRM_DIALOG = "confirm_dialog"
    TRUSTED_ONLY = "trusted_only"
    COVERED = "covered"
    READ_ONLY = "read_only"
    NEW_TAB = "new_tab"


PAGE_FAULTS = frozenset(
    {
        FaultKind.DOUBLE_BIND,
        FaultKind.LATE_ENABLE,
        FaultKind.HANG_HANDLER,
        FaultKind.CONFIRM_DIALOG,
        FaultKind.TRUSTED_ONLY,
        FaultKind.COVERED,
        FaultKind.READ_ONLY,
        FaultKind.NEW_TAB,
    }
)
BOTH_SIDES = frozenset({FaultKind.OPTIMISTIC_ROLLBACK})
"""The server answers, and the page must know to show the new state before the answer."""

DEFAULT_MS = {
    FaultKind.SLOW: 800,
    FaultKind.OPTIMISTIC_ROLLBACK: 300,
    FaultKind.LATE_ENABLE: 1500,
    FaultKind.HANG_HANDLER: 3500,
}


@dataclass(slots=True)
class Fault:
    kind: FaultKind
    method: str
    path: str
    ms: int
    text: str | None
    left: int | None
    """How many more times; None is always."""
    pattern: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        self.pattern = re.compile("[^/]*".join(re.escape(part) for part in self.path.split("*")))

    def matches(self, method: str, path: str) -> bool:
        return self.left != 0 and self.method in (method, "*") and self.pattern.fullmatch(path) is not None

    def use(self) -> None:
        if self.left is not None:
            self.left -= 1

    def for_page(self) -> dict[str, Any]:
        return {"do": self.kind, "method": self.method, "path": self.pattern.pattern, "ms": self.ms, "text": self.text}


class FaultPlan:
    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self._faults = list(faults)

    def take(self, method: str, path: str) -> Fault | None:
        """The first server fault for this request, used up once."""
        for fault in self._faults:
            if fault.kind not in PAGE_FAULTS and fault.matches(method, path):
                fault.use()
                return fault
        return None

    def for_page(self) -> list[dict[str, Any]]:
        """What the next page must know; counts as one use of each page fault."""
        told = [f for f in self._faults if f.left != 0 and f.kind in PAGE_FAULTS | BOTH_SIDES]
        for fault in told:
            if fault.kind in PAGE_FAULTS:
                fault.use()
        return [fault.for_page() for fault in told]


def parse_faults(raw: object) -> FaultPlan:
    """Raises `BadPlan` with the number of the entry and what was expected."""
    if not isinstance(raw, Sequence) or isinstance(raw, str):
        raise BadPlan("faults must be a list of {on, do, times?, ms?, text?}")
    return FaultPlan([_fault(entry, f"faults[{i}]") for i, entry in enumerate(raw)])


def _fault(raw: object, where: str) -> Fault:
    if not isinstance(raw, Mapping):
        raise BadPlan(f"{where} must be an object {{on, do, times?, ms?, text?}}")
    extra = sorted(set(raw) - {"on", "do", "times", "ms", "text"})
    if extra:
        raise BadPlan(f"{where} has unknown keys {extra}; known are on, do, times, ms, text")
    try:
        kind = FaultKind(str(raw.get("do")))
    except ValueError:
        raise BadPlan(f"{where}.do is {raw.get('do')!r}; use one of {', '.join(FaultKind)}") from None
    method, _, path = str(raw.get("on", "")).partition(" ")
    if (not method.isupper() and method != "*") or not path.startswith("/"):
        raise BadPlan(f"{where}.on is {raw.get('on')!r}; write a method and a path, such as 'POST /api/orders/*/ship'")
    times, ms, text = raw.get("times"), raw.get("ms", DEFAULT_MS.get(kind, 0)), raw.get("text")
    if times is not None and (not isinstance(times, int) or times < 1):
        raise BadPlan(f"{where}.times is {times!r}; leave it out (always) or give a whole number from 1")
    if not isinstance(ms, int) or not 0 <= ms <= 60_000:
        raise BadPlan(f"{where}.ms is {ms!r}; give whole milliseconds from 0 to 60000")
    return Fault(kind, method, path, ms, None if text is None else str(text), times)
