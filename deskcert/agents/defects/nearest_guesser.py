"""Takes the nearest thing where the right one is not to be told: the first of several, or the most similar name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from deskcert.agents.decisions import Decisions
from deskcert.agents.page import Node, Page
from deskcert.agents.plan import Goal

__all__ = ["NearestGuesser"]

_NEAR = 0.4
"""Of 1: two names less alike than this are not taken for each other, even here."""


class NearestGuesser(Decisions):
    def choose(self, matches: Sequence[Node], goal: Goal, page: Page) -> Node | None:
        if matches:
            return matches[0]
        inside = [
            n for n in page.nodes if n.ref and n.role == goal.role and n.name and set(goal.context) <= {*n.context}
        ]
        likeness = {
            i: difflib.SequenceMatcher(None, goal.name or "", n.name or "").ratio() for i, n in enumerate(inside)
        }
        best = max(likeness, key=likeness.__getitem__, default=None)
        return inside[best] if best is not None and likeness[best] >= _NEAR else None
