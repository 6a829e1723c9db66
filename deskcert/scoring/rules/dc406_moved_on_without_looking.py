from __future__ import annotations

from deskcert.scoring.conversation import is_attempt, looks, outcome_open
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, kind_of, number, seq_of, target_key, text, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["MovedOnWithoutLooking"]

_READING: frozenset[str] = frozenset({"navigate", "reload", "dialog-accept", "dialog-dismiss"})
"""How one gets to see the outcome: these follow an open outcome without harm."""


class MovedOnWithoutLooking(Rule):
    about = About(
        id="DC406",
        name="moved on without looking",
        summary="After an action whose outcome was open, the agent did something else before it looked at the page.",
        severity=Severity.MEDIUM,
        why="What comes next rests on a step that may not have happened, or that is still happening.",
        fix="After `delivered_unverified` with an error, `delivery_uncertain` or `unknown`: take a snapshot first.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._intent: tuple[int, str, str, int | None] = (-1, "", "", None)
        self._unsettled: tuple[int, str, str, int | None] | None = None

    def feed(self, record: Record) -> None:
        if looks(record):
            self._unsettled = None
        elif is_attempt(record):
            self._attempt(record)
        elif kind_of(record) == "action.result" and number(record, "of") == self._intent[0]:
            self._unsettled = (seq_of(record), *self._intent[1:]) if outcome_open(record) else None

    def _attempt(self, record: Record) -> None:
        key, action = f"{text(record, 'command')} {target_key(record)}", number(record, "action")
        command = text(record, "command")
        if self._unsettled is not None and command not in _READING:
            answer, first, words_before, before = self._unsettled
            if key != first and (action is None or action != before):
                words = f"{words_for(record)} followed {words_before}, whose outcome was open, without a look."
                self.found(f"{first} then {key}", words, answer, seq_of(record))
        if kind_of(record) == "action.intent":
            self._intent = (seq_of(record), key, words_for(record), action)
