"""Sends a ref again that it was just told is stale, as if staleness went away by itself."""

from __future__ import annotations

from deskcert.agents.decisions import Decisions, Next
from deskcert.agents.plan import Goal

__all__ = ["StaleReplayer"]


class StaleReplayer(Decisions):
    def after_stale(self, _goal: Goal, tries: int) -> Next:
        return Next.SAME_AGAIN if tries < 3 else Next.GIVE_UP
