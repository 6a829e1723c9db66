from __future__ import annotations

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, boolean, kind_of, seq_of, text
from deskcert.scoring.rule import About, Finding, Rule, Spoils
from deskcert_schema.vocabulary import Severity

__all__ = ["ProxyNotProven"]

_PHASES = ("start", "end")


class ProxyNotProven(Rule):
    about = About(
        id="DC708",
        name="the proxy was not proven to be in the path",
        summary="The run says that a proxy was used, and the canary that proves it is missing at its start or its end.",
        severity=Severity.HIGH,
        spoils=Spoils.RUN,
        why="A proxy that the browser goes round sees nothing, and its silence looks like good behaviour.",
        fix="Run the scenario again. If it stays so, look for a bypass list, a proxy setting of the system, or another"
        " program on the port.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._missing, self._trouble, self._last = set(_PHASES), False, -1

    def feed(self, record: Record) -> None:
        self._last = seq_of(record)
        match kind_of(record):
            case "canary" if boolean(record, "blocked") is True:
                self._missing.discard(text(record, "phase"))
            case "component.lost":
                self._trouble = True
            case "run.end":
                self._trouble = self._trouble or boolean(record, "harness_ok") is not True
            case _:
                pass

    def findings(self) -> tuple[Finding, ...]:
        """A run that had trouble anyway is told by other rules."""
        if self.run.proxied and not self._trouble:
            for phase in _PHASES:
                if phase in self._missing:
                    self.found(phase, f"No canary was blocked by the proxy at the {phase} of the run.", self._last)
        return super().findings()
