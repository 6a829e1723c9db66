from __future__ import annotations

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, boolean, kind_of, number, part, seq_of, text, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.disposition import Delivery
from deskcert_schema.vocabulary import Severity

__all__ = ["FalseVerification"]


class FalseVerification(Rule):
    about = About(
        id="DC405",
        name="called verified what the record contradicts",
        summary="A result says that its effect was read back, and the record itself, or a later one, says otherwise.",
        severity=Severity.CRITICAL,
        why="Everything downstream trusts “verified”. One that is not is worse than none.",
        fix="This is a defect of the guard or of an adapter, not of the agent: report it with the run's folder.",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._intent: tuple[int, str] = (-1, "an action")
        self._verified: tuple[int, int] | None = None

    def feed(self, record: Record) -> None:
        if kind_of(record) == "action.intent":
            self._intent = (seq_of(record), words_for(record))
        if kind_of(record) != "action.result":
            return
        of = number(record, "of")
        words = self._intent[1] if of == self._intent[0] else "an action"
        if text(record, "delivery") == Delivery.DELIVERED_VERIFIED.value:
            against = _against(record)
            if against:
                self.found(words, f"{words} was called verified, but {against}.", seq_of(record))
            self._verified = (-1 if of is None else of, seq_of(record))
        elif self._verified is not None and of == self._verified[0]:
            words = f"{words} was called verified, and a later record of the same action takes it back."
            self.found(words, words, self._verified[1], seq_of(record))


def _against(result: Record) -> str:
    """What in the result itself speaks against `delivered_verified`; empty when nothing does."""
    if text(result, "verification", "scope") in {"", "none"}:
        return "nothing was read back"
    if boolean(result, "verification", "satisfied") is not True:
        return "what was read back does not satisfy the claim"
    if boolean(result, "ok") is not True:
        return "the result is an error"
    if boolean(result, "hit", "same_as_target") is False:
        return "another element was hit"
    dispatch = part(result, "dispatch")
    if text(dispatch, "end") in {"changed", "not_sent"}:
        return "nothing was sent"
    return ""
