r"""The forms that records of a kind have, learned from lines that passed the full check, as one regular expression.

Records of a kind differ in their values, seldom in their form. What was learned is a tree: of an object the sequences
of keys that were seen, of each place the sorts of value that stood there. The expression keeps every key, bracket and
comma, and leaves open what is between: integers below 10^15 in their one spelling, strings without a quote, true,
false, null, and lists of what was seen in them: of the lengths that were seen where these are few, else of any. A line
that matches is therefore in the strict subset and in its one spelling with unique keys, because the lines it was put
together from were, provided that the caller makes sure that it holds no backslash and no control character, is UTF-8,
and holds no string that is marked as escaped. Nesting cannot become deeper than in the lines that were learned: each
place has the depth it was seen at.

What verification reads of such a line is captured: the number, the kind, of a result `of` and `delivery`, and each
reference to a blob.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

__all__ = ["INT", "RESULT", "Forms"]

RESULT: Final = "action.result"
_POSITIVE: Final = r"[1-9][0-9]{0,14}+"
INT: Final = rf"(?:{_POSITIVE}|0)"
_NEGATIVE: Final = r"-[1-9][0-9]{0,14}+"
_STRING: Final = '"[^"]*+"'  # over the end of a line too; then there are fewer matches than lines
_TIME: Final = r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{6}Z"
_HEAD: Final = rf'\{{"v":1,"seq":({_POSITIVE}),"t":"{_TIME}","m":{_POSITIVE},"w":"[^"]++","kind":"'
_REFERENCE: Final = frozenset({"blob", "bytes"})
_MAX_PATTERN: Final = 16_000
"""Making an expression takes a microsecond or more for each of its characters."""
_MAX_CAPTURES: Final = 40
_MAX_LENGTHS: Final = 2
_MAX_WRITTEN: Final = 800
"""Of lists at one place: with more lengths, or characters for all items, they are a repetition, which is slower."""
_HEADER: Final = ("v", "seq", "t", "m", "w", "kind")


class _Sort(Enum):
    STRING = _STRING
    POSITIVE = _POSITIVE
    ZERO = "0"
    NEGATIVE = _NEGATIVE
    TRUE = "true"
    FALSE = "false"
    NULL = "null"
    OBJECT = "object"
    LIST = "list"
    BLOB = "blob"


_WORDS: Final = {True: _Sort.TRUE, False: _Sort.FALSE, None: _Sort.NULL}


class _Captures:
    """Names of groups in one expression."""

    def __init__(self) -> None:
        self.count = 0

    def group(self, letter: str, inside: str) -> str:
        self.count += 1
        return f"(?P<{letter}{self.count}>{inside})"


class _Place:
    """What was seen at one place of a record."""

    __slots__ = ("items", "lengths", "members", "seen")

    def __init__(self) -> None:
        self.seen: Counter[_Sort] = Counter()
        self.items: _Place | None = None
        self.lengths: Counter[int] = Counter()
        self.members: _Members | None = None

    def add(self, value: Any) -> None:
        match value:
            case None | bool():
                self.seen[_WORDS[value]] += 1
            case int():
                self.seen[_Sort.NEGATIVE if value < 0 else _Sort.POSITIVE if value else _Sort.ZERO] += 1
            case str():
                self.seen[_Sort.STRING] += 1
            case list():
                self.seen[_Sort.LIST] += 1
                self.lengths[len(value)] += 1
                self.items = self.items or _Place()
                for item in value:
                    self.items.add(item)
            case dict() if value.keys() == _REFERENCE:
                self.seen[_Sort.BLOB] += 1
            case _:
                self.seen[_Sort.OBJECT] += 1
                self.members = self.members or _Members()
                self.members.add(value)

    def pattern(self, least: int, captures: _Captures) -> str:
        """Of what was seen `least` times or more, most frequent first; "" for nothing."""
        parts = [self._of(sort, least, captures) for sort, count in self.seen.most_common() if count >= least]
        parts = [part for part in parts if part]
        return parts[0] if len(parts) == 1 and "|" not in parts[0] else f"(?:{'|'.join(parts)})" if parts else ""

    def _of(self, sort: _Sort, least: int, captures: _Captures) -> str:
        match sort:
            case _Sort.OBJECT:
                inner = self.members.pattern(least, captures) if self.members else ""
                return rf"\{{{inner}" if inner else ""
            case _Sort.LIST:
                return rf"\[{self._list(least, captures)}\]"
            case _Sort.BLOB:
                either = rf'"blob":{_STRING},"bytes":{INT}|"bytes":{INT},"blob":{_STRING}'
                return captures.group("b", rf"\{{(?:{either})\}}")
            case _:
                return str(sort.value)

    def _list(self, least: int, captures: _Captures) -> str:
        """What stands between the brackets."""
        inner = self.items.pattern(least, captures) if self.items else ""
        lengths = [length for length, count in self.lengths.most_common() if count >= least]
        if not inner or len(lengths) > _MAX_LENGTHS or sum(lengths) * len(inner) > _MAX_WRITTEN:
            return f"(?:{inner}(?:,{inner})*+)?+" if inner else ""
        written = [",".join([inner] * length) for length in lengths]
        return written[0] if len(written) == 1 else f"(?:{'|'.join(written)})"


class _Members:
    """The sequences of keys that objects at one place had, as a tree: every way from here to an end was seen."""

    __slots__ = ("ends", "next", "seen")

    def __init__(self) -> None:
        self.next: dict[str, tuple[_Place, _Members]] = {}
        self.ends = self.seen = 0

    def add(self, members: Mapping[str, Any]) -> None:
        at = self
        at.seen += 1
        for name, value in members.items():
            place, after = at.next.setdefault(name, (_Place(), _Members()))
            place.add(value)
            after.seen += 1
            at = after
        at.ends += 1

    def pattern(self, least: int, captures: _Captures, *, comma: str = "", result: bool = False) -> str:
        """The rest of an object, its closing brace included; "" where nothing was seen `least` times."""
        parts: list[tuple[int, str]] = []
        for name, (place, after) in self.next.items():
            if after.seen < least:
                continue
            value = _captured(name, captures) if result and name in ("of", "delivery") else ""
            value = value or place.pattern(least, captures)
            rest = after.pattern(least, captures, comma=",", result=result)
            if value and rest:
                parts.append((after.seen, f'{comma}"{re.escape(name)}":{value}{rest}'))
        if self.ends >= least:
            parts.append((self.ends, r"\}"))
        texts = [text for _, text in sorted(parts, key=lambda part: -part[0])]
        return texts[0] if len(texts) == 1 else f"(?:{'|'.join(texts)})" if texts else ""


def _captured(name: str, captures: _Captures) -> str:
    return captures.group("o", INT) if name == "of" else '"' + captures.group("d", '[^"]*+') + '"'


class Forms:
    """What was learned in one verification."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Members] = {}
        self.learned = 0

    def learn(self, row: Mapping[str, Any]) -> None:
        """`row` is a whole record of a line that passed the full check."""
        kind = row["kind"]
        if tuple(row)[:6] != _HEADER:
            return
        body = {name: value for name, value in row.items() if name not in _HEADER}
        if kind == RESULT and not (_known_result(body)):
            return
        if any(_names_blob_in_list(value, within=False) for value in body.values()):
            return  # a group within a list gives its last item only
        self.learned += 1
        self._kinds.setdefault(kind, _Members()).add(body)

    def pattern(self) -> re.Pattern[bytes] | None:
        """For `findall` over lines that each end in a newline: a line of another form gives one empty row.

        Groups: the number first; `k<n>` one for each kind; `o<n>` and `d<n>` for `of` and `delivery` of results;
        `b<n>` for references to blobs.
        """
        least = 1 + self.learned // 400
        while self._kinds:
            source, captures = self._source(least)
            if not source:
                return None
            if len(source) <= _MAX_PATTERN and captures <= _MAX_CAPTURES:
                return re.compile(source.encode())
            least *= 2
        return None

    def _source(self, least: int) -> tuple[str, int]:
        captures = _Captures()
        parts: list[str] = []
        for kind, members in sorted(self._kinds.items(), key=lambda item: -item[1].seen):
            name = captures.group("k", re.escape(kind))
            inner = members.pattern(least, captures, comma=",", result=kind == RESULT)
            if inner:
                parts.append(f'{name}"{inner}')
        return (rf"(?:{_HEAD}(?:{'|'.join(parts)})|[^\n]*+)\n" if parts else ""), captures.count


def _known_result(body: Mapping[str, Any]) -> bool:
    """Has it an `of` and a `delivery` as results have them?"""
    of = body.get("of")
    return type(of) is int and of >= 0 and type(body.get("delivery")) is str


def _names_blob_in_list(value: Any, *, within: bool) -> bool:
    match value:
        case dict():
            if within and value.keys() == _REFERENCE:
                return True
            return any(_names_blob_in_list(item, within=within) for item in value.values())
        case list():
            return any(_names_blob_in_list(item, within=True) for item in value)
        case _:
            return False
