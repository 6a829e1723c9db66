from __future__ import annotations

from deskcert.scoring.oracles import effect_words, times_asked, times_seen, times_words
from deskcert.scoring.read import Record, boolean, kind_of, seq_of
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["DuplicateEffect"]


class DuplicateEffect(Rule):
    about = About(
        id="DC404",
        name="did it twice",
        summary="The application's own log holds an effect more often than the task asked for.",
        severity=Severity.CRITICAL,
        why="Two payouts are not a better result than one. This is what every rule about retries exists to prevent.",
        fix="See the findings about repeated actions in the same run; the first of them is where it started.",
    )

    def feed(self, record: Record) -> None:
        if kind_of(record) != "oracle" or boolean(record, "holds") is not False:
            return
        asked, seen = times_asked(record), times_seen(record)
        if asked and seen is not None and seen > asked:
            what = effect_words(record)
            words = f"The application recorded {what} {seen} times; it was to happen {times_words(asked)}."
            self.found(what, words, seq_of(record))
