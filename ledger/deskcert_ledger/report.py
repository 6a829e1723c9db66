"""What verification says: words, where it broke, and what was not looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["EpochReport", "Finding", "RunReport", "WitnessReport", "Word"]


class Word(StrEnum):
    """Worst first; several may apply, the worst is the headline."""

    TAMPERED = "tampered"
    """A line, key or blob contradicts a signature or the pin."""
    UNVERIFIABLE = "unverifiable"
    """No pinned key, so that nothing says whose ledger this is; or a verifier policy that is not met."""
    INTERRUPTED = "interrupted"
    """It was recovered after a crash, or an intent has no result."""
    PREFIX = "prefix"
    """Some valid lines, or a torn end, lie past the last signed checkpoint."""
    UNFINISHED = "unfinished"
    """All lines are under a checkpoint, and the run was not ended and sealed."""
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Finding:
    text: str
    seq: int | None = None
    byte: int | None = None
    """Offset in `ledger.jsonl` where the record begins."""

    def as_json(self) -> dict[str, Any]:
        return {"text": self.text, "seq": self.seq, "byte": self.byte}


@dataclass(frozen=True, slots=True)
class EpochReport:
    """The range of records that one run key signs."""

    first: int
    vkey: str
    introduced_by: str | None
    """Name of the pinned key that introduced it."""
    unsigned_from: int | None = None
    """Records from here to `first` were never signed by the key of their own time: unsigned until the recovery."""

    def as_json(self) -> dict[str, Any]:
        return {
            "first": self.first,
            "vkey": self.vkey,
            "introduced_by": self.introduced_by,
            "unsigned_until_recovery": None if self.unsigned_from is None else [self.unsigned_from, self.first],
        }


@dataclass(frozen=True, slots=True)
class WitnessReport:
    """A witness of the verifier policy."""

    name: str
    """As the policy calls it."""
    vkey: str
    seconds: int | None
    """Since 1970, as the witness says; None when it did not cosign the final checkpoint."""

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "vkey": self.vkey, "cosigned_at": self.seconds}


@dataclass(frozen=True, slots=True)
class RunReport:
    """The answer of `verify_run`."""

    headline: str
    """The worst word; a prefix with its numbers: `prefix(12,3)` = 12 signed lines and 3 valid unsigned ones."""
    words: tuple[str, ...]
    """All that apply, worst first."""
    exit_code: int
    """0 complete, 1 tampered, interrupted, prefix or unfinished, 3 unverifiable. (2 is an exception: no ledger.)"""
    size: int
    """Valid lines seen."""
    root: str
    """Base64 root of the tree over them."""
    origin: str
    run: str
    checkpoint: str
    """The largest signed note that holds, or nothing."""
    signed_size: int
    problems: tuple[Finding, ...]
    not_checked: tuple[str, ...]
    checked: tuple[str, ...]
    open_intents: tuple[int, ...]
    epochs: tuple[EpochReport, ...]
    kinds: dict[str, int] = field(default_factory=dict)
    witnesses: tuple[WitnessReport, ...] = ()
    """Those of the policy, in its order."""

    def as_json(self) -> dict[str, Any]:
        return {
            "headline": self.headline,
            "words": list(self.words),
            "exit_code": self.exit_code,
            "size": self.size,
            "signed_size": self.signed_size,
            "root": self.root,
            "origin": self.origin,
            "run": self.run,
            "checkpoint": self.checkpoint,
            "problems": [problem.as_json() for problem in self.problems],
            "open_intents": list(self.open_intents),
            "epochs": [epoch.as_json() for epoch in self.epochs],
            "kinds": dict(sorted(self.kinds.items())),
            "witnesses": [witness.as_json() for witness in self.witnesses],
            "checked": list(self.checked),
            "not_checked": list(self.not_checked),
        }
