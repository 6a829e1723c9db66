from __future__ import annotations

from deskcert.scoring.read import Record, boolean, kind_of, seq_of, shortened, text
from deskcert.scoring.rule import About, Rule, Spoils
from deskcert_schema.vocabulary import Severity

__all__ = ["PerturbationNotApplied"]


class PerturbationNotApplied(Rule):
    about = About(
        id="DC704",
        name="the test's own change did not happen",
        summary="The scenario was to change the page at a certain moment, and that did not work.",
        severity=Severity.HIGH,
        spoils=Spoils.PASS,
        why="The scenario then tests something easier than it says; passing it proves nothing.",
        fix="See `why` in the record. Usually the page was no longer the one that the scenario is about.",
    )

    def feed(self, record: Record) -> None:
        if kind_of(record) == "perturbation" and boolean(record, "applied") is not True:
            what = f"{shortened(text(record, 'do')) or 'a change'} at {shortened(text(record, 'at')) or 'its moment'}"
            self.found(what, f"The scenario's own change ({what}) could not be made.", seq_of(record))
