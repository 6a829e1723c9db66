"""What a scenario can ask of the desktop application: pages, misbehaviour, changes in the middle of an action.

A fault is `{on: "approve 1002", do: …}` in `start.faults` of a scenario: a control's short name, and where it stands in
a row the row's number (`approve *` is any). `times` (default: always) counts presses, `ms` and `text` are as told.

| fault | what the control does |
| --- | --- |
| `commit_then_hang` | commits, then keeps the whole program busy for `ms` (4000) |
| `slow` | waits `ms` (800), then does its work |
| `silent` | commits and shows nothing of it |
| `deaf` | takes the press and does nothing |
| `error` | says that it failed; nothing is committed |
| `confirm` | asks in a dialog first; `text` is what it asks |
| `late_enable` | is disabled for the first `ms` (1200) |
| `read_only` | a field that cannot be edited |

| perturbation | args | what the window does |
| --- | --- | --- |
| `reorder_rows` | | reverses the rows; the widgets stay the same |
| `recycle_row` | `row`, `with` | the same widgets now show, and act on, `with`; its own row shows `row` in turn |
| `replace_by_twin` | `row`, `with`, `control?` | the button is replaced by an identical one that acts on `with` |
| `rename` | `row?`, `control?`, `name` | the button gets another name; the widget stays |
| `remove` | `row?`, `control?` | the row (or, with `control`, the button) is gone |
| `disable` | `row?`, `control?` | the button is disabled |
| `rerender` | | every row is replaced by a fresh, identical one |
| `lookalike` | `row`, `control?`, `with` | a second button of the same name before it, acting on `with` |
| `dialog` | `text?` | a modal dialog pops over the window |
| `occlude` | | another window of the program lies over this one |
| `hang` | | the program is stopped: it answers nothing any more |
| `restart` | | the program is killed and started again: same title, same page |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deskcert_fixture_app.faults import BadPlan
from deskcert_fixture_app.perturb import Perturbations

__all__ = ["FAULTS", "PAGES", "PERTURBATIONS", "Fault", "find", "parse_faults"]

PAGES = ("orders", "payouts", "customers", "notes", "settings")
FAULTS: Mapping[str, int] = {
    "commit_then_hang": 4_000,
    "slow": 800,
    "silent": 0,
    "deaf": 0,
    "error": 0,
    "confirm": 0,
    "late_enable": 1_200,
    "read_only": 0,
}
"""Name to default milliseconds."""
PERTURBATIONS: Perturbations = {
    "reorder_rows": (frozenset(), frozenset()),
    "recycle_row": (frozenset({"row", "with"}), frozenset()),
    "replace_by_twin": (frozenset({"row", "with"}), frozenset({"control"})),
    "rename": (frozenset({"name"}), frozenset({"row", "control"})),
    "remove": (frozenset(), frozenset({"row", "control"})),
    "disable": (frozenset(), frozenset({"row", "control"})),
    "rerender": (frozenset(), frozenset()),
    "lookalike": (frozenset({"row", "with"}), frozenset({"control"})),
    "dialog": (frozenset(), frozenset({"text"})),
    "occlude": (frozenset(), frozenset()),
    "hang": (frozenset(), frozenset()),
    "restart": (frozenset(), frozenset()),
}
"""Name to (needed arguments, possible arguments)."""


@dataclass(slots=True)
class Fault:
    control: str
    row: str | None
    """None: it stands in no row; `*`: in any."""
    kind: str
    ms: int
    text: str
    left: int | None

    def meets(self, control: str, row: int) -> bool:
        return self.control == control and self.row in ("*", str(row) if row else None) and self.left != 0


def parse_faults(raw: object) -> list[Fault]:
    """Raises `BadPlan`."""
    if not isinstance(raw, Sequence) or isinstance(raw, str):
        raise BadPlan("faults must be a list")
    return [_fault(item) for item in raw]


def _fault(raw: object) -> Fault:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("on"), str):
        raise BadPlan(f"a fault is {raw!r}; give an object such as {{on: approve 1002, do: slow}}")
    if raw.get("do") not in FAULTS:
        raise BadPlan(f"fault do is {raw.get('do')!r}; the desktop application has {', '.join(FAULTS)}")
    control, _, row = raw["on"].partition(" ")
    kind = str(raw["do"])
    return Fault(
        control, row or None, kind, int(raw.get("ms", FAULTS[kind])), str(raw.get("text", "")), raw.get("times")
    )


def find(faults: Sequence[Fault], control: str, row: int, kinds: Sequence[str]) -> Fault | None:
    """The first that meets it and is one of `kinds`; a fault that counts is used up by one."""
    for fault in faults:
        if fault.kind in kinds and fault.meets(control, row):
            if fault.left is not None:
                fault.left -= 1
            return fault
    return None
