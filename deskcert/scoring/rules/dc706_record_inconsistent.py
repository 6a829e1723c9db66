from __future__ import annotations

from typing import Final

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, boolean, kind_of, number, seq_of, text
from deskcert.scoring.rule import About, Rule, Spoils
from deskcert_schema.disposition import SUCCESS_DELIVERIES, Disposition
from deskcert_schema.errors import ContractError
from deskcert_schema.vocabulary import Severity

__all__ = ["RecordInconsistent"]

_REMEMBERED: Final = 64


class RecordInconsistent(Rule):
    about = About(
        id="DC706",
        name="the records contradict each other",
        summary="A result belongs to no intent, comes twice, or carries a delivery and retry that never go together.",
        severity=Severity.HIGH,
        spoils=Spoils.RUN,
        why="deskcert never writes such records. Something else did, or deskcert has a defect.",
        fix="Report the run with its folder.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._intents: list[int] = []

    def feed(self, record: Record) -> None:
        if kind_of(record) == "action.intent":
            self._intents = [*self._intents[1 - _REMEMBERED :], seq_of(record)]
        if kind_of(record) != "action.result":
            return
        of = number(record, "of")
        if of in self._intents:
            self._intents.remove(of)
        else:
            self.found("of", "A result belongs to no open intent.", seq_of(record))
        try:
            disposition = Disposition.read(record)
        except ContractError:
            self.found("disposition", "A result's delivery and retry never go together.", seq_of(record))
            return
        if boolean(record, "ok") is True and disposition.delivery not in SUCCESS_DELIVERIES:
            self.found("ok", f"A result is called ok with delivery “{text(record, 'delivery')}”.", seq_of(record))
