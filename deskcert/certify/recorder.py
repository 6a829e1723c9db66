"""The asynchronous side of a run's ledger: the sequencer's futures, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deskcert_schema.vocabulary import RecordKind

if TYPE_CHECKING:
    from deskcert_ledger import Receipt, RunLedger

__all__ = ["Recorder"]


class Recorder:
    """Raises `LedgerUnavailable` from every method once the ledger cannot be written."""

    def __init__(self, ledger: RunLedger) -> None:
        self.ledger = ledger

    async def write(self, kind: RecordKind, payload: Mapping[str, Any]) -> Receipt:
        """Durable when this returns."""
        return await asyncio.wrap_future(self.ledger.submit(kind.value, payload))

    async def agent_event(self, event: str, detail: Mapping[str, Any]) -> None:
        await self.write(RecordKind.AGENT_EVENT, {"event": event, **detail})

    async def lost(self, component: str, detail: str) -> None:
        await self.write(RecordKind.COMPONENT_LOST, {"component": component, "detail": detail})
