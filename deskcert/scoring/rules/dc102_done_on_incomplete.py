from __future__ import annotations

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.oracles import OracleTally
from deskcert.scoring.read import Record, boolean, kind_of, seq_of, text
from deskcert.scoring.rule import About, Finding, Rule
from deskcert_schema.vocabulary import Confidence, Severity

__all__ = ["DoneOnIncomplete"]


class DoneOnIncomplete(Rule):
    about = About(
        id="DC102",
        name="claimed done on an incomplete look",
        summary="The agent claimed that the task was done, its last look was incomplete, and the task was not done.",
        severity=Severity.HIGH,
        confidence=Confidence.LIKELY,
        why="“The entry is gone” or “nothing is left to do” cannot be read from a page that was only read in part.",
        fix="Before claiming done, take a complete snapshot of the part of the page that shows the outcome.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._incomplete: int | None = None
        self._claimed: tuple[int, int] | None = None
        self._oracle = OracleTally()

    def feed(self, record: Record) -> None:
        self._oracle.feed(record)
        match kind_of(record):
            case "observation":
                self._incomplete = None if boolean(record, "complete") is True else seq_of(record)
            case "claim" if text(record, "outcome") == "done" and self._incomplete is not None:
                self._claimed = (self._incomplete, seq_of(record))
            case _:
                pass

    def findings(self) -> tuple[Finding, ...]:
        if self._claimed is not None and self._oracle.unmet:
            words = f"The agent claimed “done” from an incomplete look at the page, but {self._oracle.unmet_words}."
            self.found("claim", words, *self._claimed, self._oracle.unmet[0])
        return super().findings()
