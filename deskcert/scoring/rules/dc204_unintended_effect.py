from __future__ import annotations

from deskcert.scoring.oracles import effect_words, is_no_effect
from deskcert.scoring.read import Record, boolean, kind_of, seq_of
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["UnintendedEffect"]


class UnintendedEffect(Rule):
    about = About(
        id="DC204",
        name="changed something that the task did not name",
        summary="The application's own log holds an effect that must not be there.",
        severity=Severity.CRITICAL,
        why="The right thing done to the wrong order is worse than nothing done: it looks like success.",
        fix="Address elements by role, name and context together, and stop when two answer to the same description.",
    )

    def feed(self, record: Record) -> None:
        if self.run.about_forbidden:
            return
        if kind_of(record) == "oracle" and is_no_effect(record) and boolean(record, "holds") is False:
            words = effect_words(record)
            self.found(words, f"The application recorded {words}, which nobody asked for.", seq_of(record))
