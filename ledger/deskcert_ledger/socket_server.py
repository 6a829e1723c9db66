"""Lets another process of the same user write to a ledger: a Unix socket in front of the sequencer.

The file, the numbers and the key stay where they are. A record is numbered when it is persisted, so that what two
writers send is in one order; the answer `durable` comes after the `fdatasync` that covers it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, Self

from deskcert_ledger import open_redaction
from deskcert_ledger.acks import Ack, Receipt
from deskcert_ledger.note import Verifier
from deskcert_ledger.run import RunLedger
from deskcert_ledger.wire import IN_FLIGHT, Request, answer, lines_of, message, peer_uid, read_request
from deskcert_schema.errors import ContractError, LedgerError, LedgerFormatError, LedgerUnavailable

__all__ = ["MAX_CONNECTIONS", "Complete", "LedgerServer", "Writable"]

MAX_CONNECTIONS: Final = 64
"""Each has a thread; who says nothing, or a byte a minute, keeps one, and no more than that."""
_PAUSE_SECONDS: Final = 0.05

type Complete = Callable[[str, dict[str, Any]], "Mapping[str, Any] | Future[Mapping[str, Any]]"]
"""(kind, payload) → the payload to write: what this side knows about it is added, at once or later."""


class Writable(Protocol):
    def submit(self, kind: str, payload: Mapping[str, Any], *, w: str = ..., ack: Ack = ...) -> Future[Receipt]: ...


class LedgerServer:
    """Serves one ledger at `path` until `close`. `kinds`: what the other side may write, and nothing else."""

    def __init__(
        self,
        ledger: Writable,
        *,
        w: str,
        kinds: frozenset[str],
        complete: Complete | None = None,
        path: Path | None = None,
        redactor: Verifier | None = None,
    ) -> None:
        """`path`: where the socket is made, in a folder that others cannot enter; default: a fresh one.
        `redactor`: the project's key, whose signed requests to redact are carried out; without it none are.

        Raises `LedgerUnavailable` when there can be no socket at `path`.
        """
        self._ledger, self._w, self._kinds, self._complete = ledger, w, kinds, complete
        self._redactor = redactor
        self._own = ledger if isinstance(ledger, RunLedger) else None
        """Whose turns the threads here can do themselves."""
        self._submit_here = ledger.submit if self._own is None else partial(self._own.submit, wake=False)
        self._folder = Path(tempfile.mkdtemp(prefix="deskcert-")) if path is None else None  # mode 0700
        self.path = self._folder / "ledger" if self._folder is not None else Path(path or "")
        self._listener = _listen(self.path)
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
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(_PAUSE_SECONDS)  # no descriptor is left, or the caller is gone: the next one is served
                continue
            with self._lock:
                full = len(self._connections) >= MAX_CONNECTIONS
                if self._closed or full or peer_uid(connection) not in (None, os.getuid()):
                    connection.close()
                    continue
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        answers = _Answers(connection)
        lines = lines_of(connection)
        try:
            for line in lines:
                request = read_request(line)
                if request.redact is not None:
                    self._redact(request, answers)
                    continue
                if answers.idle and not lines.ready() and self._complete is None and self._own is not None:
                    self._write(self._own, request, answers)
                    continue
                answers.enter()
                self._take(request, answers)
                if self._own is not None and not lines.ready():
                    self._own.run_now()  # in this thread, for all that came together
        except (OSError, LedgerFormatError, ContractError, ValueError, RecursionError):
            pass  # what is not ours is not answered: the connection ends
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    def _write(self, own: RunLedger, request: Request, answers: _Answers) -> None:
        """A writer with one record in flight: commit it in this thread, without a future."""
        self._admit(request)
        try:
            receipt = own.append(request.kind, request.payload, w=self._w, ack=Ack(request.ack))
        except (ContractError, LedgerUnavailable) as error:
            answers.send(message({"id": request.number, "error": str(error)}))
            return
        if request.number:
            answers.send(answer(request.number, receipt.seq, receipt.commit_us))

    def _redact(self, request: Request, answers: _Answers) -> None:
        """Raises `LedgerFormatError` where nobody may ask for that."""
        if self._own is None or self._redactor is None:
            raise LedgerFormatError("nothing is redacted through this socket")
        try:
            asked = open_redaction.read_request(str(request.redact), self._redactor, self._own.origin)
            done = self._own.redact(asked)
        except (LedgerError, ContractError) as error:
            answers.send(message({"id": request.number, "error": str(error)}))
            return
        answers.send(message({"id": request.number, "openings": done.openings, "blobs": done.blobs}))

    def _admit(self, request: Request) -> None:
        if request.kind not in self._kinds:
            raise LedgerFormatError("not a record of this writer's")

    def _take(self, request: Request, answers: _Answers) -> None:
        self._admit(request)
        completed = request.payload if self._complete is None else self._complete(request.kind, request.payload)
        if isinstance(completed, Future):
            completed.add_done_callback(lambda done: self._completed(request, done, answers))
        else:
            self._submit(self._submit_here, request, completed, answers)

    def _completed(self, request: Request, done: Future[Mapping[str, Any]], answers: _Answers) -> None:
        """The payload came later, or did not come: then the record is refused, so that nobody waits for it."""
        if done.cancelled() or (error := done.exception()) is not None:
            why = "it was given up" if done.cancelled() else type(error).__name__
            answers.refuse(request.number, f"the record could not be completed: {why}")
            return
        self._submit(self._ledger.submit, request, done.result(), answers)

    def _submit(
        self, submit: Callable[..., Future[Receipt]], request: Request, payload: Mapping[str, Any], answers: _Answers
    ) -> None:
        try:
            future = submit(request.kind, payload, w=self._w, ack=Ack(request.ack))
        except ContractError as error:
            answers.refuse(request.number, str(error))
            return
        future.add_done_callback(lambda done: answers.give(request.number, done))


def _listen(path: Path) -> socket.socket:
    """A socket that only its owner can connect to; the peer's user is looked at again with each connection."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise LedgerUnavailable(f"There can be no socket at {path}: {error.strerror or error}.") from error
    finally:
        os.umask(before)
    return listener


class _Answers:
    """What goes back on one connection. At most `IN_FLIGHT` records are taken up and not answered."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._room = threading.Condition(threading.Lock())
        self._open = 0

    @property
    def idle(self) -> bool:
        """Is everything answered that was taken up?"""
        return self._open == 0

    def enter(self) -> None:
        with self._room:
            while self._open >= IN_FLIGHT:
                self._room.wait()
            self._open += 1

    def give(self, number: int, done: Future[Receipt]) -> None:
        """Called by the sequencer's thread, which must never wait for a reader. Number 0 hears of failures only."""
        error = done.exception()
        if error is not None:
            self.refuse(number, str(error) if isinstance(error, LedgerUnavailable) else type(error).__name__)
            return
        self._leave()
        if number:
            receipt = done.result()
            self.send(answer(number, receipt.seq, receipt.commit_us))

    def refuse(self, number: int, why: str) -> None:
        self._leave()
        self.send(message({"id": number, "error": why}))

    def _leave(self) -> None:
        with self._room:
            self._open -= 1
            self._room.notify()

    def send(self, data: bytes) -> None:
        with self._lock:
            try:
                sent = self._connection.send(data, socket.MSG_DONTWAIT)
            except OSError:
                sent = 0
            if sent < len(data):  # a reader that does not read loses the connection
                with contextlib.suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)
