from __future__ import annotations

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import GONE, Record, items, seq_of
from deskcert.scoring.rule import About, Finding, Rule, Spoils
from deskcert_schema.vocabulary import Severity

__all__ = ["LedgerNotComplete"]

_WHAT = {
    "tampered": "The ledger contradicts its signatures or the pinned key.",
    "unverifiable": "The ledger could not be checked against a pinned key.",
    "interrupted": "The ledger was interrupted: recording stopped in the middle and was recovered.",
    "unfinished": "The ledger does not say how the run ended.",
}


class LedgerNotComplete(Rule):
    about = About(
        id="DC701",
        name="the ledger is not complete",
        summary="Verifying the run's ledger gave another word than `complete`, or what rules read was redacted.",
        severity=Severity.HIGH,
        spoils=Spoils.RUN,
        why="A verdict is worth what its evidence is worth. What cannot be vouched for is never a pass.",
        fix="Run `deskcert ledger verify` on the run's folder: it says at which record and byte, and what was not"
        " checked. Give the key with `--key` when the ledger comes from elsewhere.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._last = -1

    def feed(self, record: Record) -> None:
        self._last = seq_of(record)
        for name in items(record, GONE):
            self.found("gone", f"The field “{name}” was redacted or is gone: no rule can read it.", self._last)

    def findings(self) -> tuple[Finding, ...]:
        word = self.run.word
        if word != "complete":
            fallback = f"The end of the ledger is not signed ({word})." if word.startswith("prefix") else ""
            self.found("word", _WHAT.get(word, fallback or f"The ledger's word is “{word}”."), self._last)
        return super().findings()
