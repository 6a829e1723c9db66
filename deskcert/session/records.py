"""The session's pen: writes records without blocking the event loop, and knows how long the last commit took."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from deskcert_ledger import Ack, Receipt
from deskcert_schema.vocabulary import RecordKind

__all__ = ["Ledger", "Records"]


class Ledger(Protocol):
    """The part of `RunLedger` that a session uses."""

    def submit(self, kind: str, payload: Mapping[str, Any], *, w: str = ..., ack: Ack = ...) -> Any: ...


class Records:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.prev_commit_us = 0
        """Microseconds, of the newest durable record; stands in the next intent."""

    async def write(self, kind: RecordKind, payload: Mapping[str, Any], *, durable: bool = True) -> Receipt:
        """Raises `LedgerUnavailable` when it cannot be recorded. A cancelled caller does not take the record back."""
        future = self._ledger.submit(str(kind), payload, w="guard", ack=Ack.DURABLE if durable else Ack.ORDERED)
        receipt: Receipt = await asyncio.shield(asyncio.wrap_future(future))
        if durable:
            self.prev_commit_us = receipt.commit_us
        return receipt
