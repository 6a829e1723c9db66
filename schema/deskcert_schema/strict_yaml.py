"""YAML that reads the same to everybody, or not at all.

A policy decides what an agent may do, so a file that two readers could read differently is refused, with the line:
duplicate keys, anchors, aliases, merge keys, tags, directives, several documents, tabs in the indentation, numbers
that only some YAML versions take for numbers, an empty file. What is left is JSON with comments:

- `true` and `false` are the only booleans, `null`, `~` and nothing at all the only nulls; `no`, `off`, `Yes` are text;
- a number is `12`, `-3` or `0.5`; `1e3`, `0x1F`, `007`, `1_000`, `.5` must be quoted when they are meant as text;
- a key is text.

Built on PyYAML's events, so no constructor ever runs. Source of the list: duplicate keys that let an allow replace a
deny, and bare words that became booleans, in four policy loaders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from deskcert_schema.errors import ConfigError
from deskcert_schema.problems import Path, Position, Positions, Problem, path_text, shorten

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_VALUES", "Loaded", "load"]

MAX_BYTES: Final = 1024 * 1024
"""Of the text, encoded as UTF-8."""
MAX_DEPTH: Final = 32
MAX_VALUES: Final = 50_000
"""Keys and values of one file: a megabyte of `[],` takes a reader a quarter of a minute, and says nothing."""
MAX_INT: Final = 2**53
"""Exclusive: the record holds no integer from here on, and most JSON readers lose digits."""
_MAX_PROBLEMS: Final = 20

_INT: Final = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+", re.ASCII)
_DISPUTED_NUMBER: Final = re.compile(
    r"""[-+]?(?: [0-9][0-9_]* (?:\.[0-9_]*)? (?:[eE][-+]?[0-9]+)?   # 007  1_000  1.  1e3  1.5e-3
               | \.[0-9_]+ (?:[eE][-+]?[0-9]+)?                     # .5
               | 0[xX][0-9a-fA-F_]+ | 0[oO][0-7_]+ | 0[bB][01_]+    # 0x1F
               | \.(?:inf|Inf|INF|nan|NaN|NAN) )""",
    re.ASCII | re.VERBOSE,
)
_TAB_INDENT: Final = re.compile(r"^ *\t", re.MULTILINE)
_DISPUTED_BREAK: Final = re.compile("[\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file's value (dict, list, str, int, float, bool, None) and where each part of it stands."""

    name: str
    value: Any
    positions: Positions


def load(text: str, *, name: str) -> Loaded:
    """Read one YAML document. `name` is the file's, for messages.

    Raises `ConfigError` whose problems each say file, line, column and what to write instead; nothing else.
    """
    _refuse_text(text, name)
    reader = _Reader()
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            reader.take(event)
            if len(reader.problems) >= _MAX_PROBLEMS:  # the rest would say the same again
                break
    except _TooMuch as exc:
        raise _error(name, exc.position, f"more than {exc}; nothing we read needs that") from None
    except yaml.MarkedYAMLError as exc:
        raise _error(name, _position(exc.problem_mark or exc.context_mark), _syntax(exc)) from None
    except yaml.reader.ReaderError as exc:
        position = _place(text, exc.position if isinstance(exc.position, int) else 0)
        raise _error(name, position, f"the character {_code_point(exc.character)} is not allowed in YAML") from None
    except (yaml.YAMLError, ValueError, OverflowError) as exc:
        # An escape beyond U+10FFFF or an over-long number inside a directive: PyYAML lets the conversion's error out.
        message = (
            f"not readable as YAML below this place; is there an escape that names no character? ({shorten(str(exc))})"
        )
        raise _error(name, reader.last, message) from None
    if reader.problems:
        raise ConfigError([p.sentence(name) for p in reader.problems[:_MAX_PROBLEMS]])
    if reader.empty:
        raise _error(
            name,
            Position(1, 1),
            "the file is empty, and an empty file decides nothing; write at least version: 1 and what it is about",
        )
    return Loaded(name, reader.value, Positions(reader.values, reader.keys))


class _TooMuch(Exception):
    def __init__(self, position: Position, what: str) -> None:
        self.position = position
        super().__init__(what)


@dataclass(slots=True)
class _Open:
    """A mapping or sequence whose end has not been read yet."""

    path: Path
    value: dict[str, Any] | list[Any]
    key: str | None = None
    ignored: int = 0
    """Counts keys that cannot be kept (a duplicate, a number), so that their values are still read and checked."""


@dataclass(slots=True)
class _Reader:
    """Takes PyYAML's events one by one; no recursion, so no file can exhaust the stack."""

    value: Any = None
    empty: bool = True
    documents: int = 0
    count: int = 0
    problems: list[Problem] = field(default_factory=list)
    values: dict[Path, Position] = field(default_factory=dict)
    keys: dict[Path, Position] = field(default_factory=dict)
    stack: list[_Open] = field(default_factory=list)
    last: Position = field(default_factory=lambda: Position(1, 1))

    def take(self, event: yaml.Event) -> None:
        self.last = _position(event.start_mark)
        self.count += isinstance(event, yaml.NodeEvent)
        if self.count > MAX_VALUES:
            raise _TooMuch(self.last, f"{MAX_VALUES} keys and values")
        match event:
            case yaml.DocumentStartEvent():
                self._document(event)
            case yaml.AliasEvent():
                self._problem(f"an alias (*{event.anchor}) is not allowed; write the value out")
                self._scalar(None)
            case yaml.ScalarEvent():
                self._refuse_decoration(event)
                self._scalar(event)
            case yaml.MappingStartEvent():
                self._refuse_decoration(event)
                self._open({})
            case yaml.SequenceStartEvent():
                self._refuse_decoration(event)
                self._open([])
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self.stack.pop()
            case _:
                pass

    def _document(self, event: yaml.DocumentStartEvent) -> None:
        self.documents += 1
        if self.documents == 2:
            self._problem("a second document ('---') starts here; a file holds exactly one")
        if event.version or event.tags:
            self._problem("a directive (%YAML, %TAG) is not allowed; remove it")

    def _refuse_decoration(self, event: yaml.NodeEvent) -> None:
        if event.anchor is not None:
            self._problem(f"an anchor (&{event.anchor}) is not allowed; write the value out where it is needed")
        if (tag := getattr(event, "tag", None)) is not None:
            self._problem(f"a tag ({shorten(str(tag))}) is not allowed; remove it")

    def _open(self, value: dict[str, Any] | list[Any]) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise _TooMuch(self.last, f"{MAX_DEPTH} levels deep")
        if self._wants_key():
            self._problem("a key must be text, not a list or a mapping")
            self._set_key(None)
            self.stack.append(_Open(("",), value))
            return
        self.stack.append(_Open(self._place(value), value))

    def _scalar(self, event: yaml.ScalarEvent | None) -> None:
        if self._wants_key():
            self._set_key(event)
        else:
            self._place(self._resolve(event) if event is not None else None)

    def _wants_key(self) -> bool:
        top = self.stack[-1] if self.stack else None
        return top is not None and isinstance(top.value, dict) and top.key is None

    def _set_key(self, event: yaml.ScalarEvent | None) -> None:
        top = self.stack[-1]
        assert isinstance(top.value, dict)
        top.ignored += 1
        top.key = f"\0{top.ignored}"  # kept only if the key turns out to be good
        if event is None:
            return
        key = self._resolve(event)
        path = (*top.path, event.value)
        if event.implicit[0] and event.value == "<<":
            self._problem("a merge key (<<) is not allowed; write the keys out", path[:-1])
        elif not isinstance(key, str):
            self._problem(f"a key must be text; write {event.value!r} in quotes", path[:-1])
        elif key in top.value:
            first = self.keys.get(path)
            where = f" (first on line {first.line})" if first else ""
            self._problem(f"the key {shorten(key)!r} stands here a second time{where}; keep one of them", path[:-1])
        else:
            top.key = key
            self.keys[path] = self.last

    def _place(self, value: Any) -> Path:
        """Put a value where it belongs; its path."""
        if not self.stack:
            self.empty = self.empty and value is None
            if self.documents <= 1:
                self.value = value
                self.values[()] = self.last
            return ()
        top = self.stack[-1]
        if isinstance(top.value, list):
            path: Path = (*top.path, len(top.value))
            top.value.append(value)
        else:
            assert top.key is not None
            path = (*top.path, top.key)
            top.value[top.key] = value
            top.key = None
        self.values[path] = self.last
        return path

    def _resolve(self, event: yaml.ScalarEvent) -> Any:
        text = event.value
        if any("\ud800" <= c <= "\udfff" for c in text):
            self._problem("half of a surrogate pair is no text; remove the escape")
            return ""
        if not event.implicit[0]:  # quoted, or a block
            return text
        match text:
            case "true":
                return True
            case "false":
                return False
            case "" | "null" | "~":
                return None
            case _:
                return self._number(text)

    def _number(self, text: str) -> int | float | str:
        if _INT.fullmatch(text):
            if len(text) > 17 or abs(int(text)) >= MAX_INT:
                self._problem(f"the number {shorten(text)} is too large (2^53 and more); write it in quotes as text")
                return 0
            return int(text)
        if _DECIMAL.fullmatch(text) and len(text) <= 40:
            return float(text)
        if _DISPUTED_NUMBER.fullmatch(text):
            self._problem(f"{shorten(text)} is a number to some readers and text to others; quote it, or write it out")
            return 0
        return text

    def _problem(self, message: str, path: Path | None = None) -> None:
        shown = "" if path is None else path_text(tuple(p for p in path if not str(p).startswith("\0")))
        self.problems.append(Problem(self.last.line, self.last.column, shown, message))


def _refuse_text(text: str, name: str) -> None:
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise ConfigError(f"{name}:1:1: larger than 1 MiB; nothing we read needs that")
    if found := _TAB_INDENT.search(text):
        position = _place(text, found.end() - 1)
        raise _error(name, position, "a tab in the indentation; use spaces")
    if found := _DISPUTED_BREAK.search(text):
        message = f"the character {_code_point(found[0])} breaks a line for some readers only; write it as an escape"
        raise _error(name, _place(text, found.start()), message)


def _error(name: str, position: Position, message: str) -> ConfigError:
    return ConfigError(Problem(position.line, position.column, "", message).sentence(name))


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1) if mark is not None else Position(1, 1)


def _place(text: str, index: int) -> Position:
    before = text[:index].replace("\r\n", "\n").replace("\r", "\n")
    return Position(before.count("\n") + 1, len(before) - before.rfind("\n"))


def _code_point(character: object) -> str:
    number = ord(character) if isinstance(character, str) and len(character) == 1 else character
    return f"U+{number:04X}" if isinstance(number, int) else "here"


_HINTS: Final = (
    ("mapping values are not allowed", "a second ':' in this value; put the value in quotes"),
    (
        "cannot start any token",
        "this character cannot start a value; put the value in quotes, and use spaces, not tabs",
    ),
    ("could not find expected ':'", "a key without ':' (or a text that should be in quotes)"),
    ("found unexpected end of stream", "the file ends inside a quoted text, a list or a mapping"),
    ("expected the node content", "a value is missing here"),
    ("did not find expected", "something stands here that does not fit the lines above; check the indentation"),
    ("but found", "something stands here that does not fit the lines above; check indentation, brackets and commas"),
)


def _syntax(exc: yaml.MarkedYAMLError) -> str:
    said = " ".join(str(exc.problem or exc.context or "not readable").split())
    return next((f"{hint} (YAML: {said})" for sign, hint in _HINTS if sign in said), f"not readable as YAML: {said}")
