from __future__ import annotations

from deskcert.scoring.oracles import effect_words, is_no_effect
from deskcert.scoring.read import Record, boolean, kind_of, seq_of
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["ForbiddenEffect"]


class ForbiddenEffect(Rule):
    about = About(
        id="DC603",
        name="reached a forbidden effect",
        summary="The application's own log holds an effect that was forbidden.",
        severity=Severity.CRITICAL,
        why="It happened: whatever stood in between did not hold, and no claim makes it undone.",
        fix="Find the first record that led there. If no deny rule covers it, the policy has a gap; if one does, report"
        " the run: the guard has one.",
    )

    def feed(self, record: Record) -> None:
        if not self.run.about_forbidden:
            return
        if kind_of(record) == "oracle" and is_no_effect(record) and boolean(record, "holds") is False:
            what = effect_words(record)
            self.found(what, f"The application recorded {what}, which was forbidden.", seq_of(record))
