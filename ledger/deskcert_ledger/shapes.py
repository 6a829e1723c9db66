"""Lines that look like ones that were checked: recognised without being parsed, a batch at a time.

`Forms` holds what is known, `take` applies it: of each line it says either what verification has to know of it, or that
it is unknown. Unknown lines are for the full check; nothing is ever refused here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

from deskcert_ledger.classes import UNCERTAIN
from deskcert_ledger.forms import RESULT, Forms
from deskcert_ledger.line import MARK, MAX_LINE_BYTES, loads
from deskcert_schema.disposition import Delivery

__all__ = ["Shapes", "Taken"]

_INTENT, _RESULT = b"action.intent", RESULT.encode()
_USUAL = frozenset({b"", *(item.value.encode() for item in Delivery if item.value not in UNCERTAIN)})
_CONTROL = tuple(code for code in range(32) if code != 0x0A)
_MARK = MARK.encode()
_FIRST, _ALWAYS, _SHARE, _SLOW = 128, 256, 24, 300
"""Learned before the first expression; learned in any case, and then one of so many; parsed before another one."""


@dataclass(slots=True)
class Taken:
    """What is to be known of a batch of lines, but for those at the places `unknown`."""

    unknown: list[int]
    """In order."""
    kinds: Counter[str] = field(default_factory=Counter)
    opened: list[int] = field(default_factory=list)
    """Numbers of intents."""
    closed: list[int] = field(default_factory=list)
    """Intents, all of them earlier than the result that speaks of them."""
    uncertain: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """(place in the batch, what is known) of results without a known delivery."""
    references: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """(place in the batch, what may be a reference to a blob)."""
    last_kind: str = ""
    """Of the last line, if that is not unknown."""


class Shapes:
    """The forms of one verification, as one expression that takes a whole batch at once."""

    def __init__(self, closely: frozenset[str]) -> None:
        """`closely`: kinds of which the whole object is needed; they are never known."""
        self._closely = closely | {"run.start", "run.end"}
        self._forms = Forms()
        self._pattern: Any = None
        self._columns: dict[str, list[int]] = {}
        self._fresh = self._slow = self._lines = 0
        self._wait = _SLOW

    def take(self, lines: Sequence[bytes], seq: int, whole: bytes = b"") -> Taken | None:
        """What is known of `lines`, numbered from `seq`, none of which holds a newline; None for nothing at all.

        `whole`: the same lines with their newlines, where the caller has them in one piece.
        """
        self._lines += len(lines)
        if self._fresh and self._forms.learned >= _FIRST and (self._pattern is None or self._slow >= self._wait):
            self._compile()
        if self._pattern is None:
            return None
        whole = whole or b"\n".join(lines) + b"\n"
        if not _is_utf8(whole):
            return None
        found = self._pattern.findall(whole)
        if len(found) != len(lines):  # a string over the end of a line, or a newline within one
            return None
        columns = list(zip(*found, strict=True))
        taken = Taken(self._unknown(whole, lines, columns[0], seq))
        self._read(taken, columns, seq)
        return taken

    def _unknown(self, whole: bytes, lines: Sequence[bytes], numbers: Sequence[bytes], seq: int) -> list[int]:
        """Places of lines of another form or number, and of those that a form says too little about."""
        count = len(lines)
        unknown: set[int] = set()
        if b" ".join(numbers) + b" " != b"%d " * count % tuple(range(seq, seq + count)):
            unknown.update(at for at, number in enumerate(numbers) if number != b"%d" % (seq + at))
        if b"\\" in whole:
            unknown.update(at for at, line in enumerate(lines) if b"\\" in line)
        if len(whole) > MAX_LINE_BYTES:
            unknown.update(at for at, line in enumerate(lines) if len(line) > MAX_LINE_BYTES)
        if not whole.isascii() and whole.find(_MARK[0]) >= 0 and _MARK in whole:
            unknown.update(at for at, line in enumerate(lines) if _MARK in line)
        # One search for each byte: `memchr` takes them all in less time than one look at every byte.
        for code in _CONTROL:
            if whole.find(code) >= 0:
                unknown.update(at for at, line in enumerate(lines) if code in line)
        return sorted(unknown)

    def _read(self, taken: Taken, columns: Sequence[Sequence[bytes]], seq: int) -> None:
        unknown = frozenset(taken.unknown)
        last, numbers = len(columns[0]) - 1, range(seq, seq + len(columns[0]))
        for column in map(columns.__getitem__, self._columns["k"]):
            count = len(column) - column.count(b"")
            if count == 0:
                continue
            name = next(filter(None, column))
            if unknown:
                count -= sum(1 for at in unknown if column[at])
            taken.kinds[name.decode()] += count
            if name == _INTENT:
                taken.opened += compress(numbers, _known(column, unknown))
            if column[last] and last not in unknown:
                taken.last_kind = name.decode()
        for column in map(columns.__getitem__, self._columns["o"]):
            known = _known(column, unknown)
            pairs = zip(map(int, filter(None, known)), compress(numbers, known), strict=True)
            taken.closed += [of for of, number in pairs if of < number]
        for column in map(columns.__getitem__, self._columns["d"]):
            if not _USUAL.issuperset(column):
                for at in _filled(column, unknown):
                    if column[at] not in _USUAL:
                        taken.uncertain.append((at, {"kind": RESULT, "delivery": column[at].decode()}))
        for column in map(columns.__getitem__, self._columns["b"]):
            taken.references += [(at, loads(column[at])) for at in _filled(column, unknown)]

    def learn(self, rows: Iterable[dict[str, Any]], lines: Iterable[bytes]) -> None:
        """`lines` passed the full check and are `rows`."""
        for row, line in zip(rows, lines, strict=True):
            self._slow += 1
            if self._forms.learned >= _ALWAYS + self._lines // _SHARE or row["kind"] in self._closely:
                continue
            if b"\\" not in line and _MARK not in line:
                self._forms.learn(row)
                self._fresh += 1

    def _compile(self) -> None:
        if self._pattern is not None:
            self._wait *= 2
        self._fresh = self._slow = 0
        self._pattern = self._forms.pattern()
        if self._pattern is not None:
            names = sorted(self._pattern.groupindex.items(), key=lambda item: item[1])
            self._columns = {letter: [at - 1 for name, at in names if name[0] == letter] for letter in "kodb"}


def _known(column: Sequence[bytes], unknown: frozenset[int]) -> Sequence[bytes]:
    """The column without what stands in unknown lines."""
    return [b"" if at in unknown else text for at, text in enumerate(column)] if unknown else column


def _filled(column: Sequence[bytes], unknown: frozenset[int]) -> list[int]:
    """Places of the lines that have this."""
    return [at for at, text in enumerate(column) if text and at not in unknown]


def _is_utf8(whole: bytes) -> bool:
    if whole.isascii():
        return True
    try:
        whole.decode()
    except UnicodeDecodeError:
        return False
    return True
