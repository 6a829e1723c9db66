"""Following keys, checkpoints and open intents through a ledger's stretches, up to the first contradiction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from deskcert_ledger.b64 import b64encode
from deskcert_ledger.beside import Counted, contradiction
from deskcert_ledger.blob import blob_path, is_blob_name
from deskcert_ledger.checkpoint import Checkpoint, Damage, file_size, parse_checkpoint, read_checkpoints
from deskcert_ledger.classes import ClassTrees
from deskcert_ledger.epochs import Epochs
from deskcert_ledger.files import open_regular, read_bounded
from deskcert_ledger.hashes import first_difference
from deskcert_ledger.merkle import Tree
from deskcert_ledger.note import MAX_NOTE_BYTES, Verifier
from deskcert_ledger.ranges import in_parts, scan_in_parts
from deskcert_ledger.reader import open_ledger
from deskcert_ledger.redaction import Redactions, read_redactions
from deskcert_ledger.report import Finding
from deskcert_ledger.scan import scan
from deskcert_ledger.store import CHECKPOINT, CHECKPOINTS, LEDGER
from deskcert_ledger.stretch import BlobEvent, Bounds, ClassEvent, Options, RecordEvent, SchemaEvent, Stretch
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = ["Evidence"]

_MAX_FINDINGS = 20
_MAX_MISSING = 100_000


class Evidence:
    """What a run folder shows. `read` fills it; nothing in the folder is believed that a pin does not lead to."""

    def __init__(self, folder: Path, pins: tuple[Verifier, ...], *, every_signature: bool, schema: bool) -> None:
        self.folder, self.pins = folder, pins
        self.every_signature, self.schema = every_signature, schema
        self.notes_there = (folder / CHECKPOINTS).is_file()
        self.epochs = Epochs(pins, every_signature=every_signature, notes_there=self.notes_there)
        self.classes = ClassTrees()
        self.redactions = Redactions()
        self.redacted_blobs: set[str] = set()
        self.dropped_blobs: set[str] = set()
        """Those of them that were redacted while the run was open."""
        self.named_missing: set[str] = set()
        self.torn_kept: dict[int, int] = {}
        """Offset -> bytes that a recovery says it cut there and kept."""
        self.tree = Tree()
        self.offset = 0
        self.tampered: Finding | None = None
        self.problems: list[Finding] = []
        self.dropped = 0
        self.missing_blobs: dict[str, Finding] = {}
        self.blobs = self.unschemed = self.elided = 0
        self.kinds: Counter[str] = Counter()
        self.open: dict[int, None] = {}
        self.run_id = self.last_kind = ""
        self.final: Checkpoint | None = None
        self.final_seen = False
        self.certificate: str | None = "it was not looked at"
        """Why the certificate says nothing about this ledger; None when it was checked and holds."""
        self.damage: list[Damage] = []
        self.torn = False
        self._good = (0, 0)
        """Size and byte of the last checkpoint whose root matched."""
        self._next: Checkpoint | None = None

    @property
    def sealed(self) -> bool:
        """Does the final checkpoint cover a `run.end` that is last?"""
        covered = self.final_seen and self.final is not None and self.final.size == self.tree.size
        return self.last_kind == "run.end" and covered

    @property
    def _interrupted(self) -> bool:
        return bool(self.open) or self.kinds["recovery"] > 0

    def read(self, jobs: int) -> None:
        """Raises `LedgerFormatError` when there is no ledger, `NotInParts` (only with several `jobs`)."""
        with open_ledger(self.folder) as file:
            self._read_final()
            self.guarded(self._read_redactions)
            notes = self._notes()
            self._next = next(notes, None)
            known = self._next is not None or self.final is not None or self.tampered is not None
            options = Options(self.folder, self.redactions.blobs, schema=self.schema)
            if in_parts(self.folder, jobs):
                final = [] if self.final is None else [self.final.size]
                stretches = scan_in_parts(file, options, final, jobs)
            else:
                stretches = scan(file, Bounds(), options, self._due)
            try:
                for stretch in stretches:
                    self._take(stretch, notes)
                    if self.tampered is not None:
                        break
                else:
                    self._past_the_end(notes)
            except _BadLine as bad:
                self._bad_line(bad, notes, known=known)
            finally:
                stretches.close()
            if self.tampered is None:
                self.guarded(self.epochs.finish)
            if self.tampered is None:
                self._aside()
        if self.tree.size == 0 and not known and self.tampered is None:
            raise LedgerFormatError(f"{self.folder} holds a ledger without a record")

    # -- notes ---------------------------------------------------------------------------------------------------

    def _read_final(self) -> None:
        try:
            self.final = parse_checkpoint(read_bounded(self.folder / CHECKPOINT, MAX_NOTE_BYTES))
        except FileNotFoundError:
            return
        except (OSError, LedgerFormatError) as error:  # it is replaced whole, so a crash cannot leave it half
            self.tamper(f"`{CHECKPOINT}` is no signed checkpoint: {error}", 0, 0)

    def _notes(self) -> Iterator[Checkpoint]:
        """Well-formed notes in the order of the file; what is none goes to `damage`."""
        if not self.notes_there:
            return
        with open_regular(self.folder / CHECKPOINTS) as file:
            # Not further than now: a run that goes on writes lines first and their notes after.
            for item in read_checkpoints(file, limit=file_size(file)):
                if isinstance(item, Damage):
                    self.damage.append(item)
                else:
                    yield item

    def _at_boundary(self, notes: Iterator[Checkpoint]) -> None:
        """Check every note that is about the present size."""
        size = self.tree.size
        while self._next is not None and self._next.size <= size:
            if self._next.size < size or self._next.size == 0:
                self.tamper("`checkpoints` are not in order", *self._good)
                return
            self._check_root(self._next)
            if self.tampered is None:
                self.guarded(self.epochs.note, self._next)
            if self.tampered is not None:
                return
            self._next = next(notes, None)
        if self.final is not None and self.final.size == size:
            self._check_root(self.final)
            if self.tampered is None:
                self.guarded(self.epochs.signature, self.final)
                self.final_seen = True

    def _check_root(self, note: Checkpoint) -> None:
        if note.root == self.tree.root():
            self._good = (note.size, self.offset)
            return
        seq, byte, exact = first_difference(self.folder, self._good, note.size)
        where = "this record differs" if exact else f"a record from here to {note.size - 1} differs"
        self.tamper(f"the lines do not match the checkpoint of size {note.size}: {where}", seq, byte)

    def _due(self, size: int) -> int | None:
        """The next size after `size` at which a note is due."""
        sizes = [note.size for note in (self._next, self.final) if note is not None and note.size > size]
        return min(sizes, default=None)

    # -- lines ---------------------------------------------------------------------------------------------------

    def _take(self, stretch: Stretch, notes: Iterator[Checkpoint]) -> None:
        if self.tree.size == 0 and (stretch.count or stretch.bad is not None):
            self._first(stretch)
        for event in stretch.events:
            match event:
                case RecordEvent():
                    self._record(event)
                case ClassEvent():
                    self.classes.add_member(event.names, event.seq, event.leaf)
                case BlobEvent():
                    self._blob(event)
                case SchemaEvent():
                    self.unschemed += 1
                    self.problem(Finding(event.text, event.seq, event.byte))
            if self.tampered is not None:
                return
        for level, node in stretch.nodes:
            self.tree.push(level, node)
        self.offset = stretch.end
        self.open.update(dict.fromkeys(stretch.opened))
        for of in stretch.closed:
            self.open.pop(of, None)
        self.kinds.update(stretch.kinds)
        self.blobs += stretch.blobs
        self.elided += stretch.elided
        self.last_kind = stretch.last_kind or self.last_kind
        if stretch.count:
            self._at_boundary(notes)
        if stretch.bad is not None and self.tampered is None:
            raise _BadLine(stretch.bad)

    def _first(self, stretch: Stretch) -> None:
        """The first record must be there, and begin a run."""
        first = stretch.events[0] if stretch.events else None
        if stretch.count == 0:
            raise _BadLine(stretch.bad or "")
        if not isinstance(first, RecordEvent) or first.seq != 0 or first.data["kind"] != "run.start":
            raise _BadLine("the first record is no run.start")
        run = first.data.get("run")
        self.run_id = run if isinstance(run, str) else ""
        self.guarded(self.epochs.start, first.data)

    def _record(self, event: RecordEvent) -> None:
        match event.data:
            case {"kind": "recovery"}:
                self.guarded(self.epochs.recover, event.seq, event.byte, event.data)
                match event.data:
                    case {"cut": int(cut), "torn_bytes": int(count)} if count > 0:
                        self.torn_kept[cut] = count
            case {"kind": "redaction", "blobs": [*names]}:
                dropped = {name for name in names if isinstance(name, str) and is_blob_name(name)}
                self.redacted_blobs |= dropped
                self.dropped_blobs |= dropped
            case {"kind": "blob.missing", **told}:
                self.named_missing.add(str(told.get("blob")))

    def _blob(self, event: BlobEvent) -> None:
        redacted = event.name in self.redactions.blobs
        if event.wrong is None:
            self.problem(Finding(f"blob {event.name[:12]}… was redacted and is still there", event.seq, event.byte))
        elif redacted and not blob_path(self.folder, event.name).exists():
            self.redacted_blobs.add(event.name)
        elif len(self.missing_blobs) < _MAX_MISSING:
            self.missing_blobs.setdefault(event.name, Finding(event.wrong, event.seq, event.byte))

    # -- beside the ledger -----------------------------------------------------------------------------------------

    def _read_redactions(self) -> None:
        self.redactions = read_redactions(self.folder, self.pins)

    def _aside(self) -> None:
        """What stands beside the ledger about the whole of it: redactions and the certificate."""
        root = self.tree.root()
        whole = (self.epochs.origin, self.tree.size, b64encode(root))
        if any((entry.origin, entry.size, entry.root) != whole for entry in self.redactions.entries):
            text = "`redactions.jsonl` is about another ledger, or another state of this one"
            self.tamper(text, self.tree.size, self.offset)
            return
        if self.elided or self.final is None or self.final.size != self.tree.size:
            self.certificate = "no final checkpoint, or not all lines"
            return
        key, origin, size = self.epochs.all[-1].key, self.epochs.origin, self.tree.size
        try:
            counted = Counted(size, root, self.classes, self.kinds, interrupted=self._interrupted, last=self.last_kind)
            wrong = contradiction(self.folder, self.pins, key=key, origin=origin, counted=counted)
        except LedgerFormatError as error:
            self.certificate = str(error)
            return
        if wrong is not None and (self.folder / LEDGER).stat().st_size > self.offset:
            self.certificate = "the run went on while it was read"
            return
        self.certificate = wrong
        if wrong is not None:
            self.tamper(wrong, self.tree.size, self.offset)

    # -- ends ----------------------------------------------------------------------------------------------------

    def _past_the_end(self, notes: Iterator[Checkpoint]) -> None:
        """The lines are over: does a note speak of more?"""
        beyond, size = self._largest_left(notes), self.tree.size
        if beyond > size:
            self.tamper(f"a checkpoint vouches for {beyond} records, and only {size} are there", size, self.offset)

    def _bad_line(self, bad: _BadLine, notes: Iterator[Checkpoint], *, known: bool) -> None:
        if self.tree.size == 0 and not known:
            raise LedgerFormatError(f"{self.folder} holds no ledger: {bad.reason}", line=1, offset=0) from bad
        if self._largest_left(notes) > self.tree.size:
            self.tamper(f"a signed record is damaged: {bad.reason}", self.tree.size, self.offset)
        else:
            self.torn = True
            self.problem(Finding(f"a torn end, which recovery cuts: {bad.reason}", self.tree.size, self.offset))

    def _largest_left(self, notes: Iterator[Checkpoint]) -> int:
        left = [note.size for note in (self._next, self.final) if note is not None]
        return max([*left, *(note.size for note in notes)], default=0)

    # -- what was found --------------------------------------------------------------------------------------------

    def tamper(self, text: str, seq: int, byte: int) -> None:
        """The first contradiction counts."""
        if self.tampered is None:
            self.tampered = Finding(text, seq, byte)

    def guarded[**P](self, step: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Take `LedgerTampered` for a contradiction."""
        try:
            step(*args, **kwargs)
        except LedgerTampered as error:
            self.tamper(str(error), self.tree.size, self.offset)

    def problem(self, finding: Finding) -> None:
        if len(self.problems) < _MAX_FINDINGS:
            self.problems.append(finding)
        else:
            self.dropped += 1


class _BadLine(Exception):
    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)
