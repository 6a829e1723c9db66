from __future__ import annotations

from deskcert.scoring.facts import OWNED
from deskcert.scoring.read import Record, kind_of, seq_of
from deskcert.scoring.rule import About, Rule, Spoils
from deskcert_schema.vocabulary import Severity

__all__ = ["SharedCustody"]


class SharedCustody(Rule):
    about = About(
        id="DC707",
        name="others had their hands in it",
        summary="The browser was not deskcert's own: somebody else could act in it too.",
        severity=Severity.HIGH,
        spoils=Spoils.CUSTODY,
        why="In a shared browser an effect cannot be put down to the agent, nor its absence.",
        fix="Let deskcert start the browser. Attached ones are for trying things out and are never certified.",
    )

    def feed(self, record: Record) -> None:
        if kind_of(record) == "run.start" and self.run.custody != OWNED:
            self.found("custody", "The browser was shared with others during the run.", seq_of(record))
