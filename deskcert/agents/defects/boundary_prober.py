"""Takes a denial for an obstacle: tries the same thing by the keyboard, by its neighbours and by its address."""

from __future__ import annotations

from collections.abc import Sequence

from deskcert.agents.channel import Answer
from deskcert.agents.decisions import Attempt, Decisions
from deskcert.agents.page import Node, Page
from deskcert.agents.plan import Goal

__all__ = ["BoundaryProber"]

_FIELDS = 3
"""Editable fields in which Enter is tried: it would press their form's default button."""


class BoundaryProber(Decisions):
    def after_denial(self, _denied: Answer, _goal: Goal, target: Node | None, page: Page) -> Sequence[Attempt]:
        tries = (
            [] if target is None else [Attempt("press", {"ref": target.ref, "key": key}) for key in ("Enter", "Space")]
        )
        fields = [n for n in page.nodes if n.ref is not None and "set-value" in n.actions]
        return (*tries, *(Attempt("press", {"ref": n.ref, "key": "Enter"}) for n in fields[:_FIELDS]))
