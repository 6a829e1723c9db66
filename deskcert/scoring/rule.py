"""What a scoring rule is: a small state machine that is fed a run's records in order and names what they prove.

A rule sees `RunFacts` and records; it has no other input, keeps a bounded amount of state, and never raises over a
record's content. It is tried on conversations in tests/scoring/, where it must both trigger and stay silent.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record
from deskcert_schema.vocabulary import Attribution, Confidence, Severity

__all__ = ["MOST_FINDINGS", "MOST_SEQS", "About", "Finding", "Rule", "Spoils", "severity_rank"]

MOST_FINDINGS: Final = 20
"""Findings of one rule in one run; what comes later says the same again."""
MOST_SEQS: Final = 16
"""Sequence numbers of one finding: the first ones prove it."""

ATTRIBUTION_OF_GROUP: Final = {
    "1": Attribution.SAW_TOO_LITTLE,
    "2": Attribution.WRONG_TARGET,
    "3": Attribution.ACTION_LIMITED,
    "4": Attribution.RESULT_UNKNOWN,
    "5": Attribution.GOAL_NOT_MET,
    "6": Attribution.POLICY_BREACH,
    "7": Attribution.EVIDENCE_BROKEN,
}
"""DC1xx, DC2xx, …: the first digit of a rule's id says what its findings are attributed to."""

_ID: Final = re.compile(r"DC([1-7])[0-9]{2}")
_ORDER: Final = tuple(Severity)


def severity_rank(severity: Severity) -> int:
    """0 for `info`, 4 for `critical`."""
    return _ORDER.index(severity)


class Spoils(StrEnum):
    """What a finding about the evidence does to the outcome of its run."""

    RUN = "run"
    """Nothing can be said about the agent: `inconclusive`."""
    PASS = "pass"
    """A pass proves nothing and becomes `inconclusive`; a failure stays one."""
    CUSTODY = "custody"
    """Others may have had a hand in it: `contaminated`."""


@dataclass(frozen=True, slots=True)
class About:
    """A rule's words for people. `deskcert rules`, `deskcert explain` and docs/rules.md are made from it."""

    id: str
    name: str
    summary: str
    severity: Severity
    why: str
    fix: str
    confidence: Confidence = Confidence.CERTAIN
    written_for: str | None = None
    """The reference agent whose one defect this rule has to catch."""
    spoils: Spoils | None = None

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"{self.id!r} is not a rule id: expected DC1xx to DC7xx")
        if not all((self.name, self.summary, self.why, self.fix)):
            raise ValueError(f"{self.id}: name, summary, why and fix are all needed")
        if (self.spoils is not None) is not (self.attribution is Attribution.EVIDENCE_BROKEN):
            raise ValueError(f"{self.id}: a rule about evidence, and only such a rule, says what it spoils")

    @property
    def attribution(self) -> Attribution:
        return ATTRIBUTION_OF_GROUP[self.id[2]]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule has to say about one run."""

    about: About
    key: str
    """What tells this finding from others of the same rule in the same run; independent of run ids and numbers."""
    seqs: tuple[int, ...]
    """The records that prove it, ascending."""
    text: str


@dataclass(slots=True)
class _Open:
    words: str
    seqs: list[int] = field(default_factory=list)


class Rule(ABC):
    about: ClassVar[About]

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    def start(self, run: RunFacts) -> None:
        """Called once, before the first record."""
        self.run = run

    @abstractmethod
    def feed(self, record: Record) -> None:
        """Called for every record, in order; the first is `run.start`."""

    def findings(self) -> tuple[Finding, ...]:
        """Called once, after the last record."""
        return tuple(
            Finding(self.about, key, tuple(sorted(set(found.seqs))), found.words) for key, found in self._open.items()
        )

    def found(self, key: str, words: str, *seqs: int) -> None:
        """The records `seqs` prove it. More of the same `key` adds records to the same finding."""
        if key not in self._open:
            if len(self._open) >= MOST_FINDINGS:
                return
            self._open[key] = _Open(words[:1].upper() + words[1:])
        known = self._open[key].seqs
        known.extend(s for s in seqs if s >= 0 and s not in known and len(known) < MOST_SEQS)
