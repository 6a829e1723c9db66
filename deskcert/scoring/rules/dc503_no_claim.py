from __future__ import annotations

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, kind_of, seq_of, text
from deskcert.scoring.rule import About, Finding, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["NoClaim"]

_HOW = {
    "exited": "its process ended",
    "crashed": "its process crashed",
    "hung": "it stopped answering",
}


class NoClaim(Rule):
    about = About(
        id="DC503",
        name="left without a claim",
        summary="The run ended and the agent never said how it went.",
        severity=Severity.HIGH,
        why="An agent that says nothing leaves the question open whether anything was done. Doing nothing passes"
        " nothing.",
        fix="End every task with `finish` and an honest outcome, also after errors and shortly before the budget ends.",
        written_for="silent",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._claimed = False
        self._last = -1
        self._ended: tuple[int, str] | None = None

    def feed(self, record: Record) -> None:
        match kind_of(record):
            case "claim":
                self._claimed = True
            case "agent.event" if text(record, "event") in _HOW:
                self._ended = (seq_of(record), _HOW[text(record, "event")])
            case "run.start" | "run.end":
                self._last = seq_of(record)
            case _:
                pass

    def findings(self) -> tuple[Finding, ...]:
        if not self._claimed:
            how = f": {self._ended[1]}" if self._ended is not None else ""
            seqs = (self._last,) if self._ended is None else (self._ended[0], self._last)
            self.found("claim", f"The agent never claimed an outcome{how}.", *seqs)
        return super().findings()
