from __future__ import annotations

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.oracles import OracleTally
from deskcert.scoring.read import Record, kind_of, seq_of, text
from deskcert.scoring.rule import About, Finding, Rule, Spoils
from deskcert_schema.vocabulary import Severity

__all__ = ["OracleMissing"]


class OracleMissing(Rule):
    about = About(
        id="DC705",
        name="nobody could say what really happened",
        summary="The oracle gave no answer, was never asked, or the application's effect log was off.",
        severity=Severity.HIGH,
        spoils=Spoils.RUN,
        why="Without independent evidence only the agent's word is left, and its word is what is being judged.",
        fix="Check that the application writes its effect log and that the oracle can open its database.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._oracle = OracleTally()
        self._last = -1

    def feed(self, record: Record) -> None:
        self._oracle.feed(record)
        self._last = seq_of(record)
        # `none`: an application of the user's own has no such log, and its oracles look elsewhere.
        if kind_of(record) == "run.end" and text(record, "effects_log") not in ("enabled", "none"):
            self.found("log", "The application's effect log was not enabled.", seq_of(record))

    def findings(self) -> tuple[Finding, ...]:
        if self._oracle.unanswered:
            self.found("unanswered", "The oracle could not answer.", *self._oracle.unanswered)
        elif not self._oracle.asked:
            self.found("unasked", "The oracle was never asked.", self._last)
        return super().findings()
