"""Reading lines for a verification: form, number, leaf hash and blobs of each, in stretches.

A `Stretch` is what is to be known of some lines that follow each other. Nothing in it depends on the lines before, so
ranges of one ledger can be scanned apart (see `ranges`); whoever takes the stretches in order knows keys, checkpoints
and open intents. A stretch ends at every size at which a checkpoint is due, and before a `recovery`, where another
key's range begins.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import accumulate
from typing import Any, BinaryIO

from deskcert_ledger.batch import check_batch
from deskcert_ledger.blob import NAMES_THE_GONE, check_blob, references
from deskcert_ledger.classes import WATCHED_KINDS, classify
from deskcert_ledger.elision import elided_leaf
from deskcert_ledger.line import MAX_LINE_BYTES
from deskcert_ledger.merkle import leaf_hashes, subtrees
from deskcert_ledger.reader import check_record
from deskcert_ledger.shapes import Shapes
from deskcert_ledger.stretch import BlobEvent, Bounds, ClassEvent, Options, RecordEvent, SchemaEvent, Stretch
from deskcert_schema.errors import LedgerFormatError

__all__ = ["scan"]

_CHUNK = 1 << 17
_NEWLINE = 0x0A
_MAX_LINES, _MAX_EVENTS = 4096, 512
"""Of one stretch: memory does not grow with the ledger."""
_LEARN_FROM = 1 << 19
"""Bytes; in fewer, learning forms costs more than it saves."""
_WHOLE = frozenset({"run.start", "recovery", "redaction", "blob.missing"})
"""Kinds whose content says something about the verification itself."""
_CLOSELY = (_WHOLE | WATCHED_KINDS) - {"action.result"}


def scan(
    file: BinaryIO, bounds: Bounds, options: Options, due: Callable[[int], int | None]
) -> Generator[Stretch, None, None]:
    """The stretches of `bounds`. `due(size)`: the next size after `size` at which a checkpoint is due.

    After a stretch with `bad` nothing follows.
    """
    size = file.seek(0, 2) if bounds.end is None else bounds.end
    file.seek(bounds.begin)
    scanner = _Scanner(options, bounds, due, learns=size - bounds.begin >= _LEARN_FROM and not options.schema)
    for lines, whole, bad in _lines(file, bounds):
        yield from scanner.take(lines, whole)
        if scanner.ended:
            return
        if bad is not None:
            scanner.now.bad = bad
            break
    yield scanner.flush()


class _Bad(Exception):
    """The line at this place is none."""

    def __init__(self, at: int, reason: str) -> None:
        self.at, self.reason = at, reason
        super().__init__(reason)


class _Scanner:
    def __init__(self, options: Options, bounds: Bounds, due: Callable[[int], int | None], *, learns: bool) -> None:
        self._options, self._due = options, due
        self._shapes = Shapes(_CLOSELY) if learns else None
        self._leaves: list[bytes] = []
        self.now = Stretch(bounds.first, bounds.begin, end=bounds.begin)
        self.ended = False

    def flush(self) -> Stretch:
        """What was gathered, and begin anew."""
        done = self.now
        done.nodes = list(subtrees(done.first, self._leaves))
        done.events.sort(key=lambda event: event.seq)
        self._leaves.clear()
        self.now = Stretch(done.first + done.count, done.end, end=done.end)
        return done

    def take(self, lines: list[bytes], whole: bytes) -> Iterator[Stretch]:
        """Whole lines, without their newlines, however many, and the piece they stand in; full stretches come out."""
        at = 0
        while at < len(lines) and not self.ended:
            now = self.now
            size = now.first + now.count
            due = self._due(size)
            room = len(lines) - at if due is None else min(len(lines) - at, due - size)
            if room == len(lines):
                yield from self._some(lines, whole)
            else:
                yield from self._some(lines[at : at + room], b"")
            at += room
            full = self.now.count >= _MAX_LINES or len(self.now.events) >= _MAX_EVENTS
            if not self.ended and (full or due == size + room):
                yield self.flush()

    def _some(self, lines: list[bytes], whole: bytes) -> Iterator[Stretch]:
        """Lines between which no checkpoint is due. `whole`: the same in one piece, or nothing."""
        seq = self.now.first + self.now.count
        taken = self._shapes.take(lines, seq, whole) if self._shapes is not None and seq else None
        if taken is None:
            rows = check_batch(lines, seq) if seq else None
            if rows is not None:
                if self._shapes is not None:
                    self._shapes.learn(rows, lines)
                yield from self._rows(lines, list(enumerate(rows)))
                return
            unknown: Sequence[int] = range(len(lines))
        else:
            unknown = taken.unknown
        try:
            parsed = [(at, self._parse(lines[at], seq + at, at)) for at in unknown]
        except _Bad as bad:
            # What is known of the lines before it only; this happens once.
            good = lines[: bad.at]
            rows_before = [(at, self._parse(line, seq + at, at)) for at, line in enumerate(good)]
            yield from self._rows(good, rows_before)
            self.now.bad, self.ended = bad.reason, True
            yield self.flush()
            return
        if self._shapes is not None:
            self._shapes.learn((row for _, row in parsed), (lines[at] for at in unknown))
        if taken is None:
            yield from self._rows(lines, parsed)
            return
        now = self.now
        now.kinds.update(taken.kinds)
        now.opened += taken.opened
        now.closed += taken.closed
        known = [*parsed, *taken.uncertain]
        known.sort(key=lambda item: item[0])
        yield from self._rows(lines, known, taken.references, taken.last_kind)

    def _parse(self, line: bytes, seq: int, at: int) -> dict[str, Any]:
        """The whole object, or what stands for an elided one."""
        leaf = elided_leaf(line) if seq else None
        if leaf is not None:
            return {"kind": "elided", "leaf": leaf}
        try:
            return check_record(line, seq)
        except LedgerFormatError as error:
            raise _Bad(at, error.reason) from error

    def _rows(
        self,
        lines: list[bytes],
        rows: list[tuple[int, dict[str, Any]]],
        references: Sequence[tuple[int, dict[str, Any]]] = (),
        last_kind: str = "",
    ) -> Iterator[Stretch]:
        """Take good lines. `rows`: (place, what is known) of those of which something has to be looked at."""
        leaves = leaf_hashes(lines)
        ends = list(accumulate(map(len, lines), initial=self.now.end))  # without newlines: `at` of them are missing
        seq, done = self.now.first + self.now.count, 0
        for at, row in rows:
            if row["kind"] == "recovery":
                self._advance(leaves[done:at], ends[at] + at)
                yield self.flush()
                done = at
            elif row["kind"] == "elided" and len(row) == 2:
                leaves[at] = row["leaf"]
            self._look(lines[at], leaves[at], seq + at, ends[at] + at, row)
        for at, reference in references:
            self._blobs(seq + at, ends[at] + at, reference)
        self._advance(leaves[done:], ends[-1] + len(lines))
        now = self.now
        now.last_kind = rows[-1][1]["kind"] if rows and rows[-1][0] == len(lines) - 1 else last_kind or now.last_kind

    def _advance(self, leaves: list[bytes], end: int) -> None:
        self._leaves += leaves
        self.now.count += len(leaves)
        self.now.end = end

    def _look(self, line: bytes, leaf: bytes, seq: int, byte: int, row: dict[str, Any]) -> None:
        now, kind = self.now, row["kind"]
        if len(row) == 2 and kind == "elided":
            now.elided += 1
            now.kinds[kind] += 1
            return
        if kind in _WHOLE:
            now.events.append(RecordEvent(seq, byte, row))
        if kind in WATCHED_KINDS and (names := classify(row)):
            now.events.append(ClassEvent(seq, names, leaf))
        if "v" not in row:  # of a line that was not parsed the rest is known already
            return
        now.kinds[kind] += 1
        if kind == "action.intent":
            now.opened.append(seq)
        elif kind == "action.result" and type(of := row.get("of")) is int and of < seq:
            now.closed.append(of)
        if b'"blob":' in line and kind not in NAMES_THE_GONE:
            self._blobs(seq, byte, row)
        if self._options.schema:
            self._schema(seq, byte, row)

    def _blobs(self, seq: int, byte: int, value: Any) -> None:
        for reference in references(value):
            self.now.blobs += 1
            wrong = check_blob(self._options.folder, reference)
            if wrong is not None or reference["blob"] in self._options.redacted:
                self.now.events.append(BlobEvent(seq, byte, reference["blob"], wrong))

    def _schema(self, seq: int, byte: int, row: dict[str, Any]) -> None:
        from deskcert_schema.validate import check

        for problem in check("record", row):
            where = f"{problem.path}: " if problem.path else ""
            self.now.events.append(SchemaEvent(seq, byte, f"does not fit its schema: {where}{problem.message}"))


def _lines(file: BinaryIO, bounds: Bounds) -> Iterator[tuple[list[bytes], bytes, str | None]]:
    """Complete lines in batches, without newlines and as they stand, and in the end what is wrong with what is left."""
    left = bounds.end - bounds.begin if bounds.end is not None else None
    while piece := file.read(_CHUNK if left is None else min(_CHUNK, left)):
        if piece[-1] != _NEWLINE:
            piece += file.readline(MAX_LINE_BYTES + 2)
        if left is not None:
            left -= len(piece)
        lines = piece.split(b"\n")
        rest = lines.pop()
        if rest:
            piece = piece[: -len(rest)]
        if lines:
            yield lines, piece, None
        if rest:
            long = len(rest) > MAX_LINE_BYTES
            yield [], b"", "a line that is too long" if long else "the last line is not complete"
            return
