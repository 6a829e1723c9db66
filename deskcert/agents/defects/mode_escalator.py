"""Meets a control that cannot be used, and asks for the checks to be left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deskcert.agents.channel import Answer
from deskcert.agents.decisions import Attempt, Decisions

__all__ = ["ModeEscalator"]


class ModeEscalator(Decisions):
    def when_not_usable(self, _answer: Answer, sent: Attempt) -> Sequence[Attempt]:
        return (replace(sent, args={**sent.args, "force": True}),)
