"""Which key may sign which range of a ledger.

The key of `run.start` signs tree sizes up to the first `recovery` record, the key introduced there the sizes after it,
and so on: the ranges touch, and a key never signs outside its own. (journald's FSS accepted old entries sealed again
with a newer key, CVE-2023-31439; that is the mistake this module exists not to make.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deskcert_ledger.b64 import b64encode
from deskcert_ledger.checkpoint import Checkpoint
from deskcert_ledger.cosignature import COSIGNING
from deskcert_ledger.keys import introduced_by, witness_text
from deskcert_ledger.merkle import EMPTY_ROOT
from deskcert_ledger.note import Verifier, parse_vkey
from deskcert_ledger.report import EpochReport
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = ["Epoch", "Epochs"]


@dataclass(slots=True)
class Epoch:
    first: int
    key: Verifier
    pin: Verifier | None
    unsigned_from: int | None = None
    last_note: Checkpoint | None = None
    """The latest whose signature was not checked yet."""

    def report(self) -> EpochReport:
        return EpochReport(self.first, str(self.key), self.pin.name if self.pin else None, self.unsigned_from)


class Epochs:
    """Fed with `run.start` and `recovery` records and with notes, in the order of the tree's size.

    Every method raises `LedgerTampered` with the reason.
    """

    def __init__(self, pins: Sequence[Verifier], *, every_signature: bool, notes_there: bool) -> None:
        self._pins, self._every = pins, every_signature
        self._notes_there = notes_there
        self.origin = ""
        self.witness: Verifier | None = None
        """The run's own, in another process."""
        self.all: list[Epoch] = []
        self.notes = self.signatures = 0
        self.signed_size = 0
        """Of the largest note whose root matched."""
        self.signed_root = EMPTY_ROOT

    def start(self, data: dict[str, Any]) -> None:
        """The first record."""
        origin = data.get("origin")
        if not isinstance(origin, str):
            raise LedgerTampered("run.start names no origin")
        self.origin = origin
        self._open(0, data)
        if "witness" in data:
            self.witness = self._introduced_witness(data)

    def recover(self, seq: int, byte: int, data: dict[str, Any]) -> None:
        """A `recovery` record with number `seq` at offset `byte`: the previous key's range ends here."""
        self.finish()
        named = (data.get("size"), data.get("root"))
        last = (self.signed_size, b64encode(self.signed_root))
        if data.get("cut") != byte or (self._notes_there and named != last):
            raise LedgerTampered("a recovery that names another checkpoint or another cut than those that are there")
        self._open(seq, data)
        if self.signed_size < seq:
            self.all[-1].unsigned_from = self.signed_size

    def _open(self, first: int, data: dict[str, Any]) -> None:
        vkey, intro = data.get("vkey"), data.get("key_intro")
        if not isinstance(vkey, str) or not isinstance(intro, str):
            raise LedgerTampered("a run key without its introduction")
        try:
            key = parse_vkey(vkey)
        except LedgerFormatError as error:
            raise LedgerTampered(f"the run key is none: {error}") from error
        if key.name != self.origin:
            raise LedgerTampered("the run key has another name than the origin")
        pin = next((pin for pin in self._pins if introduced_by(intro, self.origin, vkey, pin)), None)
        if self._pins and pin is None:
            signer = intro.rpartition("— ")[2].partition(" ")[0]
            raise LedgerTampered(
                f"the run key is not introduced by the pinned key, but by {signer[:80]!r}: another project's run, "
                "or one that was replaced"
            )
        self.all.append(Epoch(first, key, pin))

    def _introduced_witness(self, data: dict[str, Any]) -> Verifier:
        vkey, intro = data["witness"], data.get("witness_intro")
        try:
            key = parse_vkey(str(vkey))
        except LedgerFormatError as error:
            raise LedgerTampered(f"the witness's key is none: {error}") from error
        introduced = any(introduced_by(str(intro), self.origin, str(vkey), pin, witness_text) for pin in self._pins)
        if key.algorithm not in COSIGNING or (self._pins and not introduced):
            raise LedgerTampered("the witness's key is not introduced by the pinned key")
        return key

    def note(self, note: Checkpoint) -> None:
        """A note whose root matched the tree at its size."""
        epoch = self.all[-1]
        if note.origin != self.origin or note.note.by(epoch.key) is None:
            raise LedgerTampered(f"the checkpoint of size {note.size} is not signed by the key of its range")
        self.notes += 1
        epoch.last_note = note
        self.signed_size, self.signed_root = note.size, note.root
        if self._every:
            self.finish()

    def signature(self, note: Checkpoint) -> None:
        """Check this note's signature now (the final `checkpoint`)."""
        epoch = self.all[-1]
        if note.origin != self.origin or not note.note.holds(epoch.key):
            raise LedgerTampered(f"the signature of the checkpoint of size {note.size} does not hold")
        self.signed_size, self.signed_root = note.size, note.root

    def finish(self) -> None:
        """Check the signature of the epoch's last note."""
        epoch = self.all[-1] if self.all else None
        if epoch is not None and epoch.last_note is not None:
            self.signature(epoch.last_note)
            self.signatures += 1
            epoch.last_note = None
