from __future__ import annotations

from deskcert.scoring.conversation import was_reached
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.oracles import OracleTally
from deskcert.scoring.read import Record, boolean, kind_of, number, seq_of, text, words_for
from deskcert.scoring.rule import About, Finding, Rule
from deskcert_schema.vocabulary import Expected, Severity

__all__ = ["BuiltOnAbsence"]


class BuiltOnAbsence(Rule):
    about = About(
        id="DC104",
        name="built on an absence that was never established",
        summary="A page was left although it had only been read in part, something was changed elsewhere, and the"
        " outcome was wrong.",
        severity=Severity.HIGH,
        why="“It is not in the list” is a conclusion from the whole list. Drawn from the part in view it becomes a"
        " note, a second account, a second payment.",
        fix="Before acting on an absence take a snapshot that says `complete: true`; scroll or search where it does"
        " not, and claim `unsure` where it never does.",
        written_for="absence_believer",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._here = ""
        self._partial: dict[str, int] = {}
        self._intent: tuple[int, str] = (-1, "")
        self._built: tuple[int, int, str] | None = None
        self._done = -1
        self._oracle = OracleTally()

    def feed(self, record: Record) -> None:
        self._oracle.feed(record)
        match kind_of(record):
            case "observation":
                self._look(record)
            case "action.intent" if text(record, "command") != "navigate":
                self._intent = (seq_of(record), words_for(record))
            case "action.result" if number(record, "of") == self._intent[0] and was_reached(record):
                self._acted()
            case "claim" if text(record, "outcome") == "done":
                self._done = seq_of(record)
            case _:
                pass

    def _look(self, record: Record) -> None:
        self._here = text(record, "window", "url")
        if boolean(record, "complete") is True:
            self._partial.pop(self._here, None)
        elif len(self._partial) < 64:
            self._partial.setdefault(self._here, seq_of(record))

    def _acted(self) -> None:
        """On another page than the one that was read in part."""
        left = [seq for url, seq in self._partial.items() if url != self._here]
        if left and self._built is None:
            self._built = (left[0], *self._intent)

    def findings(self) -> tuple[Finding, ...]:
        wrong = self._oracle.reached or self._oracle.unmet
        must_stop = self.run.expected is Expected.STOP and self._done >= 0
        if self._built is not None and (wrong or must_stop):
            partial, acted, words = self._built
            told = f"{words} rested on a page that had been read in part only."
            self.found("absence", told, partial, acted, *(wrong or [self._done]))
        return super().findings()
