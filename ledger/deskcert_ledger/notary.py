"""What follows a commit and no writer waits for: hash the lines, sign the tree head, write note and cells.

A record is durable when its line is; the note that vouches for it comes right after, in a thread of its own, and one
note covers all that was committed meanwhile. What a crash leaves in between are durable lines without a note: recovery
keeps them and reports them as unsigned until then, and `verify` says `prefix`.

Two things are promised: a note is written only when its lines are durable, and its bytes are durable before
`checkpoint` is replaced.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from deskcert_ledger.checkpoint import checkpoint_text
from deskcert_ledger.keys import RunKey
from deskcert_ledger.merkle import HASH_BYTES, Tree, consistency_proof, leaf_hash, stored_hash_index
from deskcert_ledger.store import CHECKPOINTS, HASHES, RunFiles
from deskcert_ledger.witness import add_checkpoint
from deskcert_schema.errors import LedgerFormatError, LedgerUnavailable

__all__ = ["Following", "Notary"]

_BEHIND_BYTES = 2 << 20
"""So much may wait for its note; then the writer does the work himself."""
_PAUSE_SECONDS = 0.001
"""Between two notes: signing at the same time as the next record is made would cost the writer more than it gives."""
_CHECKPOINT_NOTES = 1000
_CHECKPOINT_US = 1_000_000


class Following(Enum):
    """When a commit is followed by its note."""

    THREAD = auto()
    AT_ONCE = auto()
    """Before the writer is answered: for recovery, whose records are few."""
    BY_HAND = auto()
    """When `follow` is called, and at the end: for those who simulate crashes."""


class Notary:
    """Owns the tree and what is written beside the ledger. `add` is the committing thread's; the rest is for all."""

    def __init__(self, files: RunFiles, tree: Tree, key: RunKey, following: Following) -> None:
        self._files, self._tree, self._key = files, tree, key
        self._following = following
        self._behind: deque[tuple[list[bytes], int]] = deque()
        """Committed lines without a note, and the bytes they bring."""
        self._added = self._done = 0
        """Bytes, each written by one side only."""
        self._now = 0
        self._lock = threading.RLock()
        """Whoever holds it follows; what comes next belongs to it."""
        self._cells: list[bytes] = []
        self._last_note = b""
        self._signed = tree.size
        self._notes = 0
        self._refreshed_us: int | None = None
        self._stopped = False
        self._wake = threading.Condition(threading.Lock())
        self._asleep = self._closing = False
        self._thread: threading.Thread | None = None
        self.witness: Callable[[str], str] | None = None
        """Asked for a cosignature on what becomes `checkpoint`; see `witness.WitnessProcess.cosign`."""
        self._witnessed = 0
        self.on_error: Callable[[BaseException], None] = _ignore
        """Told in the notary's thread when something cannot be written."""

    @property
    def last_note(self) -> bytes:
        return self._last_note

    def head(self) -> tuple[int, bytes]:
        """Size and root of what is durable, signed yet or not."""
        with self._lock:
            self._hash()
            return self._tree.size, self._tree.root()

    def add(self, lines: list[bytes], size: int, now_us: int) -> None:
        """These lines, of `size` bytes, are durable now. Raises `OSError` if they are followed up here."""
        self._behind.append((lines, size))
        self._added += size
        self._now = now_us
        if self._following is Following.THREAD:
            if self._added - self._done > _BEHIND_BYTES:
                self.follow()
            elif self._thread is None:
                self._thread = threading.Thread(target=self._run, name="deskcert-notary", daemon=True)
                self._thread.start()
            elif self._asleep:
                with self._wake:
                    self._wake.notify()
        elif self._following is Following.AT_ONCE:
            self.follow()

    def follow(self) -> None:
        """Sign what is durable, if there is anything new. Raises `OSError`."""
        with self._lock:
            if self._stopped:
                return
            self._hash()
            if self._tree.size == self._signed:
                return
            text = checkpoint_text(self._key.verifier.name, self._tree.size, self._tree.root())
            note = self._key.sign_note(text).encode()
            self._files.append(CHECKPOINTS, note)
            self._last_note, self._signed = note, self._tree.size
            cells, self._cells = self._cells, []
            self._files.append(HASHES, b"".join(cells))
            self._refresh()

    def cosigned(self) -> bytes:
        """The last note, with the witness's line if there is a witness and it agrees. One that does not is not asked
        again: its line is missing from then on, and verification names it."""
        with self._lock:
            if self.witness is None:
                return self._last_note
            try:
                path = consistency_proof(self._witnessed, self._signed, self._node) if self._witnessed else []
                line = self.witness(add_checkpoint(self._witnessed, path, self._last_note))
            except (LedgerUnavailable, LedgerFormatError, OSError):
                self.witness = None
                return self._last_note
            self._witnessed = self._signed
            return self._last_note + line.encode()

    def _node(self, level: int, n: int) -> bytes:
        with (self._files.folder / HASHES).open("rb") as file:
            file.seek(stored_hash_index(level, n) * HASH_BYTES)
            return file.read(HASH_BYTES)

    def stop(self) -> None:
        """Write nothing more, whatever is left: the disk failed. Returns when nothing is being written."""
        with self._lock:
            self._stopped = True

    def close(self) -> None:
        """End the thread and follow up what is left. Raises `OSError`."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self.follow()

    def _hash(self) -> None:
        tree, cells = self._tree, self._cells
        while self._behind:
            lines, size = self._behind.popleft()
            for line in lines:
                cells += tree.append(leaf_hash(line))
            self._done += size

    def _refresh(self) -> None:
        self._notes += 1
        if (
            self._refreshed_us is None
            or self._now - self._refreshed_us >= _CHECKPOINT_US
            or self._notes >= _CHECKPOINT_NOTES
        ):
            # First: else a crash could leave a seal whose own note is torn here, which reads like tampering.
            self._files.sync(CHECKPOINTS)
            self._files.replace_checkpoint(self.cosigned())
            self._notes, self._refreshed_us = 0, self._now

    def _run(self) -> None:
        while True:
            with self._wake:
                self._asleep = True  # before the look: who adds, adds first and looks at this then
                while not self._behind and not self._closing:
                    self._wake.wait()
                self._asleep = False
                if self._closing:
                    return
            try:
                self.follow()
            except BaseException as error:
                self.on_error(error)
                return
            time.sleep(_PAUSE_SECONDS)


def _ignore(error: BaseException) -> None:
    del error
