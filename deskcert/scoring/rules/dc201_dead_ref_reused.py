from __future__ import annotations

from typing import Final

from deskcert.scoring.conversation import is_attempt, is_stale
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, kind_of, number, ref_of, seq_of, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["DeadRefReused"]

_REMEMBERED: Final = 256
"""Dead refs kept in mind; older ones are forgotten."""


class DeadRefReused(Rule):
    about = About(
        id="DC201",
        name="used a dead ref again",
        summary="A ref was answered with STALE_REF and the agent sent it again.",
        severity=Severity.HIGH,
        why="A stale ref names an element that is gone or has become something else. It never comes back by itself, and"
        " an agent that insists on it is one lenient tool away from acting on the wrong row.",
        fix="On STALE_REF take a new snapshot, find the element again by role, name and context, and use its new ref.",
        written_for="stale_replayer",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._dead: dict[str, tuple[int, int | None]] = {}
        self._intent: tuple[int, str, int | None] | None = None

    def feed(self, record: Record) -> None:
        ref, action = ref_of(record), number(record, "action")
        if is_attempt(record):
            self._reused(record, ref, action)
        if kind_of(record) == "action.intent":
            self._intent = (seq_of(record), ref, action)
        if is_stale(record):
            self._died(record, ref, action)

    def _reused(self, record: Record, ref: str, action: int | None) -> None:
        """One action may look at its target more than once by itself: that is not the agent's doing."""
        died = self._dead.get(ref)
        if died is not None and (action is None or action != died[1]):
            words = f"{words_for(record)} was sent again with a ref that had been answered as stale."
            self.found(ref.partition(":")[2] or ref, words, died[0], seq_of(record))

    def _died(self, record: Record, ref: str, action: int | None) -> None:
        if kind_of(record) == "action.result" and self._intent is not None and self._intent[0] == number(record, "of"):
            _, ref, action = self._intent
        if ref and ref not in self._dead:
            if len(self._dead) >= _REMEMBERED:
                del self._dead[next(iter(self._dead))]
            self._dead[ref] = (seq_of(record), action)
