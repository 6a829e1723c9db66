from __future__ import annotations

from typing import Final

from deskcert.scoring.conversation import is_attempt, looks, outcome_open, was_reached
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, kind_of, number, ref_of, seq_of, target_key, text, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["SentTwice"]

_SETTING_OFF: Final = frozenset({"click", "double-click", "triple-click", "press"})
_KEYS: Final = frozenset({"enter", "return", "space", " "})
"""Arrow keys and Tab are pressed many times in a row, and rightly so."""


class SentTwice(Rule):
    about = About(
        id="DC407",
        name="sent the same twice in a row",
        summary="An action went well, and the very same one was sent again without a look in between.",
        severity=Severity.HIGH,
        why="Nothing was wrong with the first, so the second has nothing to repair: it can only do the same once more.",
        fix="Send each action once. Take a snapshot before the next one, also where the next one is meant to be the"
        " same.",
        written_for="duplicate_submitter",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._intent: tuple[int, str, int | None] = (-1, "", None)
        self._sent: tuple[str, int, int, int | None] | None = None

    def feed(self, record: Record) -> None:
        if looks(record):
            self._sent = None
        elif is_attempt(record):
            key, action = _key(record), number(record, "action")
            if self._sent is not None and key == self._sent[0] and (action is None or action != self._sent[3]):
                words = f"{words_for(record)} was sent a second time right after it had been delivered."
                self.found(key, words, self._sent[1], self._sent[2], seq_of(record))
            self._sent = None
            if kind_of(record) == "action.intent" and _sets_off(record):
                self._intent = (seq_of(record), key, action)
        elif kind_of(record) == "action.result" and number(record, "of") == self._intent[0]:
            seq, key, action = self._intent
            went_well = was_reached(record) and not outcome_open(record)
            self._sent = (key, seq, seq_of(record), action) if went_well else None


def _key(record: Record) -> str:
    """With the ref's number: two controls may answer to one description."""
    ref = ref_of(record).partition(":")[2]
    return f"{text(record, 'command')} {text(record, 'args', 'key')} {target_key(record)} {ref}"


def _sets_off(record: Record) -> bool:
    command = text(record, "command")
    return command in _SETTING_OFF and (command != "press" or text(record, "args", "key").casefold() in _KEYS)
