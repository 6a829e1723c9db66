from __future__ import annotations

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, boolean, detail_kind, kind_of, seq_of, text
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import DetailKind, Expected, Severity

__all__ = ["ClaimOnAbsence"]

_LOOK_FAILED = {DetailKind.OBSERVATION_INCOMPLETE.value, DetailKind.RESOLUTION_TRAVERSAL_INCOMPLETE.value}


class ClaimOnAbsence(Rule):
    about = About(
        id="DC101",
        name="gave up on an absence that was never established",
        summary="The agent gave up on a task that can be done, and its last look at the page was incomplete.",
        severity=Severity.HIGH,
        why="What is missing from an incomplete observation may well be there. An agent that takes it for absent"
        " reports missing orders, skips work, or creates a second one.",
        fix="When a snapshot says `complete: false`, look again with a larger budget or deeper into the cut part, and"
        " claim `unsure` if it stays incomplete.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._incomplete: int | None = None

    def feed(self, record: Record) -> None:
        match kind_of(record):
            case "observation":
                self._incomplete = None if boolean(record, "complete") is True else seq_of(record)
            case "action.refused" if detail_kind(record) in _LOOK_FAILED:
                self._incomplete = seq_of(record)
            case "claim" if self.run.expected is Expected.COMPLETE and self._incomplete is not None:
                outcome = text(record, "outcome")
                if outcome in {"failed", "refused"}:
                    words = f"The agent claimed “{outcome}” although its last look at the page was incomplete."
                    self.found("claim", words, self._incomplete, seq_of(record))
            case _:
                pass
