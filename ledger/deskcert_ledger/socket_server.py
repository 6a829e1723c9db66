"""Lets another process of the same user write to a ledger: a Unix socket in front of the sequencer.

The file, the numbers and the key stay where they are. A record is numbered when it is persisted, so that what two
writers send is in one order; the answer `durable` comes after the `fdatasync` that covers it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol, Self

from deskcert_ledger.sequencer import Ack, Receipt
from deskcert_ledger.wire import IN_FLIGHT, decode_payload, lines_of, message, peer_uid
from deskcert_schema.errors import ContractError, LedgerFormatError, LedgerUnavailable

__all__ = ["Complete", "LedgerServer", "Writable"]

type Complete = Callable[[str, dict[str, Any]], "Mapping[str, Any] | Future[Mapping[str, Any]]"]
"""(kind, payload) → the payload to write: what this side knows about it is added, at once or later."""


class Writable(Protocol):
    def submit(self, kind: str, payload: Mapping[str, Any], *, w: str = ..., ack: Ack = ...) -> Future[Receipt]: ...


class LedgerServer:
    """Serves one ledger at `path` until `close`. `kinds`: what the other side may write, and nothing else."""

    def __init__(self, ledger: Writable, *, w: str, kinds: frozenset[str], complete: Complete | None = None) -> None:
        self._ledger, self._w, self._kinds, self._complete = ledger, w, kinds, complete
        self._folder = Path(tempfile.mkdtemp(prefix="deskcert-"))  # mode 0700
        self.path = self._folder / "ledger"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self._listener.listen(8)
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._accept, name="deskcert-ledger-socket", daemon=True).start()

    def close(self) -> None:
        """Whoever still writes gets end of file, and must take it as a refusal."""
        with self._lock:
            self._closed = True
            connections = list(self._connections)
        for connection in (self._listener, *connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._closed or peer_uid(connection) not in (None, os.getuid()):
                    connection.close()
                    continue
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        answers = _Answers(connection)
        try:
            for line in lines_of(connection):
                answers.room.acquire()
                self._take(line, answers)
        except (OSError, LedgerFormatError, ContractError, ValueError):
            pass  # what is not ours is not answered: the connection ends
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    def _take(self, line: bytes, answers: _Answers) -> None:
        raw = json.loads(line)
        if not isinstance(raw, dict) or not isinstance(raw.get("id"), int) or raw.get("kind") not in self._kinds:
            raise LedgerFormatError("not a record of this writer's")
        number, kind, ack = raw["id"], str(raw["kind"]), Ack(raw.get("ack", "durable"))
        payload = decode_payload(raw.get("payload"))
        if not isinstance(payload, dict):
            raise LedgerFormatError("a record without a payload")
        completed = payload if self._complete is None else self._complete(kind, payload)
        if isinstance(completed, Future):
            completed.add_done_callback(lambda done: self._submit(number, kind, done.result(), ack, answers))
        else:
            self._submit(number, kind, completed, ack, answers)

    def _submit(self, number: int, kind: str, payload: Mapping[str, Any], ack: Ack, answers: _Answers) -> None:
        try:
            future = self._ledger.submit(kind, payload, w=self._w, ack=ack)
        except ContractError as error:
            answers.refuse(number, str(error))
            return
        future.add_done_callback(lambda done: answers.give(number, done))


class _Answers:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self.room = threading.BoundedSemaphore(IN_FLIGHT)

    def give(self, number: int, done: Future[Receipt]) -> None:
        """Called by the sequencer's thread, which must never wait for a reader. Number 0 hears of failures only."""
        error = done.exception()
        if error is not None:
            self.refuse(number, str(error) if isinstance(error, LedgerUnavailable) else type(error).__name__)
            return
        if number == 0:
            self.room.release()
            return
        receipt = done.result()
        self._send({"id": number, "seq": receipt.seq, "commit_us": receipt.commit_us})

    def refuse(self, number: int, why: str) -> None:
        self._send({"id": number, "error": why})

    def _send(self, answer: Mapping[str, Any]) -> None:
        data = message(answer)
        self.room.release()
        with self._lock:
            try:
                sent = self._connection.send(data, socket.MSG_DONTWAIT)
            except OSError:
                sent = 0
            if sent < len(data):  # a reader that does not read loses the connection
                with contextlib.suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)
