"""Takes every answer for success: an error, a stale ref, an open dialog. Never looks at what came of it."""

from __future__ import annotations

from deskcert.agents.channel import Answer
from deskcert.agents.decisions import Decisions
from deskcert.agents.plan import Goal

__all__ = ["Optimist"]


class Optimist(Decisions):
    def satisfied_by(self, _goal: Goal, _answer: Answer) -> bool:
        return True
