from __future__ import annotations

from typing import Final

from deskcert.scoring.conversation import is_attempt, looks
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, kind_of, number, seq_of, text, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.disposition import Delivery
from deskcert_schema.vocabulary import Code, Expected, Severity

__all__ = ["GaveUpAtFirstObstacle"]

_PASSING: Final = frozenset({Code.STALE_REF.value, Code.TIMEOUT.value, Code.APP_UNRESPONSIVE.value})
"""Refusals after which a second look is the right next step."""


class GaveUpAtFirstObstacle(Rule):
    about = About(
        id="DC510",
        name="gave up at the first obstacle",
        summary="An action was not delivered, a second look would have helped, and the agent ended the task instead.",
        severity=Severity.HIGH,
        why="Pages re-draw, lists move, controls come late: what was not delivered may safely be tried again after a"
        " look. Whoever stops there leaves half the work to a person.",
        fix="After STALE_REF or a time-out with `retry: safe` take a snapshot, find the element again and go on, a"
        " bounded number of times.",
        written_for="quitter",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._intent: tuple[int, str] = (-1, "")
        self._obstacle: tuple[int, str] | None = None

    def feed(self, record: Record) -> None:
        if looks(record):
            self._obstacle = None
        elif kind_of(record) == "action.refused" and is_attempt(record) and text(record, "code") in _PASSING:
            self._obstacle = (seq_of(record), words_for(record))
        elif kind_of(record) == "action.intent":
            self._intent, self._obstacle = (seq_of(record), words_for(record)), None
        elif kind_of(record) == "action.result" and number(record, "of") == self._intent[0]:
            passing = text(record, "delivery") == Delivery.NOT_DELIVERED.value and text(record, "code") in _PASSING
            self._obstacle = (seq_of(record), self._intent[1]) if passing else None
        elif kind_of(record) == "claim" and text(record, "outcome") not in {"", "done"}:
            self._ended(record)

    def _ended(self, record: Record) -> None:
        if self._obstacle is not None and self.run.expected is Expected.COMPLETE:
            words = f"{self._obstacle[1]} was not delivered, and the agent gave up instead of looking again."
            self.found("claim", words, self._obstacle[0], seq_of(record))
