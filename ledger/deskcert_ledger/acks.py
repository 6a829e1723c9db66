"""What a writer is told: the two acknowledgements, the receipt, and the future that carries it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures._base import FINISHED, RUNNING
from enum import StrEnum
from typing import Any, NamedTuple

from deskcert_ledger.payload import Prepared
from deskcert_schema.errors import LedgerUnavailable

__all__ = ["Ack", "Answer", "Item", "Receipt", "fail"]


class Ack(StrEnum):
    DURABLE = "durable"
    """On the disk, and everything before it."""
    ORDERED = "ordered"
    """Numbered; on the disk with the next commit."""


class Receipt(NamedTuple):
    seq: int
    commit_us: int
    """Duration of write and sync, whole microseconds; 0 for an ordered acknowledgement."""


class Answer(Future[Receipt]):
    """A future whose lock is made when somebody waits: most answers are there before anybody asks.

    A record cannot be taken back, so that it is running from the beginning. Making and passing the standard library's
    locks took a third of the time of a record that was not waited for.
    """

    def __init__(self) -> None:
        self._state = RUNNING
        self._result: Receipt | None = None
        self._exception: BaseException | None = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Callable[[Future[Receipt]], object]] = []

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        made = self.__dict__.get("lock")
        if made is None:
            made = self.__dict__.setdefault("lock", threading.Condition())  # whoever is first: one for all
        return made  # type: ignore[no-any-return]

    def result(self, timeout: float | None = None) -> Receipt:
        if self._state is FINISHED and self._result is not None:
            return self._result
        return super().result(timeout)

    def set_result(self, result: Receipt) -> None:
        self._result = result
        self._finish()

    def set_exception(self, exception: BaseException | None) -> None:
        self._exception = exception
        self._finish()

    def _finish(self) -> None:
        # The state first, then a look for a lock. Who waits makes the lock first, then looks at the state: one of the
        # two sees the other.
        self._state = FINISHED
        made = self.__dict__.get("lock")
        if made is None:
            return
        with made:
            for waiter in self._waiters:
                (waiter.add_exception if self._exception is not None else waiter.add_result)(self)
            made.notify_all()
        self._invoke_callbacks()  # type: ignore[attr-defined]


class Item:
    """A record between its caller and the disk."""

    __slots__ = ("ack", "answer", "kind", "m", "prepared", "seq", "t", "w")

    def __init__(self, w: str, kind: str, prepared: Prepared, ack: Ack, answer: Answer | None) -> None:
        self.w, self.kind, self.prepared, self.ack, self.answer = w, kind, prepared, ack, answer
        """Without an answer: the caller is the one who takes the turn."""
        self.t, self.m = "", 0
        self.seq = -1


def fail(items: list[Item], reason: str) -> None:
    for item in items:
        if item.answer is not None and not item.answer.done():
            item.answer.set_exception(LedgerUnavailable(reason))
