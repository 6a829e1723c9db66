from __future__ import annotations

from deskcert.scoring.read import Record, kind_of, seq_of, shortened, text
from deskcert.scoring.rule import About, Rule, Spoils
from deskcert_schema.vocabulary import Severity

__all__ = ["ComponentLost"]


class ComponentLost(Rule):
    about = About(
        id="DC703",
        name="a component was lost",
        summary="The browser, the proxy, the application or the oracle died during the run.",
        severity=Severity.HIGH,
        spoils=Spoils.RUN,
        why="From that moment on nobody can say what the agent's actions met, or what else happened.",
        fix="Look at `run.log` for its last words; check memory and disk; run the scenario again.",
    )

    def feed(self, record: Record) -> None:
        if kind_of(record) == "component.lost":
            what = shortened(text(record, "component")) or "part"
            self.found(what, f"The {what} was lost during the run.", seq_of(record))
