"""What the pipeline asks for, and what it is told: a generator yields a `Step` and is sent the matching answer.

The pipeline does no I/O and reads no clock. `now_us` (monotonic, microseconds) comes with every answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deskcert.adapters.base import Action, Dispatch, Handle, Navigation, PageAction, Probed, RequestSeen
from deskcert.adapters.desktop import Operated, Operation
from deskcert.contract.evidence import Evidence
from deskcert_schema.vocabulary import PipelinePoint, RecordKind

__all__ = [
    "Announce",
    "Answer",
    "Done",
    "Leased",
    "Look",
    "Looked",
    "Navigate",
    "Navigated",
    "Operate",
    "OperationDone",
    "Perform",
    "Performed",
    "Record",
    "Recorded",
    "Release",
    "Requests",
    "RequestsSeen",
    "Sleep",
    "Step",
    "TakeLease",
]


@dataclass(frozen=True, slots=True)
class Look:
    """(2) (4): probe the retained element. Answer: `Looked`."""

    handle: Handle
    action: Action
    budget_ms: int


@dataclass(frozen=True, slots=True)
class Sleep:
    """Answer: `Done`."""

    ms: int


@dataclass(frozen=True, slots=True)
class TakeLease:
    """(5). Answer: `Leased`."""

    budget_ms: int


@dataclass(frozen=True, slots=True)
class Release:
    """Answer: `Done`. After `TakeLease` the pipeline always yields this, on every path."""


@dataclass(frozen=True, slots=True)
class Record:
    """Write one ledger record. Answer: `Recorded`. Payload values may be `deskcert_ledger` secrets."""

    kind: RecordKind
    payload: Mapping[str, Any]
    durable: bool = True


@dataclass(frozen=True, slots=True)
class Announce:
    """Say at which pipeline point we are. Answer: `Done`, once whatever a test does there is done."""

    point: PipelinePoint


@dataclass(frozen=True, slots=True)
class Perform:
    """(7): dispatch, exactly once. Answer: `Performed`. `number` is the intent's sequence number."""

    handle: Handle
    action: Action
    expected: Evidence
    number: int
    budget_ms: int


@dataclass(frozen=True, slots=True)
class Navigate:
    """(7) for page commands. Answer: `Navigated`. `action` for every one but navigate itself."""

    url: str
    number: int
    budget_ms: int
    action: PageAction | None = None


@dataclass(frozen=True, slots=True)
class Operate:
    """(7) and the reading of (8) for commands on the desktop. Answer: `OperationDone`."""

    operation: Operation
    number: int
    budget_ms: int


@dataclass(frozen=True, slots=True)
class Requests:
    """What is known now about the requests of action `number`. Answer: `RequestsSeen`."""

    number: int


type Step = Look | Sleep | TakeLease | Release | Record | Announce | Perform | Navigate | Operate | Requests


@dataclass(frozen=True, slots=True)
class Looked:
    probed: Probed
    now_us: int


@dataclass(frozen=True, slots=True)
class Done:
    now_us: int


@dataclass(frozen=True, slots=True)
class Leased:
    held: bool
    contention: int
    now_us: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """`seq` is None when the record could not be made durable: then nothing may be dispatched."""

    seq: int | None
    commit_us: int
    now_us: int
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Performed:
    dispatch: Dispatch
    now_us: int


@dataclass(frozen=True, slots=True)
class Navigated:
    navigation: Navigation
    now_us: int


@dataclass(frozen=True, slots=True)
class OperationDone:
    operated: Operated
    now_us: int


@dataclass(frozen=True, slots=True)
class RequestsSeen:
    requests: tuple[RequestSeen, ...]
    now_us: int


type Answer = Looked | Done | Leased | Recorded | Performed | Navigated | OperationDone | RequestsSeen
