"""A ledger that lives in another process: the same `submit` as `RunLedger`, through its socket."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from deskcert_ledger.sequencer import Ack, Receipt
from deskcert_ledger.wire import IN_FLIGHT, MAX_LINE, encode_payload, lines_of, message
from deskcert_schema.errors import ContractError, LedgerFormatError, LedgerUnavailable

__all__ = ["LedgerClient"]


class LedgerClient:
    """Thread safe. Once the other side is gone, or refused, every record fails with `LedgerUnavailable`."""

    def __init__(self, path: Path) -> None:
        """Raises `LedgerUnavailable`."""
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._connection.connect(str(path))
        except OSError as error:
            self._connection.close()
            raise LedgerUnavailable(f"the ledger's socket does not answer: {error.strerror}") from error
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        """Apart from the other, so that answers are read while a sender waits for room."""
        self._room = threading.Semaphore(IN_FLIGHT)
        self._waiting: dict[int, Future[Receipt]] = {}
        self._numbers = itertools.count(1)
        self._poison: str | None = None
        threading.Thread(target=self._read, name="deskcert-ledger-client", daemon=True).start()

    @property
    def poisoned(self) -> str | None:
        return self._poison

    def submit(self, kind: str, payload: Mapping[str, Any], *, w: str = "", ack: Ack = Ack.DURABLE) -> Future[Receipt]:
        """The other side says who writes; `w` is for `RunLedger`'s sake. Raises `ContractError` when it is too long."""
        del w
        future: Future[Receipt] = Future()
        future.set_running_or_notify_cancel()
        number = next(self._numbers)
        data = message({"id": number, "kind": kind, "payload": encode_payload(payload), "ack": ack.value})
        if len(data) > MAX_LINE:
            raise ContractError(f"a record of {len(data)} bytes: at most {MAX_LINE} go through the socket")
        with self._lock:
            if self._poison is not None:
                future.set_exception(LedgerUnavailable(self._poison))
                return future
            self._waiting[number] = future
        self._room.acquire()
        try:
            with self._sending:
                self._connection.sendall(data)
        except OSError as error:
            self._fall_silent(f"the ledger's process is gone: {error.strerror or 'broken'}")
        return future

    def append(self, kind: str, payload: Mapping[str, Any], *, w: str = "", ack: Ack = Ack.DURABLE) -> Receipt:
        return self.submit(kind, payload, w=w, ack=ack).result()

    def close(self) -> None:
        self._fall_silent("the connection to the ledger is closed")

    def _read(self) -> None:
        reason = "the ledger's process is gone"
        try:
            for line in lines_of(self._connection):
                raw = json.loads(line)
                if not self._answered(raw):
                    reason = str(raw.get("error", reason))
                    break
        except (OSError, LedgerFormatError, ValueError, KeyError, AttributeError) as error:
            reason = f"the ledger's process is gone: {type(error).__name__}"
        self._fall_silent(reason)

    def _answered(self, raw: Mapping[str, Any]) -> bool:
        with self._lock:
            future = self._waiting.pop(raw["id"])
        self._room.release()
        if "error" in raw:
            future.set_exception(LedgerUnavailable(str(raw["error"])))
            return False
        future.set_result(Receipt(raw["seq"], raw["commit_us"]))
        return True

    def _fall_silent(self, reason: str) -> None:
        with self._lock:
            if self._poison is None:
                self._poison = reason
            waiting, self._waiting = list(self._waiting.values()), {}
        for future in waiting:
            self._room.release()
            future.set_exception(LedgerUnavailable(self._poison))
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
