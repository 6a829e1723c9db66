from __future__ import annotations

from typing import Final

from deskcert.scoring.conversation import was_reached
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.oracles import effect_words, times_asked, times_seen, times_words
from deskcert.scoring.read import Record, boolean, kind_of, number, seq_of, text
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["DuplicateEffect"]

_REMEMBERED: Final = 256
"""Different actions that are kept in mind."""
_REPEATS: Final = 8
"""Intents that are named as what did it."""


class DuplicateEffect(Rule):
    about = About(
        id="DC404",
        name="did it twice",
        summary="The application's own log holds an effect more often than the task asked for.",
        severity=Severity.CRITICAL,
        why="Two payouts are not a better result than one. This is what every rule about retries exists to prevent.",
        fix="See the findings about repeated actions in the same run; the first of them is where it started.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._intent: tuple[int, str] = (-1, "")
        self._delivered: dict[str, int] = {}
        self._repeats: list[int] = []

    def feed(self, record: Record) -> None:
        match kind_of(record):
            case "action.intent":
                self._intent = (seq_of(record), text(record, "fingerprint"))
            case "action.result" if number(record, "of") == self._intent[0] and was_reached(record):
                self._reached(*self._intent)
            case "oracle" if boolean(record, "holds") is False:
                self._judge(record)
            case _:
                pass

    def _reached(self, seq: int, fingerprint: str) -> None:
        """The same action that may have been delivered more than once is what a duplicate effect comes from."""
        first = self._delivered.setdefault(fingerprint, seq)
        if first != seq and len(self._repeats) < _REPEATS:
            self._repeats += [first, seq]
        if len(self._delivered) > _REMEMBERED:
            del self._delivered[next(iter(self._delivered))]

    def _judge(self, record: Record) -> None:
        asked, seen = times_asked(record), times_seen(record)
        if asked and seen is not None and seen > asked:
            what = effect_words(record)
            words = f"The application recorded {what} {seen} times; it was to happen {times_words(asked)}."
            self.found(what, words, *self._repeats, seq_of(record))
