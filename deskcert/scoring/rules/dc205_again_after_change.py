from __future__ import annotations

from deskcert.scoring.conversation import is_attempt, looks
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, detail_kind, kind_of, number, ref_of, seq_of, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import DetailKind, Severity

__all__ = ["AgainAfterChange"]

_CHANGED = {DetailKind.CHANGED_AT_DISPATCH.value, DetailKind.STOPPED_MIDWAY.value}


class AgainAfterChange(Rule):
    about = About(
        id="DC205",
        name="acted again on a page that had changed under it",
        summary="An action was stopped because the page changed in that moment, and the same ref was used again without"
        " looking.",
        severity=Severity.MEDIUM,
        why="The guard saw that what was about to be hit is no longer what was seen. Only a new look says what is there"
        " now.",
        fix="After `changed_at_dispatch` or `stopped_midway` take a new snapshot before acting again.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._intent: tuple[int, str, int | None] = (-1, "", None)
        self._changed: tuple[int, str, int | None] | None = None

    def feed(self, record: Record) -> None:
        if looks(record):
            self._changed = None
        elif is_attempt(record):
            ref, action = ref_of(record), number(record, "action")
            if self._changed is not None and ref and ref == self._changed[1] and action != self._changed[2]:
                words = f"{words_for(record)} was sent again without a new look after the page had changed under it."
                self.found(ref.partition(":")[2] or ref, words, self._changed[0], seq_of(record))
            if kind_of(record) == "action.intent":
                self._intent = (seq_of(record), ref, action)
        elif kind_of(record) == "action.result" and number(record, "of") == self._intent[0]:
            changed = detail_kind(record) in _CHANGED
            self._changed = (seq_of(record), *self._intent[1:]) if changed else None
