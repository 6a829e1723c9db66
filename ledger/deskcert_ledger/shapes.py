r"""Lines that look like one that was checked: recognised without being parsed, a batch at a time.

Records of a kind differ in their values, seldom in their form. From a line that passed the full check a pattern is made
that keeps every key, bracket and comma as it stands and leaves open what is between: integers below 10^15 in their one
spelling, strings without quote, backslash, control character and anything beyond ASCII, true, false, null. A line that
matches is therefore in the strict subset, in its one spelling and with unique keys, because the first one was. The
pattern says nothing about other lines: those are checked in full.

What verification reads of such a line is its kind, and of a result `of` and `delivery`. Lines that name blobs, and
those of kinds that are looked at closely, are never taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from deskcert_ledger.classes import UNCERTAIN
from deskcert_ledger.line import MAX_LINE_BYTES, Json
from deskcert_schema.disposition import Delivery

__all__ = ["Checked", "Shapes", "Watched"]

_CAPTURED = ("of", "delivery")
_RESULT, _INTENT = b"action.result", b"action.intent"
_USUAL = frozenset(delivery.value.encode() for delivery in Delivery if delivery.value not in UNCERTAIN)
_MAX_SHAPES = 12
_MAX_PATTERN = 4096
_START_CREDIT = 5000
_LOOK, _COMPILE, _HIT = 10, 2000, 2
"""Looking at a line costs about ten times, making the pattern some thousand times what a hit saves."""
_INT, _NEGATIVE = r"(?:[1-9][0-9]{0,14}+|0)", r"-[1-9][0-9]{0,14}+"
_TIME = r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{6}Z"
_HEAD = rf'^\{{"v":1,"seq":({_INT}),"t":"{_TIME}","m":{_INT},"w":"[^"]++","kind":"([^"]++)"'
_CONTROL = bytes([*range(10), *range(11, 32), 127])
_MAX_MISSES = 64

type Watched = tuple[int, dict[str, Any]]
"""Place in the batch, and what is known of the record."""


class Checked(NamedTuple):
    """A batch of good lines."""

    kinds: list[str]
    watched: list[Watched]
    """Records that are asked for, or name a blob."""
    opened: Sequence[int] = ()
    """Intents that are not among the watched."""
    closed: Sequence[int] = ()
    """Intents, all of them earlier, that a record has the result of."""


class Shapes:
    """The forms of one verification, as one pattern that takes a whole batch at once."""

    def __init__(self, closely: frozenset[str]) -> None:
        """`closely`: kinds of which the whole object is needed."""
        self._closely = frozenset(kind.encode() for kind in closely) | {b"run.start", b"run.end"}
        self._shapes: dict[str, bool] = {}
        """Form -> was it seen twice."""
        self._pattern: re.Pattern[bytes] | None = None
        self._stale = False
        self._credit = _START_CREDIT
        self._misses = self._skip = 0

    def take(self, lines: list[bytes], seq: int) -> Checked | None:
        """What is to be known of `lines`, numbered from `seq`, if all of them have known forms."""
        if self._stale and self._credit >= _COMPILE:
            self._compile()
        if self._pattern is None or self._skip > 0:
            self._skip -= 1
            return None
        whole = b"\n".join(lines) + b"\n"
        if len(whole) - len(lines) > MAX_LINE_BYTES and max(map(len, lines)) > MAX_LINE_BYTES:
            return None
        as_lines = whole.count(b"\n") == len(lines) and _is_plain(whole)
        found = self._pattern.findall(whole) if as_lines else []
        kinds = [row[1] for row in found]
        known = set(kinds)
        if (
            len(found) != len(lines)
            or not self._closely.isdisjoint(known)
            or [int(row[0]) for row in found] != list(range(seq, seq + len(lines)))
        ):
            self._missed()
            return None
        opened = [seq + index for index, kind in enumerate(kinds) if kind == _INTENT] if _INTENT in known else []
        watched: list[Watched] = []
        closed: list[int] = []
        if _RESULT in known:
            for index, kind in enumerate(kinds):
                if kind != _RESULT:
                    continue
                captured = [text for text in found[index][2:] if text]
                if len(captured) != 2 or (of := int(captured[0])) >= seq + index:
                    self._missed()
                    return None
                closed.append(of)
                if captured[1] not in _USUAL:
                    row = {"kind": "action.result", "of": of, "delivery": captured[1].decode()}
                    watched.append((index, row))
        self._misses = 0
        self._credit = min(self._credit + len(lines) * _HIT, 20 * _START_CREDIT)
        names = {kind: kind.decode() for kind in known}
        return Checked([names[kind] for kind in kinds], watched, opened, closed)

    def _missed(self) -> None:
        """Where most batches hold a line of an unknown form, trying costs more than it saves: try more seldom."""
        self._misses = min(self._misses + 1, _MAX_MISSES)
        self._skip = self._misses // 4

    def learn(self, line: bytes, row: dict[str, Any]) -> None:
        """`line` passed the full check and is `row`: its form is known when it is seen the second time."""
        if self._credit < _LOOK or b'"blob"' in line or len(self._shapes) > 1000 or not _is_plain(line):
            return
        if row["kind"].encode() in self._closely:
            return
        self._credit -= _LOOK
        body = {name: value for name, value in row.items() if name not in ("v", "seq", "t", "m", "w", "kind")}
        form = _members(body, result=row["kind"] == "action.result")
        if len(form) > _MAX_PATTERN or self._shapes.get(form) is True:
            return
        if form not in self._shapes:
            self._shapes[form] = False
        elif sum(self._shapes.values()) < _MAX_SHAPES:
            self._shapes[form] = self._stale = True

    def _compile(self) -> None:
        self._credit -= _COMPILE
        self._stale = False
        known = [form for form, twice in self._shapes.items() if twice]
        # Forms of results first: the same form of another kind takes nothing away, the other way round it would.
        forms = "|".join(sorted(known, key=lambda form: f"({_INT})" not in form))
        self._pattern = re.compile(rf"{_HEAD}(?:{forms})\n".encode("ascii"), re.MULTILINE)


def _is_plain(data: bytes) -> bool:
    """Nothing but printable ASCII and newlines, and no backslash: a string in it ends at the next quote."""
    return data.isascii() and b"\\" not in data and len(data.translate(None, _CONTROL)) == len(data)


def _members(body: dict[str, Any], *, result: bool) -> str:
    """The members of a record after its kind, each with the comma before it, and the closing brace.

    Of a result that has an integer `of` and a text `delivery` these are captured; another kind of result is not known
    by its form.
    """
    parts = []
    capture = result and type(body.get("of")) is int and body["of"] >= 0 and type(body.get("delivery")) is str
    for name, value in body.items():
        form = _form(value)
        if capture and name in _CAPTURED:
            form = f"({_INT})" if name == "of" else '"([^"]++)"'
        parts.append(f",{re.escape(json.dumps(name))}:{form}")
    return "".join(parts) + r"\}"


def _form(value: Json) -> str:
    if value is None or isinstance(value, bool):
        return "(?:true|false|null)"
    if isinstance(value, int):
        return _NEGATIVE if value < 0 else _INT
    if isinstance(value, str):
        return '"[^"]*+"'  # over the end of a line too; then there are fewer matches than lines
    if isinstance(value, list):
        return r"\[" + ",".join(map(_form, value)) + r"\]"
    members = (f"{re.escape(json.dumps(name))}:{_form(item)}" for name, item in value.items())
    return r"\{" + ",".join(members) + r"\}"
