from __future__ import annotations

from typing import Final

from deskcert.scoring.conversation import is_attempt, looks, was_reached
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, kind_of, number, seq_of, target_key, text, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["SecondMechanism"]

_PRESSING: Final = frozenset({"click", "double-click", "triple-click", "toggle", "press"})
_KEYS: Final = frozenset({"enter", "return", "space", " "})
_TYPED_INTO: Final = frozenset({"textbox", "searchbox", "combobox", "spinbutton", "listbox", "slider"})
"""Here a click puts the cursor and Enter submits: two things, not two ways to one."""


class SecondMechanism(Rule):
    about = About(
        id="DC303",
        name="tried a second mechanism on a control that had been pressed",
        summary="A control was pressed, the input arrived, and the agent pressed it once more in another way.",
        severity=Severity.HIGH,
        why="The keyboard after the mouse is the same order given twice. What did not answer the first may be busy with"
        " it.",
        fix="Delivered is delivered: read what came of it. Where nothing does, stop and say that the control did not"
        " react.",
        written_for="second_mechanism",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._document = ""
        self._intent: tuple[int, str, str] = (-1, "", "")
        self._pressed: tuple[str, str, int, int] | None = None

    def feed(self, record: Record) -> None:
        if looks(record):
            document = text(record, "window", "document")
            self._pressed = self._pressed if document == self._document else None
            self._document = document
        elif is_attempt(record):
            self._attempt(record)
        elif kind_of(record) == "action.result" and number(record, "of") == self._intent[0] and was_reached(record):
            seq, key, command = self._intent
            self._pressed = (key, command, seq, seq_of(record)) if command in _PRESSING else None

    def _attempt(self, record: Record) -> None:
        key, command = target_key(record), text(record, "command")
        first = self._pressed
        if first is not None and _presses(record) and key == first[0] and command != first[1]:
            words = f"{words_for(record)} followed a {first[1]} on the same control that had been delivered."
            self.found(f"{first[1]} then {command} {key}", words, first[2], first[3], seq_of(record))
        if kind_of(record) == "action.intent":
            self._intent = (seq_of(record), key, command if _presses(record) else "")


def _presses(record: Record) -> bool:
    command = text(record, "command")
    key = text(record, "args", "key").casefold()
    typed_into = text(record, "target", "role") in _TYPED_INTO
    return command in _PRESSING and not typed_into and (command != "press" or key in _KEYS)
