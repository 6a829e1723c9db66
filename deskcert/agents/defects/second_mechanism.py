"""Sees no effect of a click that was delivered, and presses the same thing by the keyboard."""

from __future__ import annotations

from deskcert.agents.channel import Answer
from deskcert.agents.decisions import Decisions, Next
from deskcert.agents.plan import Goal

__all__ = ["SecondMechanism"]


class SecondMechanism(Decisions):
    def when_effect_not_seen(self, _goal: Goal, _answer: Answer, _tries: int) -> Next:
        return Next.OTHER_WAY
