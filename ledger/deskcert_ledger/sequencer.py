"""The one owner of file and numbers: whoever takes its turn commits what waits, in one group.

A record is stamped (time) and queued by the caller; it is numbered when it is taken for writing, so that back-pressure
can never look like a gap. All that waits is written by one `write` and made durable by one `fdatasync`. Two
acknowledgements: `durable` waits for that, and covers all before it; `ordered` waits for the number only, and its
record rides the next commit (which comes at the latest `_IDLE_SECONDS` later). The notes follow (`notary`).

A lone synchronous caller does not pay for a change of threads: `write` does the sequencer's turn itself when nobody
else is at it.

The first error of a write or a sync poisons the ledger. Linux marks pages clean after a failed fsync, so that a second
try may report a success that is none: there is no second try, and whatever is not acknowledged by then never will be.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from deskcert_ledger.acks import Ack, Answer, Item, Receipt, fail
from deskcert_ledger.b64 import b64encode
from deskcert_ledger.blob import BlobFile
from deskcert_ledger.clock import Clock, stamper
from deskcert_ledger.notary import Notary
from deskcert_ledger.payload import Prepared, make_line
from deskcert_ledger.store import DISCLOSURES, RunFiles
from deskcert_schema.errors import LedgerUnavailable

__all__ = ["Ack", "Receipt", "Sequencer"]

_QUEUE_RECORDS = 4096
"""Callers wait when so many records are queued."""
_PENDING_BYTES = 4 << 20
"""Ordered records are committed when so much of them waits."""
_IDLE_SECONDS = 0.25


class Sequencer:
    """Owns one open run folder. Thread safe; `close` ends it."""

    def __init__(self, files: RunFiles, notary: Notary, clock: Clock, size: int) -> None:
        """`size`: records that are in the ledger already."""
        self._files, self._notary = files, notary
        self._stamp, self._now = stamper(clock), clock.monotonic_us
        notary.on_error = self._poisoned_by
        self._lock = threading.Lock()
        self._not_empty = threading.Condition(self._lock)
        self._not_full = threading.Condition(self._lock)
        self._queue: deque[Item] = deque()
        self._closing = False
        self._poison: str | None = None
        self._turn_lock = threading.Lock()
        """Whoever holds it is the sequencer; what follows belongs to it."""
        self._pending: list[bytes] = []
        self._waiting: list[Item] = []
        self._pending_bytes = 0
        self._next = size
        self._thread: threading.Thread | None = None
        """Begun when it is first needed: a lone synchronous caller never needs it."""

    @property
    def head(self) -> tuple[int, str]:
        size, root = self._notary.head()
        return size, b64encode(root)

    @property
    def last_note(self) -> bytes:
        return self._notary.last_note

    @property
    def poisoned(self) -> str | None:
        return self._poison

    def submit(self, w: str, kind: str, prepared: Prepared, ack: Ack, *, wake: bool = True) -> Answer:
        """Queue a record; waits while the queue is full. A poisoned ledger's future has failed already."""
        answer = Answer()
        with self._lock:
            while len(self._queue) >= _QUEUE_RECORDS and self._poison is None and not self._closing:
                self._wake()
                self._not_full.wait()
            reason = self._refusal()
            if reason is not None:
                answer.set_exception(LedgerUnavailable(reason))
                return answer
            self._queue.append(self._stamped(Item(w, kind, prepared, ack, answer)))
            if wake:
                self._wake()
        return answer

    def write(self, w: str, kind: str, prepared: Prepared, ack: Ack) -> Receipt:
        """Queue a record and wait for it: the sequencer's turn is done here if nobody else is at it.

        Raises `LedgerUnavailable`.
        """
        if not self._turn_lock.acquire(blocking=False):
            return self.submit(w, kind, prepared, ack).result()
        try:
            with self._lock:
                reason = self._refusal()
                if reason is not None:
                    raise LedgerUnavailable(reason)
                item = self._stamped(Item(w, kind, prepared, ack, None))
                items = self._queued()
                items.append(item)
            receipt = self._turn(items, item)
            left = bool(self._pending)
        finally:
            self._turn_lock.release()
        self._see_to(left)
        return receipt

    def run_now(self) -> None:
        """Do the sequencer's turn in this thread if nobody else is at it; else see that the thread does it."""
        left = True
        if self._turn_lock.acquire(blocking=False):
            try:
                self._next_turn(flush=False)
                left = bool(self._pending)
            finally:
                self._turn_lock.release()
        self._see_to(left)

    def settle(self) -> None:
        """Commit all that waits, ordered records too. Raises `LedgerUnavailable`."""
        with self._turn_lock:
            self._next_turn(flush=True)
        if self._poison is not None:
            raise LedgerUnavailable(self._poison)

    def exclusively(self, work: Callable[[], None]) -> None:
        """Do `work` on the files while nobody writes. Raises `LedgerUnavailable`: an error poisons, as any other."""
        with self._turn_lock:
            if self._poison is None:
                try:
                    work()
                except BaseException as error:
                    self._poisoned_by(error)
        if self._poison is not None:
            raise LedgerUnavailable(self._poison)

    def follow(self) -> None:
        """Have signed what is durable. Raises `LedgerUnavailable`."""
        try:
            self._notary.follow()
        except BaseException as error:
            self._poisoned_by(error)
        if self._poison is not None:
            raise LedgerUnavailable(self._poison)

    def close(self) -> None:
        """Commit what waits, have it signed, end the threads. Nothing can be submitted afterwards."""
        with self._lock:
            self._closing = True
            self._not_empty.notify_all()
            self._not_full.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()
        with self._turn_lock:
            self._next_turn(flush=True)
        try:
            self._notary.close()
        except BaseException as error:
            self._poisoned_by(error)

    def _refusal(self) -> str | None:
        return self._poison or ("the ledger is sealed" if self._closing else None)

    def _stamped(self, item: Item) -> Item:
        item.t, item.m = self._stamp(), self._now()
        return item

    def _queued(self) -> list[Item]:
        """Take all that is queued. The caller holds the lock."""
        if not self._queue:
            return []
        items = list(self._queue)
        self._queue.clear()
        self._not_full.notify_all()
        return items

    def _see_to(self, left: bool) -> None:
        """See that the thread does what a turn left behind, or what was queued meanwhile."""
        if left or self._queue:
            with self._lock:
                self._wake()

    def _wake(self) -> None:
        """See that the thread looks at the queue. The caller holds the lock."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="deskcert-ledger", daemon=True)
            self._thread.start()
        self._not_empty.notify()

    def _run(self) -> None:
        while True:
            with self._lock:
                flush = False
                while not self._queue and not self._closing and not flush:
                    timeout = _IDLE_SECONDS if self._pending else None
                    flush = not self._not_empty.wait(timeout) and not self._queue
                if self._closing:
                    return  # `close` does the last turn
            with self._turn_lock:
                self._next_turn(flush=flush)

    def _next_turn(self, *, flush: bool) -> None:
        with self._lock:
            items = self._queued()
            reason = self._poison
        if reason is not None:
            fail(items, reason)
            return
        try:
            self._work(items, flush=flush)
        except BaseException as error:
            self._poisoned_by(error)
            self._give_up(items)

    def _turn(self, items: list[Item], own: Item) -> Receipt:
        """A turn whose last item is the caller's own. Raises `LedgerUnavailable`."""
        try:
            took = self._work(items, flush=False)
        except BaseException as error:
            self._poisoned_by(error)
            self._give_up(items)
            raise LedgerUnavailable(self._poison) from error
        return Receipt(own.seq, took if own.ack is Ack.DURABLE else 0)

    def _work(self, items: list[Item], *, flush: bool) -> int:
        """Number the records, commit if somebody waits for it. Returns what that took, microseconds."""
        durable = self._take(items)
        if self._pending and (durable or flush or self._pending_bytes >= _PENDING_BYTES):
            return self._commit()
        return 0

    def _take(self, items: list[Item]) -> bool:
        """Number the records and prepare their bytes; sync the blobs they name. Is one of them durable?"""
        sidecar: list[bytes] = []
        blobs: list[BlobFile] = []
        for item in items:
            if item.prepared.sidecar:
                sidecar.append(item.prepared.sidecar)
            blobs += item.prepared.blobs
        if sidecar:
            self._files.append(DISCLOSURES, b"".join(sidecar))
        if blobs:
            self._files.write_blobs(blobs)
        durable, pending = False, self._pending
        for item in items:
            item.seq = self._next
            line = make_line(item.seq, t=item.t, m=item.m, w=item.w, kind=item.kind, body=item.prepared.body)
            self._next += 1
            pending.append(line)
            self._pending_bytes += len(line)
            if item.ack is Ack.DURABLE:
                durable = True
                if item.answer is not None:
                    self._waiting.append(item)
            elif item.answer is not None:
                item.answer.set_result(Receipt(item.seq, 0))
        return durable

    def _commit(self) -> int:
        lines, self._pending = self._pending, []
        size, self._pending_bytes = self._pending_bytes, 0
        began = self._now()
        self._files.append_lines(b"\n".join(lines) + b"\n")
        now = self._now()
        took = now - began
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for item in waiting:
                assert item.answer is not None
                item.answer.set_result(Receipt(item.seq, took))
        self._notary.add(lines, size, now)
        return took

    def _poisoned_by(self, error: BaseException) -> None:
        """Poison. Nothing is written any more when this returns, and nothing is acknowledged."""
        reason = f"The ledger cannot be written ({error}). Nothing more is dispatched; run `deskcert ledger recover`."
        with self._lock:
            self._poison = self._poison or reason
            queued = self._queued()
        self._notary.stop()
        fail(queued, self._poison)

    def _give_up(self, items: list[Item]) -> None:
        """Fail what the turn that failed had in hand."""
        assert self._poison is not None
        fail(self._waiting + items, self._poison)
        self._waiting.clear()
        self._pending.clear()
