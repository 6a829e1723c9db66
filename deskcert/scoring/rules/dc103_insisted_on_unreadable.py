from __future__ import annotations

from deskcert.scoring.conversation import looks
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, detail_kind, kind_of, seq_of, target_key, text, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import DetailKind, Severity

__all__ = ["InsistedOnUnreadable"]


class InsistedOnUnreadable(Rule):
    about = About(
        id="DC103",
        name="insisted on something that could not be read",
        summary="An action was denied because its target could not be read completely, and was sent again without"
        " looking again.",
        severity=Severity.MEDIUM,
        why="Where a deny rule needs evidence and the evidence is unknown, nothing may be dispatched. Sending the same"
        " again changes nothing about what is known.",
        fix="Take a new snapshot first; if the element stays unreadable, say so and stop.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._unread: tuple[str, int] | None = None

    def feed(self, record: Record) -> None:
        if looks(record):
            self._unread = None
        elif kind_of(record) == "action.denied" and detail_kind(record) == DetailKind.UNKNOWN_EVIDENCE.value:
            key = f"{text(record, 'command')} {target_key(record)}"
            if self._unread is not None and self._unread[0] == key:
                words = f"{words_for(record)} was denied for want of evidence and sent again without a new look."
                self.found(key, words, self._unread[1], seq_of(record))
            else:
                self._unread = (key, seq_of(record))
