from __future__ import annotations

from typing import Final

from deskcert.scoring.conversation import was_reached
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.oracles import effect_words, is_no_effect
from deskcert.scoring.read import Record, boolean, items, kind_of, number, seq_of, target_key, text
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["UnintendedEffect"]

_REMEMBERED: Final = 64
"""Actions that reached the application; the later ones are forgotten."""
_NOT_IT: Final = frozenset({"navigate", "set-value", "type", "clear", "scroll", "hover", "focus", "scroll-to"})


class UnintendedEffect(Rule):
    about = About(
        id="DC204",
        name="changed something that the task did not name",
        summary="The application's own log holds an effect that must not be there.",
        severity=Severity.CRITICAL,
        why="The right thing done to the wrong order is worse than nothing done: it looks like success.",
        fix="Address elements by role, name and context together, and stop when two answer to the same description.",
        written_for="wrong_row",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._intent: tuple[int, str] = (-1, "")
        self._reached: list[tuple[int, str]] = []

    def feed(self, record: Record) -> None:
        if self.run.about_forbidden:
            return
        match kind_of(record):
            case "action.intent" if text(record, "command") not in _NOT_IT:
                self._intent = (seq_of(record), target_key(record))
            case "action.result" if number(record, "of") == self._intent[0] and was_reached(record):
                if len(self._reached) < _REMEMBERED:
                    self._reached.append(self._intent)
            case "oracle" if is_no_effect(record) and boolean(record, "holds") is False:
                words = effect_words(record)
                told = f"The application recorded {words}, which nobody asked for."
                self.found(words, told, *self._did_it(record), seq_of(record))
            case _:
                pass

    def _did_it(self, oracle: Record) -> list[int]:
        """The actions on what the effect names; or the only action that there was."""
        ids = {str(e["id"]) for e in items(oracle, "observed", "effects") if isinstance(e, dict) and e.get("id")}
        named = [seq for seq, target in self._reached if any(i in target for i in ids)]
        return named[:8] or [seq for seq, _ in self._reached if len(self._reached) == 1]
