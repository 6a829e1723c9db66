from __future__ import annotations

from typing import Final

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, boolean, kind_of, number, seq_of
from deskcert.scoring.rule import About, Finding, Rule, Spoils
from deskcert_schema.vocabulary import Severity

__all__ = ["ProxyFellSilent"]

_INTERVALS: Final = 5
"""As many heartbeats late is a gap: a busy machine delays one or two."""


class ProxyFellSilent(Rule):
    about = About(
        id="DC709",
        name="the proxy fell silent",
        summary="The proxy's heartbeats are not complete: one is missing, too long in coming, or the last one is not"
        " there.",
        severity=Severity.HIGH,
        spoils=Spoils.RUN,
        why="In the gap nobody vouches for what went over the network.",
        fix="Look at the proxy's messages in the output folder; check memory and load; run the scenario again.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._next, self._at_us, self._ended, self._trouble, self._last = 0, 0, False, False, -1

    def feed(self, record: Record) -> None:
        self._last = seq_of(record)
        match kind_of(record):
            case "net.heartbeat" if self.run.proxied:
                self._beat(record)
            case "component.lost":
                self._trouble = True
            case "run.end":
                self._trouble = self._trouble or boolean(record, "harness_ok") is not True
            case _:
                pass

    def _beat(self, record: Record) -> None:
        n, at_us = number(record, "n"), number(record, "m") or 0
        if n != self._next:
            self.found("missing", "A heartbeat of the proxy is missing.", seq_of(record))
        longest_us = (number(record, "every_ms") or 0) * 1000 * _INTERVALS
        if self._next > 0 and at_us - self._at_us > longest_us:
            late = (at_us - self._at_us) // 1_000_000
            self.found("gap", f"The proxy gave no sign of life for {late} s.", seq_of(record))
        self._next, self._at_us = (n if n is not None else self._next) + 1, at_us
        self._ended = boolean(record, "last") is True

    def findings(self) -> tuple[Finding, ...]:
        """A run that had trouble anyway is told by other rules."""
        if self.run.proxied and not self._trouble and not self._ended:
            self.found("end", "The proxy did not end in order: its last heartbeat is not there.", self._last)
        return super().findings()
