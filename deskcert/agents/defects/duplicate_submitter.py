"""Sends everything twice, to be sure."""

from __future__ import annotations

from deskcert.agents.decisions import Decisions
from deskcert.agents.plan import Act, Goal

__all__ = ["DuplicateSubmitter"]


class DuplicateSubmitter(Decisions):
    def how_often(self, goal: Goal) -> int:
        return 2 if goal.act in (Act.CLICK, Act.PRESS) else 1
