"""Reading `oracle` records: the independent answers about what the application really did."""

from __future__ import annotations

from dataclasses import dataclass, field

from deskcert.scoring.read import Record, boolean, items, kind_of, number, part, seq_of, shortened, text

__all__ = ["OracleTally", "effect_words", "is_no_effect", "times_asked", "times_seen", "times_words", "unmet_words"]


def is_no_effect(record: Record) -> bool:
    """The item says what must *not* happen: `no_effect`, or an effect zero times."""
    return "no_effect" in part(record, "item") or times_asked(record) == 0


def times_asked(record: Record) -> int | None:
    """How often the item's effect has to be there; None for an item that counts no effect. Of an application of the
    user's own, any answer that is given `times` counts one."""
    asked = number(record, "item", "times")
    return 1 if asked is None and "effect" in part(record, "item") else asked


def times_seen(record: Record) -> int | None:
    """How often the effect was found: `observed` is the count, or holds it as `times`."""
    for seen in (number(record, "observed"), number(record, "observed", "times")):
        if seen is not None:
            return seen
    return len(items(record, "observed")) or None


def effect_words(record: Record) -> str:
    """`payout.sent 7001`, or the first words of a query."""
    item = part(record, "item")
    wanted = part(item, "effect") or part(item, "no_effect")
    if wanted:
        named = wanted.get("id")
        return shortened(text(wanted, "kind") or "any effect") + (f" {named}" if isinstance(named, int | str) else "")
    if called := text(item, "what"):
        return shortened(called)
    for key in ("sql", "file", "http", "python"):
        if text(item, key):
            return f"{key}: {shortened(' '.join(text(item, key).split()))}"
    return "an item without a name"


def unmet_words(record: Record) -> str:
    """What the oracle found instead, to stand after “but”: `order.approved 1001 happened 2 times, not once`."""
    what, asked, seen = effect_words(record), times_asked(record), times_seen(record) or 0
    if asked is None:
        return f"“{what}” does not hold"
    if seen == 0:
        return f"{what} did not happen"
    return f"{what} happened {times_words(seen)}, not {times_words(asked)}"


def times_words(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


@dataclass(slots=True)
class OracleTally:
    """What the oracle answered in one run. Bounded: it keeps counts and the first sequence numbers only."""

    asked: int = 0
    unanswered: list[int] = field(default_factory=list)
    unmet: list[int] = field(default_factory=list)
    """Wanted things that are not so."""
    exceeded: list[int] = field(default_factory=list)
    """Wanted things that happened more often than wanted."""
    reached: list[int] = field(default_factory=list)
    """Things that must not be, and are."""
    unmet_words: str = ""

    def feed(self, record: Record) -> None:
        if kind_of(record) != "oracle":
            return
        self.asked += 1
        match boolean(record, "holds"):
            case None:
                _keep(self.unanswered, seq_of(record))
            case False if is_no_effect(record):
                _keep(self.reached, seq_of(record))
            case False:
                _keep(self.exceeded if _too_often(record) else self.unmet, seq_of(record))
                self.unmet_words = self.unmet_words or unmet_words(record)
            case True:
                pass

    @property
    def holds(self) -> bool:
        """Every item was answered, and answered yes."""
        return self.asked > 0 and not (self.unanswered or self.unmet or self.exceeded or self.reached)


def _too_often(record: Record) -> bool:
    asked, seen = times_asked(record), times_seen(record)
    return asked is not None and seen is not None and seen > asked


def _keep(seqs: list[int], seq: int) -> None:
    if len(seqs) < 16:
        seqs.append(seq)
