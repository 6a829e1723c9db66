"""What every pipeline keeps while it runs, and the small steps it is made of. Times come with the answers."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from deskcert.adapters.base import (
    Action,
    Dispatch,
    DispatchEnd,
    Handle,
    Navigation,
    PageAction,
    Probed,
    RequestSeen,
    Unreadable,
)
from deskcert.adapters.desktop import Operated, Operation
from deskcert.contract.evidence import Evidence
from deskcert.guard.steps import (
    Announce,
    Answer,
    Done,
    Leased,
    Look,
    Looked,
    Navigate,
    Navigated,
    Operate,
    OperationDone,
    Perform,
    Performed,
    Record,
    Recorded,
    Release,
    Requests,
    RequestsSeen,
    Sleep,
    Step,
    TakeLease,
)
from deskcert_schema.disposition import Delivery
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import PipelinePoint, RecordKind

__all__ = ["Machine", "Open", "Steps"]

PHASES: Final = ("resolve", "policy", "wait", "lease", "commit", "dispatch", "verify")

type Steps[T] = Generator[Step, Answer, T]


@dataclass(slots=True)
class Open:
    """An intent whose result is still due."""

    seq: int
    fingerprint: str
    sent: bool = False
    """The dispatch was asked for."""


@dataclass(slots=True)
class Machine:
    started: int
    """Monotonic, in microseconds, like every `now`."""
    commit_us: int
    """Of the last durable record."""
    now: int = field(init=False)
    leased: bool = False
    lease_from: int = field(init=False)
    lease_hold_us: int = 0
    contention: int = 0
    resolves: int = 0
    phases: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PHASES, 0))
    """Whole microseconds."""
    looks: list[dict[str, Any]] = field(default_factory=list)
    _said: set[PipelinePoint] = field(default_factory=set)
    _seen: Mapping[str, Any] = field(default_factory=dict)
    _evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now = self.started

    # --- steps --------------------------------------------------------------------------------------------------------

    def probe(self, handle: Handle, action: Action, budget_ms: int) -> Steps[Probed]:
        """An adapter that fails to look has not seen: unreadable, never absent."""
        try:
            answer = yield Look(handle, action, budget_ms)
        except AdapterError as exc:
            return Unreadable(str(exc))
        assert isinstance(answer, Looked)
        self.now = answer.now_us
        return answer.probed

    def perform(
        self, handle: Handle, action: Action, expected: Evidence, *, seq: int, budget_ms: int
    ) -> Steps[Dispatch]:
        try:
            answer = yield Perform(handle, action, expected, seq, budget_ms)
        except AdapterError as exc:
            end, reached = _known_from(exc)
            return Dispatch(end, reached=reached, error=str(exc))
        assert isinstance(answer, Performed)
        self.now = answer.now_us
        return answer.dispatch

    def go_to(self, url: str, *, seq: int, budget_ms: int, action: PageAction | None = None) -> Steps[Navigation]:
        try:
            answer = yield Navigate(url, seq, budget_ms, action)
        except AdapterError as exc:
            return Navigation(_known_from(exc)[0], error=str(exc))
        assert isinstance(answer, Navigated)
        self.now = answer.now_us
        return answer.navigation

    def operate(self, operation: Operation, *, seq: int, budget_ms: int) -> Steps[Operated]:
        try:
            answer = yield Operate(operation, seq, budget_ms)
        except AdapterError as exc:
            end, reached = _known_from(exc)
            return Operated(Dispatch(end, reached=reached, error=str(exc)))
        assert isinstance(answer, OperationDone)
        self.now = answer.now_us
        return answer.operated

    def requests(self, number: int) -> Steps[tuple[RequestSeen, ...]]:
        answer = yield Requests(number)
        assert isinstance(answer, RequestsSeen)
        self.now = answer.now_us
        return answer.requests

    def record(self, kind: RecordKind, payload: Mapping[str, Any]) -> Steps[Recorded]:
        answer = yield Record(kind, payload)
        assert isinstance(answer, Recorded)
        self.now = answer.now_us
        if answer.seq is not None:
            self.commit_us = answer.commit_us
        return answer

    def say(self, point: PipelinePoint) -> Steps[None]:
        """Once an action, so that what a test does there happens once."""
        if point in self._said:
            return
        self._said.add(point)
        answer = yield Announce(point)
        assert isinstance(answer, Done)
        self.now = answer.now_us

    def sleep(self, ms: int) -> Steps[None]:
        answer = yield Sleep(ms)
        assert isinstance(answer, Done)
        self.now = answer.now_us

    def take_lease(self, budget_ms: int) -> Steps[bool]:
        began = self.now
        answer = yield TakeLease(budget_ms)
        assert isinstance(answer, Leased)
        self.now = answer.now_us
        self.contention += answer.contention
        self.count("lease", self.now - began)
        self.leased, self.lease_from = answer.held, self.now
        return answer.held

    def release(self) -> Steps[None]:
        """Nothing happens when no lease is held, so that every path may end with it."""
        if not self.leased:
            return
        answer = yield Release()
        assert isinstance(answer, Done)
        self.leased, self.now = False, answer.now_us
        self.lease_hold_us += self.now - self.lease_from

    # --- notes --------------------------------------------------------------------------------------------------------

    def note_look(self, facts: Mapping[str, Any], evidence: Evidence | None = None) -> None:
        """A look, kept as what differs from the one before; its evidence too, part by part, so that every look can be
        decided again."""
        changed = {k: v for k, v in facts.items() if self._seen.get(k) != v}
        self._seen = dict(facts)
        if evidence is not None:
            seen, before = evidence.as_json(), self._evidence
            parts = {k: seen.get(k) for k in sorted({*seen, *before}) if seen.get(k) != before.get(k)}
            changed |= {"evidence": parts} if parts else {}
            self._evidence = seen
        self.looks.append({"t_us": self.now - self.started, "changed": changed})

    def count(self, phase: str, us: int) -> None:
        self.phases[phase] += us

    def left_ms(self, timeout_ms: int) -> int:
        return timeout_ms - (self.now - self.started) // 1_000

    def elapsed_ms(self) -> int:
        return (self.now - self.started) // 1_000

    def late(self, timeout_ms: int) -> bool:
        """Past the deadline. A time-out of 0 is one look, which is never late."""
        return timeout_ms > 0 and self.now - self.started > timeout_ms * 1_000


def _known_from(exc: AdapterError) -> tuple[DispatchEnd, bool]:
    """The adapter knows what was delivered; whatever it does not rule out may have happened."""
    if exc.delivery == Delivery.NOT_DELIVERED:
        return DispatchEnd.NOT_SENT, False
    return DispatchEnd.NO_ANSWER, exc.delivery in (Delivery.DELIVERED_UNVERIFIED, Delivery.DELIVERED_VERIFIED)
