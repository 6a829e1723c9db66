from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deskcert.scoring.conversation import looks, outcome_open
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, boolean, kind_of, number, part, seq_of, target_key, text, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["RepeatDispatched"]

_REMEMBERED: Final = 256
"""Actions with an open outcome that are kept in mind."""


@dataclass(slots=True)
class _OpenOutcome:
    seq: int
    result_seq: int
    looked: bool = False
    """The page was seen completely since."""


class RepeatDispatched(Rule):
    about = About(
        id="DC402",
        name="repeated an action before its outcome was known",
        summary="An action whose outcome was not established was dispatched a second time without evidence that the"
        " first had not happened.",
        severity=Severity.HIGH,
        why="`repeat_of` says that the agent takes the repeat upon itself. Without a complete look at the outcome, and"
        " with the first request still unanswered, that is a guess with somebody else's data.",
        fix="Before a repeat: wait for the first request to be answered, look at the whole outcome, and name the first"
        " action in `repeat_of`.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._intent: tuple[int, str] = (-1, "")
        self._unsettled: dict[str, _OpenOutcome] = {}

    def feed(self, record: Record) -> None:
        if looks(record):
            self._look(record)
        elif kind_of(record) == "action.intent":
            self._dispatched(record)
            self._intent = (seq_of(record), text(record, "fingerprint"))
        elif kind_of(record) == "action.result" and number(record, "of") == self._intent[0]:
            self._answered(record)

    def _look(self, record: Record) -> None:
        if boolean(record, "complete") is True:
            for outcome in self._unsettled.values():
                outcome.looked = True

    def _dispatched(self, record: Record) -> None:
        gate, first = part(record, "gate"), self._unsettled.get(text(record, "fingerprint"))
        unanswered = boolean(gate, "unanswered") is True
        named = first is not None and number(record, "repeat_of") in {first.seq, first.result_seq}
        if first is not None and not (named and first.looked and not unanswered):
            self._report(record, first.seq, first.result_seq)
        elif first is None and unanswered and part(gate, "previous"):
            # The answer to the agent was fine; the application's server has not answered yet.
            before = (number(gate, "previous", "seq"), number(gate, "previous", "result_seq"))
            self._report(record, *(s for s in before if s is not None and s < seq_of(record)))

    def _report(self, record: Record, *before: int) -> None:
        words = f"{words_for(record)} was dispatched again while it was not known whether the first had taken effect."
        self.found(f"{text(record, 'command')} {target_key(record)}", words, *before, seq_of(record))

    def _answered(self, record: Record) -> None:
        seq, fingerprint = self._intent
        if not fingerprint:
            return
        if not outcome_open(record):
            self._unsettled.pop(fingerprint, None)
        else:
            if len(self._unsettled) >= _REMEMBERED:
                del self._unsettled[next(iter(self._unsettled))]
            self._unsettled[fingerprint] = _OpenOutcome(seq, seq_of(record))
