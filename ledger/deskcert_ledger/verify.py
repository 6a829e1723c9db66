"""`verify_run`: is this ledger what was signed, is it all of it, and whose is it?

It reads in one pass and constant memory, never writes, and trusts nothing in the folder but what a pinned key leads to:
(1) the pinned project key introduces the run key, (2) the run key signs checkpoints, (3) every checkpoint's root is
recomputed from the lines, (4) every line is in the strict subset and has its number, (5) every blob is what its record
says. `ledger.hashes` is only used to say *where* a line differs, never whether.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

from deskcert_ledger.b64 import b64encode
from deskcert_ledger.batch import LineChecker
from deskcert_ledger.beside import contradiction
from deskcert_ledger.blob import blob_path, check_blob, is_reference
from deskcert_ledger.checkpoint import Checkpoint, Damage, file_size, parse_checkpoint, read_checkpoints
from deskcert_ledger.classes import WATCHED_KINDS, ClassTrees
from deskcert_ledger.elision import elided_leaf
from deskcert_ledger.epochs import Epochs
from deskcert_ledger.hashes import first_difference
from deskcert_ledger.line import MAX_LINE_BYTES
from deskcert_ledger.merkle import Tree
from deskcert_ledger.note import MAX_NOTE_BYTES, Verifier, parse_vkey
from deskcert_ledger.reader import check_record, open_ledger
from deskcert_ledger.redaction import Redactions, read_redactions
from deskcert_ledger.report import Finding, RunReport, Word
from deskcert_ledger.shapes import Checked
from deskcert_ledger.store import CHECKPOINT, CHECKPOINTS
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = ["verify_run"]

_CHUNK = 1 << 16
_WATCHED = frozenset({"action.intent", "action.result", "recovery"}) | WATCHED_KINDS
_CLOSELY = _WATCHED - {"action.intent", "action.result"}
_MAX_FINDINGS = 20
_MAX_MISSING = 100_000
_EXIT = {Word.COMPLETE: 0, Word.UNVERIFIABLE: 3}


def verify_run(
    folder: Path,
    *,
    pins: Sequence[str | Verifier] = (),
    every_signature: bool = False,
    schema: bool = False,
    allow_elided: bool = False,
) -> RunReport:
    """Verify one run folder. `pins`: vkeys of project keys that count; none leaves it `unverifiable`.

    `allow_elided`: lines that were elided for export count as records that nobody can read; without it they leave the
    ledger `unverifiable`.

    Raises `LedgerFormatError` when the folder holds no ledger, or a pin is no key.
    """
    keys = tuple(parse_vkey(pin) if isinstance(pin, str) else pin for pin in pins)
    return _Verification(folder, keys, every_signature=every_signature, schema=schema, allow_elided=allow_elided).run()


class _Verification:
    def __init__(
        self, folder: Path, pins: tuple[Verifier, ...], *, every_signature: bool, schema: bool, allow_elided: bool
    ) -> None:
        self.folder, self.pins = folder, pins
        self.allow_elided, self.elided = allow_elided, 0
        self.classes = ClassTrees()
        self.certified = False
        self.redactions = Redactions()
        self.redacted_blobs: set[str] = set()
        self.named_missing: set[str] = set()
        self.every_signature, self.schema = every_signature, schema
        self.notes_there = (folder / CHECKPOINTS).is_file()
        self.epochs = Epochs(pins, every_signature=every_signature, notes_there=self.notes_there)
        self.checker = LineChecker(watched=_WATCHED, closely=_CLOSELY, whole=schema)
        self.tree = Tree()
        self.offset = 0
        self.good = (0, 0)
        """Size and byte of the last checkpoint whose root matched."""
        self.tampered: Finding | None = None
        self.problems: list[Finding] = []
        self.dropped = 0
        self.missing_blobs: dict[str, Finding] = {}
        self.blobs = self.unschemed = 0
        self.kinds: Counter[str] = Counter()
        self.open: dict[int, None] = {}
        self.run_id = self.last_kind = ""
        self.final: Checkpoint | None = None
        self.final_seen = False
        self.damage: list[Damage] = []
        self.torn = False

    def run(self) -> RunReport:
        with open_ledger(self.folder) as file:
            self._read_final()
            self._guarded(self._read_redactions)
            notes = self._notes()
            self.next_note = next(notes, None)
            known = self.next_note is not None or self.final is not None or self.tampered is not None
            try:
                for lines in _lines(file):
                    self._lines(lines, notes)
                    if self.tampered is not None:
                        break
                else:
                    self._past_the_end(notes)
            except _BadLine as bad:
                self._bad_line(bad, notes, known=known)
            if self.tampered is None:
                self._guarded(self.epochs.finish)
            if self.tampered is None:
                self._aside()
        if self.tree.size == 0 and not known:
            raise LedgerFormatError(f"{self.folder} holds a ledger without a record")
        return self._report()

    # -- notes ---------------------------------------------------------------------------------------------------

    def _read_final(self) -> None:
        try:
            with (self.folder / CHECKPOINT).open("rb") as file:
                self.final = parse_checkpoint(file.read(MAX_NOTE_BYTES + 1))
        except FileNotFoundError:
            return
        except (OSError, LedgerFormatError) as error:  # it is replaced whole, so a crash cannot leave it half
            self._tamper(f"`{CHECKPOINT}` is no signed checkpoint: {error}", 0, 0)

    def _notes(self) -> Iterator[Checkpoint]:
        """Well-formed notes in the order of the file; what is none goes to `damage`."""
        if not self.notes_there:
            return
        with (self.folder / CHECKPOINTS).open("rb") as file:
            # Not further than now: a run that goes on writes lines first and their notes after.
            for item in read_checkpoints(file, limit=file_size(file)):
                if isinstance(item, Damage):
                    self.damage.append(item)
                else:
                    yield item

    def _at_boundary(self, notes: Iterator[Checkpoint]) -> None:
        """Check every note that is about the present size."""
        size = self.tree.size
        while self.next_note is not None and self.next_note.size <= size:
            if self.next_note.size < size or self.next_note.size == 0:
                self._tamper("`checkpoints` are not in order", *self.good)
                return
            self._check_root(self.next_note)
            if self.tampered is None:
                self._guarded(self.epochs.note, self.next_note)
            if self.tampered is not None:
                return
            self.next_note = next(notes, None)
        if self.final is not None and self.final.size == size:
            self._check_root(self.final)
            if self.tampered is None:
                self._guarded(self.epochs.signature, self.final)
                self.final_seen = True

    def _check_root(self, note: Checkpoint) -> None:
        if note.root == self.tree.root():
            self.good = (note.size, self.offset)
            return
        seq, byte, exact = first_difference(self.folder, self.good, note.size)
        where = "this record differs" if exact else f"a record from here to {note.size - 1} differs"
        self._tamper(f"the lines do not match the checkpoint of size {note.size}: {where}", seq, byte)

    def _boundary(self) -> int | None:
        """The next size at which a note is due."""
        sizes = [note.size for note in (self.next_note, self.final) if note is not None and note.size > self.tree.size]
        return min(sizes, default=None)

    # -- lines ---------------------------------------------------------------------------------------------------

    def _lines(self, lines: list[bytes], notes: Iterator[Checkpoint]) -> None:
        if self.tree.size == 0:
            self._first(lines[0])
        checked = self.checker.check(lines, self.tree.size)
        if checked is not None:
            self._rows(lines, checked, notes)
            return
        for line in lines:  # something is unusual: line by line, so that its place is known
            leaf = elided_leaf(line)
            if leaf is not None:
                self.elided += 1
                self._rows([line], Checked(["elided"], []), notes, leaves=[leaf])
                if self.tampered is not None:
                    return
                continue
            try:
                data = check_record(line, self.tree.size)
            except LedgerFormatError as error:
                raise _BadLine(error.reason) from error
            self._rows([line], self.checker.sort_out([line], [data]), notes)
            if self.tampered is not None:
                return

    def _rows(
        self,
        lines: list[bytes],
        checked: Checked,
        notes: Iterator[Checkpoint],
        leaves: list[bytes] | None = None,
    ) -> None:
        """Take lines of good form: stop at each that says something about the run, and at each size that is signed."""
        first, count, begin, done = self.tree.size, len(lines), self.offset, 0
        if leaves is None:
            leaves = [sha256(b"\x00" + line).digest() for line in lines]
        ends = list(accumulate(map(len, lines), initial=begin))
        size = self._boundary()
        for index, data in [*checked.watched, (count, {})]:
            while size is not None and size - first <= index:
                self.tree.extend(leaves[done : size - first])
                done = size - first
                self.offset = ends[done] + done
                self._at_boundary(notes)
                if self.tampered is not None:
                    return
                size = self._boundary()
            if index == count or checked.kinds[index] == "recovery":  # which looks at the tree
                self.tree.extend(leaves[done:index])
                done = index
            self.offset = ends[index] + index
            if index < count:
                self._record(first + index, data, lines[index])
                if self.tampered is not None:
                    return
        self.open.update(dict.fromkeys(checked.opened))
        for of in checked.closed:
            self.open.pop(of, None)
        self.kinds.update(checked.kinds)
        self.last_kind = checked.kinds[-1]

    def _first(self, line: bytes) -> None:
        try:
            data = check_record(line, 0)
        except LedgerFormatError as error:
            raise _BadLine(error.reason) from error
        if data["kind"] != "run.start":
            raise _BadLine("the first record is no run.start")
        run = data.get("run")
        self.run_id = run if isinstance(run, str) else ""
        self._guarded(self.epochs.start, data)

    def _record(self, seq: int, data: dict[str, Any], line: bytes) -> None:
        kind = data["kind"]
        if kind == "action.intent":
            self.open[seq] = None
        elif kind == "action.result":
            of = data.get("of")
            if type(of) is int:
                self.open.pop(of, None)
        elif kind == "recovery":
            self._guarded(self.epochs.recover, seq, self.offset, data)
        if kind in WATCHED_KINDS:
            self._classed(seq, data, line)
        if b'"blob":' in line and kind not in ("redaction", "blob.missing"):
            self._blobs(seq, data)
        if self.schema:
            self._schema(seq, data)

    def _blobs(self, seq: int, value: Any) -> None:
        if is_reference(value):
            self.blobs += 1
            name = value["blob"]
            wrong = check_blob(self.folder, value)
            if wrong is None:
                if name in self.redactions.blobs:
                    self._problem(Finding(f"blob {name[:12]}… was redacted and is still there", seq, self.offset))
            elif name in self.redactions.blobs and not blob_path(self.folder, name).exists():
                self.redacted_blobs.add(name)
            elif len(self.missing_blobs) < _MAX_MISSING:
                self.missing_blobs.setdefault(name, Finding(wrong, seq, self.offset))
        elif isinstance(value, dict):
            for item in value.values():
                self._blobs(seq, item)
        elif isinstance(value, list):
            for item in value:
                self._blobs(seq, item)

    def _classed(self, seq: int, data: dict[str, Any], line: bytes) -> None:
        """A record of a class; those that speak of deleted blobs are remembered."""
        self.classes.add(seq, data, line)
        if data["kind"] == "redaction":
            names = data.get("blobs")
            self.redacted_blobs.update(str(name) for name in names if name) if isinstance(names, list) else None
        elif data["kind"] == "blob.missing":
            self.named_missing.add(str(data.get("blob")))

    def _schema(self, seq: int, data: dict[str, Any]) -> None:
        from deskcert_schema.validate import check

        for problem in check("record", data):
            self.unschemed += 1
            where = f"{problem.path}: " if problem.path else ""
            self._problem(Finding(f"does not fit its schema: {where}{problem.message}", seq, self.offset))

    # -- beside the ledger -----------------------------------------------------------------------------------------

    def _read_redactions(self) -> None:
        self.redactions = read_redactions(self.folder, self.pins)

    def _aside(self) -> None:
        """What stands beside the ledger about the whole of it: redactions and the certificate."""
        whole = (self.epochs.origin, self.tree.size, b64encode(self.tree.root()))
        if any((entry.origin, entry.size, entry.root) != whole for entry in self.redactions.entries):
            self._tamper(
                "`redactions.jsonl` is about another ledger, or another state of this one", self.tree.size, self.offset
            )
            return
        if self.elided or self.final is None or self.final.size != self.tree.size:
            return
        try:
            wrong = contradiction(
                self.folder,
                self.pins,
                key=self.epochs.all[-1].key,
                origin=self.epochs.origin,
                size=self.tree.size,
                root=self.tree.root(),
                classes=self.classes,
            )
        except LedgerFormatError:
            return
        self.certified = wrong is None
        if wrong is not None:
            self._tamper(wrong, self.tree.size, self.offset)

    # -- ends ----------------------------------------------------------------------------------------------------

    def _past_the_end(self, notes: Iterator[Checkpoint]) -> None:
        """The lines are over: does a note speak of more?"""
        beyond = self._largest_left(notes)
        if beyond > self.tree.size:
            self._tamper(
                f"a checkpoint vouches for {beyond} records, and only {self.tree.size} are there",
                self.tree.size,
                self.offset,
            )

    def _bad_line(self, bad: _BadLine, notes: Iterator[Checkpoint], *, known: bool) -> None:
        if self.tree.size == 0 and not known:
            raise LedgerFormatError(f"{self.folder} holds no ledger: {bad.reason}", line=1, offset=0) from bad
        if self._largest_left(notes) > self.tree.size:
            self._tamper(f"a signed record is damaged: {bad.reason}", self.tree.size, self.offset)
        else:
            self.torn = True
            self._problem(Finding(f"a torn end, which recovery cuts: {bad.reason}", self.tree.size, self.offset))

    def _largest_left(self, notes: Iterator[Checkpoint]) -> int:
        left = [note.size for note in (self.next_note, self.final) if note is not None]
        return max([*left, *(note.size for note in notes)], default=0)

    def _tamper(self, text: str, seq: int, byte: int) -> None:
        if self.tampered is None:
            self.tampered = Finding(text, seq, byte)

    def _guarded[**P](self, step: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            step(*args, **kwargs)
        except LedgerTampered as error:
            self._tamper(str(error), self.tree.size, self.offset)

    def _problem(self, finding: Finding) -> None:
        if len(self.problems) < _MAX_FINDINGS:
            self.problems.append(finding)
        else:
            self.dropped += 1

    # -- the answer ----------------------------------------------------------------------------------------------

    def _report(self) -> RunReport:
        size, signed = self.tree.size, self.epochs.signed_size
        sealed = self.last_kind == "run.end" and self.final_seen and self.final is not None and self.final.size == size
        for name, finding in self.missing_blobs.items():
            if name in self.redacted_blobs and not blob_path(self.folder, name).exists():
                continue
            if name in self.named_missing:
                self._problem(Finding(f"{finding.text}, as a later record says", finding.seq, finding.byte))
            elif finding.seq is not None and finding.seq < signed:
                self._tamper(finding.text, finding.seq, finding.byte or 0)
            else:
                self._problem(finding)
        for item in self.damage:
            text = f"{item.length} bytes at {item.offset} of `{CHECKPOINTS}` are no signed note"
            if sealed:
                self._tamper(text, size, self.offset)
            else:
                self._problem(Finding(text))
        words = self._words(sealed=sealed, signed=signed)
        headline, worst = words[0]
        exit_code = _EXIT.get(worst, 1)
        problems = [self.tampered] if self.tampered is not None else []
        if exit_code == 0 and self.unschemed:
            exit_code = 1  # asked for, and not so
        if self.dropped:
            self.problems.append(Finding(f"and {self.dropped} more"))
        final = self.final.note if self.final is not None and self.final_seen else None
        return RunReport(
            headline=headline,
            words=tuple(word for word, _ in words),
            exit_code=exit_code,
            size=size,
            root=b64encode(self.tree.root()),
            origin=self.epochs.origin,
            run=self.run_id,
            checkpoint="" if final is None or self.final is None else self.final.raw.decode(),
            signed_size=signed,
            problems=(*problems, *self.problems),
            not_checked=tuple(self._not_checked()),
            checked=tuple(self._checked()),
            open_intents=tuple(self.open),
            epochs=tuple(epoch.report() for epoch in self.epochs.all),
            kinds=dict(self.kinds),
        )

    def _words(self, *, sealed: bool, signed: int) -> list[tuple[str, Word]]:
        size, words = self.tree.size, []
        if self.tampered is not None:
            return [(Word.TAMPERED.value, Word.TAMPERED)]
        if not self.pins or (self.elided and not self.allow_elided):
            words.append((Word.UNVERIFIABLE.value, Word.UNVERIFIABLE))
        if self.open or len(self.epochs.all) > 1:
            words.append((Word.INTERRUPTED.value, Word.INTERRUPTED))
        if signed < size or self.torn:
            words.append((f"{Word.PREFIX.value}({signed},{size - signed})", Word.PREFIX))
        elif not sealed:
            words.append((Word.UNFINISHED.value, Word.UNFINISHED))
        return words or [(Word.COMPLETE.value, Word.COMPLETE)]

    def _checked(self) -> Iterator[str]:
        yield f"{self.tree.size} records: form, number and leaf hash"
        yield f"{self.epochs.notes} checkpoints: root recomputed, key of the right range"
        yield f"{self.epochs.signatures} signatures of checkpoints, and that of `{CHECKPOINT}`: {self.final_seen}"
        yield f"{self.blobs - len(self.redacted_blobs)} blobs: digest and length"
        if self.certified:
            yield "the certificate: signature, tree, and the members of every record class"
        if self.redactions.entries and self.redactions.signed:
            yield f"{len(self.redactions.entries)} redactions: signed by the pinned key"
        if self.pins and self.tampered is None:
            yield f"{len(self.epochs.all)} run keys: introduced by the pinned key"
        if self.schema:
            yield f"schemas: {self.unschemed} problems"

    def _not_checked(self) -> Iterator[str]:
        if self.tampered is not None:
            yield "what comes after the first contradiction"
        if not self.pins:
            yield "whose ledger this is: no pinned key (--key)"
        if self.elided:
            allowed = "" if self.allow_elided else " (--allow-elided accepts that)"
            yield f"{self.elided} elided lines: content, kind, number and blobs{allowed}"
        if self.redacted_blobs:
            yield f"{len(self.redacted_blobs)} blobs that were redacted"
        if self.redactions.openings:
            yield f"{len(self.redactions.openings)} openings that were redacted"
        if self.redactions.entries and not self.redactions.signed:
            yield "whose the redactions are: no pinned key (--key)"
        if not self.certified and self.tampered is None:
            yield "whether each record class is complete: no certificate, or not all lines"
        if not self.notes_there:
            yield f"checkpoints before the last: `{CHECKPOINTS}` is missing"
        elif not self.every_signature and self.epochs.notes > self.epochs.signatures:
            left = self.epochs.notes - self.epochs.signatures
            yield f"signatures of {left} earlier checkpoints (--every-signature)"
        if not self.schema:
            yield "whether each record fits its schema (--schema)"
        yield "truncation or replacement by a holder of the run key before the seal: no witness cosigned"
        yield "whether a whole run was left out: there is no project log"
        yield "blobs and openings that no record names"
        yield "whether what was recorded is true: this is integrity, not truth"


class _BadLine(Exception):
    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def _lines(file: Any) -> Iterator[list[bytes]]:
    """Complete lines in batches, without newlines. Raises `_BadLine` when the end has none, or a line is too long."""
    rest = b""
    while chunk := file.read(_CHUNK):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        if lines:
            yield lines
        if len(rest) > MAX_LINE_BYTES:
            raise _BadLine("a line that is too long")
    if rest:
        raise _BadLine("the last line is not complete")
