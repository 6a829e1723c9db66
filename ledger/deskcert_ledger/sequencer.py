"""The one owner of file, numbers and key: a thread that commits in groups.

A record is stamped (time) and queued by the caller; the sequencer numbers it when it takes it for writing, so that
back-pressure can never look like a gap. All that waits is written by one `write` and made durable by one `fdatasync`.
Two acknowledgements: `durable` waits for that, and covers all before it; `ordered` waits for the number only, and its
record rides the next commit (which comes at the latest `_IDLE_SECONDS` later).

A lone synchronous caller does not pay for a change of threads: `run_now` lets it do the sequencer's turn itself.

The first error of a write or a sync poisons the ledger. Linux marks pages clean after a failed fsync, so that a second
try may report a success that is none: there is no second try, and whatever is not acknowledged by then never will be.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum

from deskcert_ledger.b64 import b64encode
from deskcert_ledger.checkpoint import checkpoint_text
from deskcert_ledger.clock import Clock, timestamp
from deskcert_ledger.keys import RunKey
from deskcert_ledger.merkle import Tree, leaf_hash
from deskcert_ledger.payload import Prepared, make_line
from deskcert_ledger.store import CHECKPOINTS, DISCLOSURES, HASHES, RunFiles
from deskcert_schema.errors import LedgerUnavailable

__all__ = ["Ack", "Receipt", "Sequencer"]

_QUEUE_RECORDS = 4096
"""Callers wait when so many records are queued."""
_PENDING_BYTES = 4 << 20
"""Ordered records are committed when so much of them waits."""
_IDLE_SECONDS = 0.25
_CHECKPOINT_COMMITS = 1000
_CHECKPOINT_US = 1_000_000


class Ack(StrEnum):
    DURABLE = "durable"
    """On the disk, and everything before it."""
    ORDERED = "ordered"
    """Numbered; on the disk with the next commit."""


@dataclass(frozen=True, slots=True)
class Receipt:
    seq: int
    commit_us: int
    """Duration of write and sync, whole microseconds; 0 for an ordered acknowledgement."""


@dataclass(slots=True)
class _Item:
    t: str
    m: int
    w: str
    kind: str
    prepared: Prepared
    ack: Ack
    future: Future[Receipt] = field(default_factory=Future)


class Sequencer:
    """Owns one open run folder. Thread safe; `close` ends it."""

    def __init__(self, files: RunFiles, tree: Tree, key: RunKey, origin: str, clock: Clock) -> None:
        self._files, self._tree, self._key, self._origin, self._clock = files, tree, key, origin, clock
        self._lock = threading.Lock()
        self._not_empty = threading.Condition(self._lock)
        self._not_full = threading.Condition(self._lock)
        self._queue: deque[_Item] = deque()
        self._closing = False
        self._poison: str | None = None
        self._turn_lock = threading.Lock()
        """Whoever holds it is the sequencer; what follows belongs to it."""
        self._pending: list[bytes] = []
        self._waiting: list[tuple[Future[Receipt], int]] = []
        self._pending_bytes = 0
        self._next = tree.size
        self._hashes: list[bytes] = []
        self._last_note = b""
        self._head = (tree.size, b64encode(tree.root()))
        self._commits = 0
        self._refreshed_us: int | None = None
        self._thread: threading.Thread | None = None
        """Begun when it is first needed: a lone synchronous caller never needs it."""

    @property
    def head(self) -> tuple[int, str]:
        return self._head

    @property
    def last_note(self) -> bytes:
        return self._last_note

    @property
    def poisoned(self) -> str | None:
        return self._poison

    def submit(self, w: str, kind: str, prepared: Prepared, ack: Ack, *, wake: bool = True) -> Future[Receipt]:
        """Queue a record; waits while the queue is full. A poisoned ledger's future has failed already."""
        with self._lock:
            while len(self._queue) >= _QUEUE_RECORDS and self._poison is None and not self._closing:
                self._wake()
                self._not_full.wait()
            item = _Item(timestamp(self._clock.now()), self._clock.monotonic_us(), w, kind, prepared, ack)
            item.future.set_running_or_notify_cancel()  # a record cannot be taken back
            reason = self._poison or ("the ledger is sealed" if self._closing else None)
            if reason is not None:
                item.future.set_exception(LedgerUnavailable(reason))
                return item.future
            self._queue.append(item)
            if wake:
                self._wake()
        return item.future

    def _wake(self) -> None:
        """See that the thread looks at the queue. The caller holds the lock."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="deskcert-ledger", daemon=True)
            self._thread.start()
        self._not_empty.notify()

    def run_now(self) -> None:
        """Do the sequencer's turn in this thread if nobody else is at it; else see that the thread does it."""
        if self._turn_lock.acquire(blocking=False):
            try:
                self._turn(flush=False)
                idle = not self._pending
            finally:
                self._turn_lock.release()
            if idle and not self._queue:
                return
        with self._lock:
            self._wake()

    def close(self) -> None:
        """Commit what waits and end the thread. Nothing can be submitted afterwards."""
        with self._lock:
            self._closing = True
            self._not_empty.notify_all()
            self._not_full.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()
            return
        with self._turn_lock:
            self._turn(flush=True)

    def _run(self) -> None:
        while True:
            with self._lock:
                flush = False
                while not self._queue and not self._closing and not flush:
                    timeout = _IDLE_SECONDS if self._pending else None
                    flush = not self._not_empty.wait(timeout) and not self._queue
                closing = self._closing
            with self._turn_lock:
                self._turn(flush=flush or closing)
            if closing:
                with self._lock:
                    if not self._queue:
                        return

    def _turn(self, *, flush: bool) -> None:
        with self._lock:
            items = list(self._queue)
            self._queue.clear()
            self._not_full.notify_all()
            reason = self._poison
        if reason is not None:
            _fail([item.future for item in items], reason)
            return
        try:
            durable = self._take(items)
            if self._pending and (durable or flush or self._pending_bytes >= _PENDING_BYTES):
                self._commit()
        except BaseException as error:
            self._fall_silent(error, items)

    def _take(self, items: list[_Item]) -> bool:
        """Number the records and prepare their bytes; sync the blobs they name. Is one of them durable?"""
        self._files.append(DISCLOSURES, b"".join(item.prepared.sidecar for item in items))
        blobs = [blob for item in items for blob in item.prepared.blobs]
        if blobs:
            self._files.write_blobs(blobs)
        durable = False
        for item in items:
            seq = self._next
            line = make_line(seq, t=item.t, m=item.m, w=item.w, kind=item.kind, body=item.prepared.body)
            self._next += 1
            self._pending.append(line)
            self._pending_bytes += len(line)
            if item.ack is Ack.DURABLE:
                durable = True
                self._waiting.append((item.future, seq))
            else:
                item.future.set_result(Receipt(seq, 0))
        return durable

    def _commit(self) -> None:
        began = self._clock.monotonic_us()
        self._files.append_lines(b"\n".join(self._pending) + b"\n")
        took = self._clock.monotonic_us() - began
        for line in self._pending:
            self._hashes += self._tree.append(leaf_hash(line))
        root = self._tree.root()
        text = checkpoint_text(self._origin, self._tree.size, root)
        self._last_note = self._key.sign_note(text).encode()
        self._files.append(CHECKPOINTS, self._last_note)
        self._head = (self._tree.size, b64encode(root))
        waiting, self._waiting = self._waiting, []
        self._pending.clear()
        self._pending_bytes = 0
        for future, seq in waiting:
            future.set_result(Receipt(seq, took))
        self._after_commit()

    def _after_commit(self) -> None:
        hashes, self._hashes = b"".join(self._hashes), []
        self._files.append(HASHES, hashes)
        self._commits += 1
        now = self._clock.monotonic_us()
        if (
            self._refreshed_us is None
            or now - self._refreshed_us >= _CHECKPOINT_US
            or self._commits >= _CHECKPOINT_COMMITS
        ):
            # First: else a crash could leave a seal whose own note is torn here, which reads like tampering.
            self._files.sync(CHECKPOINTS)
            self._files.replace_checkpoint(self._last_note)
            self._commits, self._refreshed_us = 0, now

    def _fall_silent(self, error: BaseException, items: list[_Item]) -> None:
        """Poison: fail everything that is not acknowledged, and everything to come."""
        reason = f"The ledger cannot be written ({error}). Nothing more is dispatched; run `deskcert ledger recover`."
        with self._lock:
            self._poison = self._poison or reason
            items = items + list(self._queue)
            self._queue.clear()
            self._not_full.notify_all()
        _fail([future for future, _ in self._waiting] + [item.future for item in items], reason)
        self._waiting.clear()
        self._pending.clear()


def _fail(futures: list[Future[Receipt]], reason: str) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(LedgerUnavailable(reason))
