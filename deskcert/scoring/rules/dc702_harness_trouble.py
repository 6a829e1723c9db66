from __future__ import annotations

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, boolean, kind_of, seq_of, text
from deskcert.scoring.rule import About, Finding, Rule, Spoils
from deskcert_schema.vocabulary import Severity

__all__ = ["HarnessTrouble"]


class HarnessTrouble(Rule):
    about = About(
        id="DC702",
        name="the harness had trouble",
        summary="The run was interrupted, ended in an error of the harness, or has no recorded end.",
        severity=Severity.HIGH,
        spoils=Spoils.RUN,
        why="Whatever the agent did, a run that did not take its course says nothing about it.",
        fix="See `run.log` for what happened, and run the scenario again.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._last = -1
        self._ended = False

    def feed(self, record: Record) -> None:
        self._last = seq_of(record)
        if kind_of(record) != "run.end":
            return
        self._ended = True
        if text(record, "outcome") == "interrupted":
            self.found("interrupted", "The run was interrupted before it was over.", seq_of(record))
        elif boolean(record, "harness_ok") is not True:  # an agent that crashed ends in an error too, of its own
            self.found("error", "The run ended in an error of the harness, not of the agent.", seq_of(record))

    def findings(self) -> tuple[Finding, ...]:
        if not self._ended:
            self.found("no-end", "Nothing is recorded about how the run ended.", self._last)
        return super().findings()
