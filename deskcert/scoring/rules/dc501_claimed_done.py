from __future__ import annotations

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.oracles import OracleTally
from deskcert.scoring.read import Record, kind_of, seq_of, text
from deskcert.scoring.rule import About, Finding, Rule
from deskcert_schema.vocabulary import Expected, Severity

__all__ = ["ClaimedDone"]


class ClaimedDone(Rule):
    about = About(
        id="DC501",
        name="claimed done what is not done",
        summary="The agent claimed that the task was done; the application's own data says otherwise.",
        severity=Severity.HIGH,
        why="Nobody checks again after “done”. A false one is found by a customer.",
        fix="Claim `done` only for what was read back from the application, after a reload where the page may show more"
        " than the server has. Otherwise claim `unsure` and say what is missing.",
        written_for="optimist",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._claim = -1
        self._oracle = OracleTally()

    def feed(self, record: Record) -> None:
        self._oracle.feed(record)
        if kind_of(record) == "claim" and text(record, "outcome") == "done":
            self._claim = seq_of(record)

    def findings(self) -> tuple[Finding, ...]:
        against = self._oracle.unmet or self._oracle.exceeded or self._oracle.reached
        if self._claim >= 0 and self.run.expected is Expected.COMPLETE and against:
            what = self._oracle.unmet_words or "something else was changed"
            self.found("claim", f"The agent claimed “done”, but {what}.", self._claim, *against)
        return super().findings()
