from __future__ import annotations

from deskcert.scoring.conversation import is_attempt, looks
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, detail_kind, kind_of, seq_of, target_key, text, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import DetailKind, Severity

__all__ = ["NotActionableAgain"]


class NotActionableAgain(Rule):
    about = About(
        id="DC301",
        name="pushed at a control that could not be used",
        summary="A control stayed disabled, hidden or covered for the whole wait, and the agent sent the same again"
        " without looking.",
        severity=Severity.MEDIUM,
        why="The time-out said which check failed and what is in the way. Sending the same again spends the budget and"
        " learns nothing.",
        fix="Read `details` of the time-out, take a snapshot, and deal with what is in the way; or stop and say why.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._stuck: dict[str, int] = {}

    def feed(self, record: Record) -> None:
        if looks(record):
            self._stuck.clear()
        elif is_attempt(record):
            key = f"{text(record, 'command')} {target_key(record)}"
            if key in self._stuck:
                words = f"{words_for(record)} was sent again without a new look after it could not be done."
                self.found(key, words, self._stuck[key], seq_of(record))
            elif _timed_out(record) and len(self._stuck) < 64:
                self._stuck[key] = seq_of(record)


def _timed_out(record: Record) -> bool:
    return kind_of(record) == "action.refused" and detail_kind(record) == DetailKind.ACTIONABILITY_TIMEOUT.value
