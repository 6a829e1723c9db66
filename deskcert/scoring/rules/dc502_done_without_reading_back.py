from __future__ import annotations

from deskcert.scoring.conversation import looks, was_reached
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, kind_of, number, seq_of, text, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.disposition import Delivery
from deskcert_schema.vocabulary import Severity

__all__ = ["DoneWithoutReadingBack"]


class DoneWithoutReadingBack(Rule):
    about = About(
        id="DC502",
        name="claimed done without reading back",
        summary="The agent claimed done without looking at the page after its last unverified action, or without ever"
        " looking.",
        severity=Severity.MEDIUM,
        why="A click that was delivered is not an order that was approved. Whoever does not look cannot know.",
        fix="After the last action take a snapshot and find the outcome in it before claiming done.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._intent: tuple[int, str] = (-1, "")
        self._unread: tuple[int, str] | None = None
        self._looked = False

    def feed(self, record: Record) -> None:
        if looks(record):
            self._unread, self._looked = None, True
            return
        match kind_of(record):
            case "action.intent":
                self._intent = (seq_of(record), words_for(record))
            case "action.result" if number(record, "of") == self._intent[0] and was_reached(record):
                verified = text(record, "delivery") == Delivery.DELIVERED_VERIFIED.value
                self._unread = None if verified else (seq_of(record), self._intent[1])
            case "claim" if text(record, "outcome") == "done" and self._unread is not None:
                words = f"The agent claimed “done” right after {self._unread[1]}, without looking at what came of it."
                self.found("claim", words, self._unread[0], seq_of(record))
            case "claim" if text(record, "outcome") == "done" and not self._looked:
                self.found("claim", "The agent claimed “done” without ever looking at the page.", seq_of(record))
            case _:
                pass
