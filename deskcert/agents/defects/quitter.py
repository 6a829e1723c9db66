"""Gives up at the first thing that is not as expected, although a second look would do."""

from __future__ import annotations

from deskcert.agents.decisions import Decisions, Next
from deskcert.agents.plan import Goal

__all__ = ["Quitter"]


class Quitter(Decisions):
    def after_stale(self, _goal: Goal, _tries: int) -> Next:
        return Next.GIVE_UP
