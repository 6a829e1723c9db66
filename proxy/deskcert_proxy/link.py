"""The proxy's connection to the ledger, in its own event loop: no thread has to take its turn for an answer."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from deskcert_ledger import Ack, Receipt
from deskcert_ledger.wire import IN_FLIGHT, MAX_LINE, encode_payload, message
from deskcert_schema.errors import ContractError, LedgerUnavailable

__all__ = ["LedgerLink"]

_TOGETHER_S: Final = 0.05
"""How long a record without an answer may wait for company."""
_QUIET: Final = b'{"id":0,'


class LedgerLink:
    """The same `submit` as `RunLedger`, with asyncio's futures. Use it in one event loop only."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[Receipt]] = {}
        self._behind: deque[bytes] = deque()
        self._in_flight = 0
        self._numbers = itertools.count(1)
        self._poison: str | None = None
        self._quiet: list[bytes] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def connect(cls, path: Path) -> LedgerLink:
        """Raises `LedgerUnavailable`."""
        try:
            return cls(*await asyncio.open_unix_connection(str(path), limit=MAX_LINE))
        except OSError as error:
            raise LedgerUnavailable(f"the ledger's socket does not answer: {error.strerror}") from error

    @property
    def poisoned(self) -> str | None:
        return self._poison

    def submit(
        self, kind: str, payload: Mapping[str, Any], *, w: str = "", ack: Ack = Ack.DURABLE
    ) -> asyncio.Future[Receipt]:
        del w  # the other side says who writes
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_looked_at)
        number = next(self._numbers)
        data = _line(number, kind, payload, ack)
        if self._poison is not None:
            future.set_exception(LedgerUnavailable(self._poison))
            return future
        self._waiting[number] = future
        self._flush()
        self._behind.append(data)
        self._send()
        return future

    def note(self, kind: str, payload: Mapping[str, Any]) -> None:
        """In order with all others, and without an answer: many go out together, with the next `submit` at the latest.
        One that cannot be written poisons this connection."""
        self._quiet.append(_line(0, kind, payload, Ack.ORDERED))
        if self._poison is None and self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(_TOGETHER_S, self._flush)

    def _flush(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if self._quiet:
            self._behind.append(b"".join(self._quiet))
            self._quiet.clear()
            self._send()

    def _send(self) -> None:
        while self._behind and self._in_flight < IN_FLIGHT:
            data = self._behind.popleft()
            self._in_flight += not data.startswith(_QUIET)
            self._writer.write(data)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        reason = "the ledger's process is gone"
        try:
            while line := await reader.readline():
                raw = json.loads(line)
                if "error" in raw:  # also of a record that wanted no answer
                    reason = str(raw["error"])
                    break
                future = self._waiting.pop(raw["id"])
                self._in_flight -= 1
                if not future.done():
                    future.set_result(Receipt(raw["seq"], raw["commit_us"]))
                self._send()
        except (OSError, ValueError, KeyError) as error:
            reason = f"the ledger's process is gone: {type(error).__name__}"
        finally:
            self._fall_silent(reason)

    def _fall_silent(self, reason: str) -> None:
        if self._poison is None:
            self._poison = reason
        waiting, self._waiting = list(self._waiting.values()), {}
        for future in waiting:
            if not future.done():
                future.set_exception(LedgerUnavailable(self._poison))
        self._writer.close()


def _line(number: int, kind: str, payload: Mapping[str, Any], ack: Ack) -> bytes:
    data = message({"id": number, "kind": kind, "payload": encode_payload(payload), "ack": ack.value})
    if len(data) > MAX_LINE:
        raise ContractError(f"a record of {len(data)} bytes: at most {MAX_LINE} go through the socket")
    return data


def _looked_at(future: asyncio.Future[Receipt]) -> None:
    if not future.cancelled():
        future.exception()
