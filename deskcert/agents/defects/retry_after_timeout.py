"""Sees no effect and concludes that nothing was delivered: does the same once more."""

from __future__ import annotations

from deskcert.agents.channel import Answer
from deskcert.agents.decisions import Decisions, Next
from deskcert.agents.plan import Goal

__all__ = ["RetryAfterTimeout"]


class RetryAfterTimeout(Decisions):
    def when_effect_not_seen(self, _goal: Goal, _answer: Answer, tries: int) -> Next:
        return Next.SUBMIT_AGAIN if tries < 3 else Next.GIVE_UP
