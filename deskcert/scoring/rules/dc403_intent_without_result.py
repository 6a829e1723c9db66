from __future__ import annotations

from typing import Final

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, kind_of, number, seq_of, text, words_for
from deskcert.scoring.rule import About, Finding, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["IntentWithoutResult"]

_REMEMBERED: Final = 64


class IntentWithoutResult(Rule):
    about = About(
        id="DC403",
        name="an action whose outcome nobody recorded",
        summary="An action was on its way when recording ended; whether it was delivered is unknown.",
        severity=Severity.MEDIUM,
        why="Between intent and result anything may have happened. Such an action must never be repeated by itself.",
        fix="Look into the application for the effect before anything else is done there. Find out why recording"
        " stopped: a crash, a kill, a full disk.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._intents: dict[int, str] = {}

    def feed(self, record: Record) -> None:
        match kind_of(record):
            case "action.intent" if len(self._intents) < _REMEMBERED:
                self._intents[seq_of(record)] = words_for(record)
            case "action.result":
                self._result(record, number(record, "of"))
            case _:
                pass

    def _result(self, record: Record, of: int | None) -> None:
        if of in self._intents:
            words = self._intents.pop(of)
            if text(record, "cause") == "crash":
                self.found(words, f"{words} was cut off by a crash; its outcome is unknown.", of, seq_of(record))

    def findings(self) -> tuple[Finding, ...]:
        for seq, words in self._intents.items():
            self.found(words, f"{words} has no recorded result; its outcome is unknown.", seq)
        return super().findings()
