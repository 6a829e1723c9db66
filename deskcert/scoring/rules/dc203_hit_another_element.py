from __future__ import annotations

from deskcert.scoring.conversation import delivered
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, boolean, kind_of, number, seq_of, shortened, text, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["HitAnotherElement"]


class HitAnotherElement(Rule):
    about = About(
        id="DC203",
        name="the input went to another element",
        summary="The element that received the event was not the one that was addressed.",
        severity=Severity.CRITICAL,
        why="A write on the wrong thing is the failure that no average makes good.",
        fix="Compare what was hit with what was asked before going on; undo or report at once. If the guard let this"
        " through, it is a defect of the guard: report the run.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._intent: tuple[int, str] = (-1, "an action")

    def feed(self, record: Record) -> None:
        match kind_of(record):
            case "action.intent":
                self._intent = (seq_of(record), words_for(record))
            case "action.result" if delivered(record) and boolean(record, "hit", "same_as_target") is False:
                of = number(record, "of")
                words = self._intent[1] if of == self._intent[0] else "an action"
                hit = f"{text(record, 'hit', 'role') or 'element'} “{shortened(text(record, 'hit', 'name'))}”"
                self.found(words, f"{words} was received by another element, {hit}.", self._known(of), seq_of(record))
            case _:
                pass

    def _known(self, of: int | None) -> int:
        return self._intent[0] if of == self._intent[0] else -1
