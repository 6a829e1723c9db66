"""Changes to the open page, in the middle of an action: what can be asked for, and with which arguments.

The page's own script (`static/perturb.js`) applies them. `row` is the number of an order or payout that the page shows;
`control` is the short name in the button's `data-act` (`approve`, `cancel`, `ship`, `send`, `save`, …); without `row`
the first such control of the page is meant, without `control` the row's first one.

| do | args | what the page does |
| --- | --- | --- |
| `reorder_rows` | | reverses the rows of the first table body; the nodes stay the same |
| `recycle_row` | `row`, `with` | the same DOM nodes now show, and act on, `with`; its own row shows `row` in turn |
| `replace_by_twin` | `row`, `with`, `control?` | the button is replaced by an identical one that acts on `with` |
| `rename` | `row?`, `control?`, `name` | the button gets another visible name; the node stays |
| `remove` | `row` or `control` | the row (or, with `control`, the button) is gone |
| `cover` | `row?`, `control?` | a notice lies over the button |
| `disable` | `row?`, `control?` | the button is disabled |
| `rerender` | | every row is replaced by a fresh, identical one: new nodes, same meaning |
| `insert_before` | `row?`, `name?` | a new row (with `row`) or button (`name`) stands before it, and acts on nothing |
| `navigate` | `url` | the page goes to another address of the application |
| `lookalike` | `row?`, `control?`, `with?`, `name?` | a second button of that `name` before it, acting on `with` |

With `on` each waits in the page for the next event of that type, and is made before anybody else handles it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deskcert_fixture_app.faults import BadPlan

__all__ = ["PERTURBATIONS", "Perturbations", "check_perturbation"]

type Perturbations = Mapping[str, tuple[frozenset[str], frozenset[str]]]
"""Name to (needed arguments, possible arguments)."""

PERTURBATIONS: Perturbations = {
    "reorder_rows": (frozenset(), frozenset()),
    "recycle_row": (frozenset({"row", "with"}), frozenset()),
    "replace_by_twin": (frozenset({"row", "with"}), frozenset({"control"})),
    "rename": (frozenset({"name"}), frozenset({"row", "control"})),
    "remove": (frozenset(), frozenset({"row", "control"})),
    "cover": (frozenset(), frozenset({"row", "control"})),
    "disable": (frozenset(), frozenset({"row", "control"})),
    "rerender": (frozenset(), frozenset()),
    "insert_before": (frozenset(), frozenset({"row", "name"})),
    "navigate": (frozenset({"url"}), frozenset()),
    "lookalike": (frozenset(), frozenset({"row", "control", "with", "name"})),
}


def check_perturbation(do: object, args: object, known: Perturbations = PERTURBATIONS) -> tuple[str, Mapping[str, Any]]:
    """`known`: those of the application that is asked. Raises `BadPlan` for an unknown name or argument."""
    if not isinstance(do, str) or do not in known:
        raise BadPlan(f"do is {do!r}; use one of {', '.join(known)}")
    if not isinstance(args, Mapping):
        raise BadPlan("args must be an object")
    needed, possible = known[do]
    possible = possible | {"on"} if known is PERTURBATIONS else possible
    missing, extra = sorted(needed - set(args)), sorted(set(args) - needed - possible)
    if missing or extra:
        raise BadPlan(f"{do} takes {sorted(needed | possible)}; missing {missing}, unknown {extra}")
    return do, args
