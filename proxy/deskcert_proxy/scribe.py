"""Writes the proxy's records. Writes wait for the disk; reads, answers and heartbeats ride along in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final, Protocol

from deskcert_ledger import Ack, Receipt, Secret
from deskcert_proxy.link import LedgerLink
from deskcert_schema.errors import LedgerUnavailable

__all__ = ["KINDS", "Scribe", "Sink"]

KINDS: Final = frozenset({"net.allowed", "net.blocked", "net.answer", "net.heartbeat", "canary", "component.lost"})
"""All that a proxy may write."""
_WAIT_S: Final = 10.0


type Pending = Future[Receipt] | asyncio.Future[Receipt]


class Sink(Protocol):
    """`RunLedger`, or `LedgerLink` where the ledger lives in another process."""

    @property
    def poisoned(self) -> str | None: ...

    def submit(self, kind: str, payload: Mapping[str, Any], *, w: str = ..., ack: Ack = ...) -> Pending: ...


class Scribe:
    def __init__(self, sink: Sink, *, rng: Callable[[int], bytes], beat_s: float = 2.0) -> None:
        self._sink, self._beat_s = sink, beat_s
        self.salt = rng(16)
        self._told_salt = False
        self._beats = 0
        self._counts = {"allowed": 0, "blocked": 0, "faults": 0}
        self._lost: str | None = None
        self.on_lost: Callable[[str], None] | None = None
        """Told once, when nothing can be written any more."""

    async def allowed(self, payload: Mapping[str, Any], *, durable: bool) -> int | None:
        """Its number when this returns durably; None for a read. Raises `LedgerUnavailable`, `TimeoutError`."""
        self._counts["allowed"] += 1
        if not durable:
            self._note("net.allowed", payload)
            return None
        return await self._durably("net.allowed", payload)

    async def blocked(self, payload: Mapping[str, Any]) -> None:
        """What is blocked stays blocked, also when that cannot be written."""
        self._counts["blocked"] += 1
        try:
            await self._durably("net.blocked", payload)
        except (LedgerUnavailable, TimeoutError) as error:
            self._lose(str(error))

    async def canary(self, payload: Mapping[str, Any]) -> None:
        await self._durably("canary", payload)

    def answered(self, seq: int | None, status: int) -> None:
        if seq is not None:
            self._note("net.answer", {"of": seq, "status": status})

    def fault(self, hook: str, error: BaseException) -> None:
        self._counts["faults"] += 1
        detail = f"the hook {hook} failed and closed the way: {type(error).__name__}"
        try:
            self._submit("component.lost", {"component": "proxy", "detail": detail}, Ack.DURABLE)
        except LedgerUnavailable as unavailable:
            self._lose(str(unavailable))

    async def beat(self) -> None:
        while True:
            self._beat()
            await asyncio.sleep(self._beat_s)

    def last_beat(self) -> None:
        self._beat(last=True)

    def _beat(self, *, last: bool = False) -> None:
        told: dict[str, Any] = {"n": self._beats, **self._counts, "every_ms": int(self._beat_s * 1000)}
        if last:
            told["last"] = True
        if not self._told_salt:
            told["salt"] = Secret(self.salt.hex())
            self._told_salt = True
        self._beats += 1
        try:
            self._submit("net.heartbeat", told, Ack.DURABLE if last else Ack.ORDERED)
        except LedgerUnavailable as error:
            self._lose(str(error))

    async def _durably(self, kind: str, payload: Mapping[str, Any]) -> int:
        future = self._submit(kind, payload, Ack.DURABLE)
        receipt = await asyncio.wait_for(
            asyncio.shield(asyncio.wrap_future(future) if isinstance(future, Future) else future), _WAIT_S
        )
        return receipt.seq

    def _note(self, kind: str, payload: Mapping[str, Any]) -> None:
        """In order, and nobody waits for it. Raises `LedgerUnavailable` as `_submit`."""
        if isinstance(self._sink, LedgerLink) and self._sink.poisoned is None:
            self._sink.note(kind, payload)
        else:
            self._submit(kind, payload, Ack.ORDERED)

    def _submit(self, kind: str, payload: Mapping[str, Any], ack: Ack) -> Pending:
        """Raises `LedgerUnavailable` when it is known already that nothing is written."""
        reason = self._sink.poisoned
        if reason is not None:
            self._lose(reason)
            raise LedgerUnavailable(reason)
        return self._sink.submit(kind, payload, w="proxy", ack=ack)

    def _lose(self, reason: str) -> None:
        if self._lost is None:
            self._lost = reason
            if self.on_lost is not None:
                self.on_lost(reason)
