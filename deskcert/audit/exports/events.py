"""What every format is made from: the steps of verified runs, each with its time and the run that it stands in.

A run that was changed is not exported. One that was cut off or never sealed is, and its word goes with each event.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deskcert.audit.story import Group, Step, read_whole, story
from deskcert_ledger import Record, verify_run
from deskcert_schema.errors import LedgerError, LedgerTampered

if TYPE_CHECKING:
    from deskcert_ledger.note import Verifier

__all__ = ["NOTABLE", "VERSION", "Event", "RunEvents", "grade", "instant", "read_runs", "stable_hex"]

VERSION: Final = version("deskcert")
NOTABLE: Final = frozenset({Group.DENIAL, Group.TROUBLE})
_UNCERTAIN: Final = frozenset({"delivery_uncertain", "unknown"})


@dataclass(frozen=True, slots=True)
class RunEvents:
    """One run: what its first record says of it, and its steps."""

    run: str
    folder: Path
    word: str
    """Of the ledger: `complete`, `prefix`, …"""
    records: int
    root: str
    start: Mapping[str, Any]
    began: datetime
    steps: tuple[Step, ...]
    network: tuple[Record, ...]
    """The records about requests, in order."""

    @property
    def agent(self) -> str:
        return str(_dict(self.start.get("agent")).get("name", ""))

    @property
    def suite(self) -> str:
        return str(_dict(self.start.get("suite")).get("name", ""))

    @property
    def scenario(self) -> str:
        return str(_dict(self.start.get("scenario")).get("id", ""))

    @property
    def policy(self) -> str:
        return str(_dict(self.start.get("policy")).get("digest", ""))

    def events(self) -> Iterator[Event]:
        for step in self.steps:
            yield Event(self, step)


@dataclass(frozen=True, slots=True)
class Event:
    run: RunEvents
    step: Step

    @property
    def unix_ms(self) -> int:
        return int(self.run.began.timestamp() * 1000) + self.step.at_ms

    @property
    def uid(self) -> str:
        """The same for the same record in every export."""
        return f"{self.run.run}/{self.step.seq}"

    @property
    def blocked(self) -> bool:
        return self.step.group is Group.DENIAL or (
            self.step.group is Group.NETWORK and self.step.outcome.startswith("blocked")
        )

    @property
    def uncertain(self) -> bool:
        return self.step.group is Group.ACTION and self.step.outcome in _UNCERTAIN


def grade(event: Event) -> int:
    """0 informational, 1 low, 2 medium, 3 high."""
    if event.step.group is Group.TROUBLE:
        return 3
    if event.blocked or event.uncertain:
        return 2
    return 1 if event.step.group is Group.REFUSAL else 0


def instant(text: str) -> datetime:
    """A record's `t`; the beginning of time for one that is no time."""
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text).astimezone(UTC)
    return datetime.fromtimestamp(0, UTC)


def stable_hex(*parts: object, size: int) -> str:
    """`size` bytes that are the same for the same parts, as hexadecimal digits."""
    return sha256("\n".join(map(str, parts)).encode("utf-8", "backslashreplace")).hexdigest()[: 2 * size]


def read_run(folder: Path, pins: Sequence[Verifier]) -> RunEvents:
    """Raises `LedgerTampered`, and `LedgerFormatError` for what is no ledger."""
    report = verify_run(folder, pins=pins)
    if report.headline == "tampered":
        why = f": {report.problems[0].text}" if report.problems else ""
        raise LedgerTampered(f"what was tampered with is not exported{why}; see: deskcert ledger verify {folder}")
    records: list[Record] = []
    with contextlib.suppress(LedgerError):  # what can be read is read; the word says what that is worth
        records.extend(read_whole(folder))
    start = records[0].data if records and records[0].kind == "run.start" else {}
    return RunEvents(
        run=str(start.get("run") or folder.name),
        folder=folder,
        word=report.headline,
        records=report.size,
        root=report.root,
        start=start,
        began=instant(records[0].t if records else ""),
        steps=tuple(story(records)),
        network=tuple(r for r in records if r.kind in {"net.allowed", "net.blocked", "net.answer"}),
    )


def read_runs(folders: Sequence[Path], pins: Sequence[Verifier]) -> Iterator[RunEvents]:
    """One at a time, in the order asked for."""
    for folder in folders:
        yield read_run(folder, pins)


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
