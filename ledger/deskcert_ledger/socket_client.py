"""A ledger that lives in another process: the same `submit` as `RunLedger`, through its socket."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deskcert_ledger.acks import Ack, Answer, Receipt
from deskcert_ledger.wire import IN_FLIGHT, lines_of, read_answer, request
from deskcert_schema.errors import LedgerFormatError, LedgerUnavailable

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
        self._waiting: dict[int, Answer] = {}
        self._numbers = itertools.count(1)
        self._poison: str | None = None
        self._lines = lines_of(self._connection)
        self._reading = threading.Lock()
        """Whoever holds it reads answers, its own and those of others."""
        self._reader: threading.Thread | None = None
        """Begun when somebody does not wait for an answer himself."""

    @property
    def poisoned(self) -> str | None:
        return self._poison

    def submit(self, kind: str, payload: Mapping[str, Any], *, w: str = "", ack: Ack = Ack.DURABLE) -> Answer:
        """The other side says who writes; `w` is for `RunLedger`'s sake. Raises `ContractError` when it is too long."""
        del w
        answer = self._send(kind, payload, ack)
        self._have_read()
        return answer

    def append(self, kind: str, payload: Mapping[str, Any], *, w: str = "", ack: Ack = Ack.DURABLE) -> Receipt:
        """The blocking form of `submit`. A lone caller reads the answer itself, without a change of threads."""
        del w
        answer = self._send(kind, payload, ack)
        if self._reader is None and self._reading.acquire(blocking=False):
            try:
                self._read(answer)
            finally:
                self._reading.release()
        if not answer.done():
            self._have_read()
        return answer.result()

    def _send(self, kind: str, payload: Mapping[str, Any], ack: Ack) -> Answer:
        answer = Answer()
        number = next(self._numbers)
        data = request(number, kind, payload, ack.value)
        with self._lock:
            if self._poison is not None:
                answer.set_exception(LedgerUnavailable(self._poison))
                return answer
            self._waiting[number] = answer
        self._room.acquire()
        try:
            with self._sending:
                self._connection.sendall(data)
        except OSError as error:
            self._fall_silent(f"the ledger's process is gone: {error.strerror or 'broken'}")
        return answer

    def _have_read(self) -> None:
        """See that a thread reads the answers."""
        if self._reader is None:
            with self._lock:
                if self._reader is None:
                    self._reader = threading.Thread(target=self._read_all, name="deskcert-ledger-client", daemon=True)
                    self._reader.start()

    def _read_all(self) -> None:
        with self._reading:  # whoever read for himself is done by then
            self._read(None)

    def close(self) -> None:
        self._fall_silent("the connection to the ledger is closed")

    def _read(self, until: Answer | None) -> None:
        """Pass answers on, up to that of `until`, or to the end."""
        reason = "the ledger's process is gone"
        try:
            while until is None or not until.done():
                line = next(self._lines, None)
                if line is None:
                    break
                raw = read_answer(line)
                if not self._answered(raw):
                    reason = str(raw.get("error", reason))
                    break
            else:
                return
        except (OSError, LedgerFormatError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"the ledger's process is gone: {type(error).__name__}"
        self._fall_silent(reason)

    def _answered(self, raw: Mapping[str, Any]) -> bool:
        """Raises `KeyError`, `TypeError`, `ValueError` for what is no answer to anything that was asked.

        What it says is looked at before anybody is taken off the list: who is off it, and not answered, waits for ever.
        """
        receipt = None if "error" in raw else Receipt(raw["seq"], raw["commit_us"])
        if receipt is not None and (not _is_count(receipt.seq) or not _is_count(receipt.commit_us)):
            raise ValueError("a receipt without its numbers")
        with self._lock:
            answer = self._waiting.pop(raw["id"])
        self._room.release()
        if receipt is None:
            answer.set_exception(LedgerUnavailable(str(raw["error"])))
            return False
        answer.set_result(receipt)
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


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0
