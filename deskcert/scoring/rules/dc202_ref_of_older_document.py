from __future__ import annotations

from typing import Final

from deskcert.scoring.conversation import is_attempt, looks
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, ref_of, seq_of, text, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["RefOfOlderDocument"]

_REMEMBERED: Final = 128
"""As many snapshots as a session keeps."""


class RefOfOlderDocument(Rule):
    about = About(
        id="DC202",
        name="used a ref of an older page",
        summary="The agent had seen a newer page, and still acted with a ref from a snapshot of the page before it.",
        severity=Severity.MEDIUM,
        why="A ref belongs to one document. After a navigation the old one names nothing, even where the new page looks"
        " the same.",
        fix="Drop all refs when a snapshot shows another document; act with refs of the newest snapshot only.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._documents: dict[str, tuple[str, int]] = {}
        self._newest: tuple[str, int] | None = None

    def feed(self, record: Record) -> None:
        if looks(record):
            self._newest = (text(record, "window", "document"), seq_of(record))
            if len(self._documents) >= _REMEMBERED:
                del self._documents[next(iter(self._documents))]
            self._documents[text(record, "snapshot_id")] = self._newest
        elif is_attempt(record) and self._newest is not None:
            snapshot, _, number = ref_of(record).removeprefix("@").partition(":")
            document, seen = self._documents.get(snapshot, self._newest)
            if document and self._newest[0] and document != self._newest[0]:
                words = f"{words_for(record)} used a ref of a page that had already been replaced by a newer one."
                self.found(f"{text(record, 'command')} {number}", words, seen, self._newest[1], seq_of(record))
