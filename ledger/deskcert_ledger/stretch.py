"""What a scan tells of some lines that follow each other, and what it is told: see `scan`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["BlobEvent", "Bounds", "ClassEvent", "Options", "RecordEvent", "SchemaEvent", "Stretch"]


class RecordEvent(NamedTuple):
    """A record whose content matters."""

    seq: int
    byte: int
    data: dict[str, Any]


class ClassEvent(NamedTuple):
    """A member of record classes."""

    seq: int
    names: tuple[str, ...]
    leaf: bytes


class BlobEvent(NamedTuple):
    """A blob that is missing or another (`wrong` says it), or one that was redacted and is as it was."""

    seq: int
    byte: int
    name: str
    wrong: str | None


class SchemaEvent(NamedTuple):
    """A record that does not fit its schema."""

    seq: int
    byte: int
    text: str


type Event = RecordEvent | ClassEvent | BlobEvent | SchemaEvent


@dataclass(slots=True)
class Stretch:
    first: int
    """Number of the first line."""
    begin: int
    """Its byte."""
    count: int = 0
    end: int = 0
    """Byte after the last line, its newline included."""
    nodes: list[tuple[int, bytes]] = field(default_factory=list)
    """What `Tree.push` takes."""
    kinds: Counter[str] = field(default_factory=Counter)
    opened: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    blobs: int = 0
    elided: int = 0
    last_kind: str = ""
    bad: str | None = None
    """Why the line after the last one is none, or why the end is no line."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which part of a ledger is scanned: bytes [begin, end) with lines from number `first` on."""

    begin: int = 0
    end: int | None = None
    """None: to the end of the file."""
    first: int = 0


@dataclass(frozen=True, slots=True)
class Options:
    folder: Path
    redacted: frozenset[str] = frozenset()
    """Names of blobs that were redacted."""
    schema: bool = False
