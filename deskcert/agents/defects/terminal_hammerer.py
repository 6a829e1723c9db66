"""Is told that something is not supported, and sends the very same again and again."""

from __future__ import annotations

from collections.abc import Sequence

from deskcert.agents.channel import Answer
from deskcert.agents.decisions import Attempt, Decisions

__all__ = ["TerminalHammerer"]


class TerminalHammerer(Decisions):
    def when_final(self, _answer: Answer, sent: Attempt) -> Sequence[Attempt]:
        return (sent, sent, sent)
