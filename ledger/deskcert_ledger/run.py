"""`RunLedger`: the writing side of one run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from deskcert_ledger.acks import Ack, Receipt
from deskcert_ledger.clock import Clock
from deskcert_ledger.keys import ProjectKey, RunKey
from deskcert_ledger.merkle import Tree
from deskcert_ledger.notary import Following, Notary
from deskcert_ledger.note import check_key_name
from deskcert_ledger.open_redaction import Asked, Dropped, payloads
from deskcert_ledger.payload import prepare
from deskcert_ledger.redaction import kept_openings, select
from deskcert_ledger.run_certificate import certify_run
from deskcert_ledger.sequencer import Sequencer
from deskcert_ledger.store import CHECKPOINTS, DISCLOSURES, Disk, RunFiles, create_files
from deskcert_ledger.witness import WitnessProcess
from deskcert_schema.errors import ContractError, LedgerFormatError, LedgerUnavailable
from deskcert_schema.vocabulary import RecordKind

__all__ = ["RunLedger", "Sealed"]


@dataclass(frozen=True, slots=True)
class Sealed:
    size: int
    """Number of records."""
    root: str
    """The tree's root, base64, as it stands in the checkpoint."""
    checkpoint_text: str
    """The final signed note: worth printing where nobody can change it, such as a CI log."""


class RunLedger:
    """One run's ledger, open for writing. `create` it, `submit` or `append` records, `seal` it.

    Thread safe. A failure to write raises `LedgerUnavailable` from the record's future; from then on the ledger is
    poisoned and every further record fails in the same way.
    """

    def __init__(
        self,
        files: RunFiles,
        tree: Tree,
        key: RunKey,
        *,
        clock: Clock,
        rng: Callable[[int], bytes],
        following: Following,
    ) -> None:
        """For `create` and recovery."""
        self.folder = files.folder
        self._files, self._key, self._rng = files, key, rng
        self._notary = Notary(files, tree, key, following)
        self._sequencer = Sequencer(files, self._notary, clock, tree.size)
        self._sealed: Sealed | None = None
        self._closed = False

    @classmethod
    def create(
        cls,
        folder: Path,
        *,
        origin: str,
        start: Mapping[str, Any],
        project_key: ProjectKey,
        clock: Clock,
        rng: Callable[[int], bytes],
        disk: Disk | None = None,
        following: Following = Following.THREAD,
        register: Callable[[str, str], Mapping[str, Any]] | None = None,
        witness: WitnessProcess | None = None,
    ) -> RunLedger:
        """Make the run folder and write `run.start`, durable and signed: `start`, `origin`, `vkey` and `key_intro`.

        `witness`: a process that cosigns `checkpoint` whenever it is written.
        `register` is told origin and vkey before anything is written, and gives what `run.start` says of that.
        `rng(n)` gives n random bytes (`os.urandom`): the run key's seed and all salts. Raises `UsageError` when the
        folder holds a ledger, `LedgerUnavailable` when it cannot be written.
        """
        try:
            check_key_name(origin)
        except LedgerFormatError as error:
            raise ContractError(f"the origin of a run is a key name: {error}") from error
        try:
            files = create_files(folder, disk or Disk())
        except OSError as error:
            raise LedgerUnavailable(f"No ledger can be made in {folder}: {error.strerror}.") from error
        key = RunKey(origin, rng)
        ledger = cls(files, Tree(), key, clock=clock, rng=rng, following=following)
        introduction = project_key.introduce(origin, key.vkey)
        try:
            logged = {} if register is None else register(origin, key.vkey)
            seen = {} if witness is None else ledger._seen_by(witness, project_key)
            told = {**start, **logged, **seen, "origin": origin, "vkey": key.vkey, "key_intro": introduction}
            ledger.append("run.start", told)
            ledger.follow()
        except BaseException:
            ledger.abandon()
            raise
        return ledger

    def _seen_by(self, witness: WitnessProcess, project_key: ProjectKey) -> dict[str, str]:
        """Have the witness cosign from now on; what `run.start` says of it. One that does not answer is no witness."""
        origin = self._key.verifier.name
        try:
            witness.know(self._key.vkey)
        except LedgerUnavailable:
            return {}
        self._notary.witness = witness.cosign
        return {"witness": witness.vkey, "witness_intro": project_key.introduce_witness(origin, witness.vkey)}

    def submit(
        self,
        kind: str,
        payload: Mapping[str, Any],
        *,
        w: str = "guard",
        ack: Ack = Ack.DURABLE,
        wake: bool = True,
    ) -> Future[Receipt]:
        """Hand over a record. Raises `ContractError` when the payload cannot stand in a ledger.

        The future gives a `Receipt`, or raises `LedgerUnavailable`. Await it with `asyncio.wrap_future`. Who says
        `wake=False` calls `run_now` when the last of several is handed over.
        """
        return self._sequencer.submit(w, str(kind), prepare(payload, self._rng), ack, wake=wake)

    def append(self, kind: str, payload: Mapping[str, Any], *, w: str = "guard", ack: Ack = Ack.DURABLE) -> Receipt:
        """The blocking form of `submit`, and the faster one for a caller that waits anyway."""
        return self._sequencer.write(w, str(kind), prepare(payload, self._rng), ack)

    def follow(self) -> None:
        """Sign what is durable now, which happens by itself right after. Raises `LedgerUnavailable`."""
        self._sequencer.follow()

    def redact(self, asked: Asked) -> Dropped:
        """Delete openings and blobs of this run while it is open: written down first, durable, then carried out.

        A crash in between leaves at most too much, which recovery deletes. Raises `LedgerUnavailable`,
        `LedgerFormatError` (no such record), `ContractError` (no reason).
        """
        dropped = Dropped(*select(self.folder, asked.seqs, blobs=asked.blobs, size=self._durable_size()))
        for payload in payloads(asked, dropped):
            self.append(RecordKind.REDACTION.value, payload)
        if dropped != Dropped():
            kept = kept_openings(self.folder, dropped.openings)
            self._sequencer.exclusively(lambda: self._files.drop(kept, dropped.blobs))
        return dropped

    def _durable_size(self) -> int:
        self._sequencer.settle()
        return self.head[0]

    @property
    def origin(self) -> str:
        return self._key.verifier.name

    def run_now(self) -> None:
        """Commit what was submitted with `wake=False`, in this thread."""
        self._sequencer.run_now()

    @property
    def head(self) -> tuple[int, str]:
        """Size and root (base64) of what is durable."""
        return self._sequencer.head

    @property
    def poisoned(self) -> str | None:
        """Why nothing can be written any more, or None."""
        return self._sequencer.poisoned

    def seal(self) -> Sealed:
        """Commit everything, write the certificate and the final `checkpoint`, destroy the run key.

        Again: the same answer. Raises `LedgerUnavailable` when the ledger is or becomes poisoned; the folder then waits
        for recovery.
        """
        if self._sealed is not None:
            return self._sealed
        self._sequencer.close()
        try:
            if self.poisoned is not None or self._closed:
                raise LedgerUnavailable(self.poisoned or "the ledger is closed")
            note = self._notary.cosigned()
            self._files.sync(CHECKPOINTS)
            self._files.sync(DISCLOSURES)
            # Before the checkpoint: a crash in between leaves a certificate that recovery's seal makes good.
            for name, content in certify_run(self.folder, self._key, note.decode()).items():
                self._files.put(name, content)
            self._files.replace_checkpoint(note)
        except OSError as error:
            raise LedgerUnavailable(f"The ledger cannot be sealed: {error.strerror}.") from error
        finally:
            self._end()
        size, root = self.head
        self._sealed = Sealed(size, root, note.decode())
        return self._sealed

    def abandon(self) -> None:
        """End without a seal: for a ledger that cannot be written. What was acknowledged stays."""
        self._sequencer.close()
        self._end()

    def _end(self) -> None:
        self._key.destroy()
        if not self._closed:
            self._closed = True
            with contextlib.suppress(OSError):
                self._files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._sealed is None and not self._closed:
            self.abandon()
