"""GraphQL, as far as a lexer reaches: which operations a request holds, their kinds, names and root fields.

Enough to tell a mutation from a query whatever stands around it (comments, strings, fragments first, several
operations and a chosen one, batches, aliases). Source: the GraphQL specification of October 2021, sections 2.1-2.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

__all__ = ["NotGraphql", "Operation", "parse"]

_TOKEN: Final = re.compile(
    r"""[\ufeff\t\ \n\r,]+ | \#[^\n\r]*
      | (?P<block>\"\"\"(?:\\\"\"\"|(?!\"\"\").)*\"\"\") | (?P<string>"(?:[^"\\\n\r]|\\.)*")
      | (?P<name>[_A-Za-z][_0-9A-Za-z]*) | (?P<number>-?[0-9][0-9.eE+-]*)
      | (?P<mark>\.\.\. | [!$&()\[\]{}:=@|])""",
    re.VERBOSE | re.DOTALL,
)
_KINDS: Final = ("query", "mutation", "subscription")
_MAX_TOKENS: Final = 200_000
_OPEN: Final = {"(": ")", "[": "]", "{": "}"}


class NotGraphql(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Operation:
    kind: str
    """`query | mutation | subscription`"""
    name: str | None
    roots: tuple[str, ...]
    """Names of the root fields, not their aliases; fragments resolved."""


@dataclass(slots=True)
class _Selection:
    fields: list[str] = field(default_factory=list)
    spreads: list[str] = field(default_factory=list)


def parse(text: str) -> tuple[Operation, ...]:
    """Every operation of a document. Raises `NotGraphql`."""
    tokens = _Tokens(text)
    operations: list[tuple[str, str | None, _Selection]] = []
    fragments: dict[str, _Selection] = {}
    while (token := tokens.peek()) is not None:
        if token == "{":
            operations.append(("query", None, tokens.selection()))
        elif token in _KINDS:
            operations.append((tokens.next(), *tokens.operation()))
        elif token == "fragment":
            tokens.next()
            name = tokens.name()
            if name in fragments:
                raise NotGraphql(f"the fragment {name} is defined twice")
            tokens.skip_to_selection()
            fragments[name] = tokens.selection()
        else:
            raise NotGraphql(f"{token[:20]!r} begins no definition")
    if not operations:
        raise NotGraphql("no operation")
    return tuple(Operation(kind, name, _roots(selection, fragments)) for kind, name, selection in operations)


def _roots(selection: _Selection, fragments: dict[str, _Selection]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    todo, seen = [selection], set[str]()
    while todo:
        now = todo.pop()
        found |= dict.fromkeys(now.fields)
        for spread in now.spreads:
            if spread not in fragments:
                raise NotGraphql(f"the fragment {spread} is not defined")
            if spread not in seen:
                seen.add(spread)
                todo.append(fragments[spread])
    return tuple(found)


class _Tokens:
    def __init__(self, text: str) -> None:
        self._tokens = list(_lex(text))
        self._at = 0

    def peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def next(self) -> str:
        token = self.peek()
        if token is None:
            raise NotGraphql("it ends too early")
        self._at += 1
        return token

    def name(self) -> str:
        token = self.next()
        if not (token[0] == "_" or token[0].isalpha()):
            raise NotGraphql(f"{token[:20]!r} is no name")
        return token

    def operation(self) -> tuple[str | None, _Selection]:
        token = self.peek()
        name = self.name() if token is not None and (token[0] == "_" or token[0].isalpha()) else None
        self.skip_to_selection()
        return name, self.selection()

    def skip_to_selection(self) -> None:
        """Variables, directives, a type condition: whatever stands before the selection."""
        while (token := self.peek()) != "{":
            if token is None:
                raise NotGraphql("it ends before a selection")
            self._skip_one()

    def selection(self) -> _Selection:
        """`{ … }` with the fields of this level; inline fragments count as this level, deeper ones are skipped."""
        found = _Selection()
        depth = 0
        while True:
            token = self.next()
            if token == "{":
                depth += 1
            elif token == "}":
                depth -= 1
                if depth == 0:
                    return found
            elif token == "...":
                self._spread(found)
            elif token in ("(", "["):
                self._at -= 1
                self._skip_one()
            elif token == "@":
                self.name()
            elif token[0] == "_" or token[0].isalpha():
                found.fields.append(self._field(token))
            else:
                raise NotGraphql(f"{token[:20]!r} stands in a selection")

    def _spread(self, found: _Selection) -> None:
        token = self.peek()
        if token == "on":
            self.next()
            self.name()
        elif token is not None and (token[0] == "_" or token[0].isalpha()):
            found.spreads.append(self.next())
        # What follows an inline fragment is `{` at this level, or directives.

    def _field(self, name: str) -> str:
        """The field's name behind an alias; its arguments, directives and own selection are skipped."""
        if self.peek() == ":":
            self.next()
            name = self.name()
        while (token := self.peek()) in ("(", "@"):
            if token == "@":
                self.next()
                self.name()
            else:
                self._skip_one()
        if self.peek() == "{":
            self._skip_one()
        return name

    def _skip_one(self) -> None:
        """One token, or everything in one pair of brackets."""
        waiting: list[str] = []
        while True:
            token = self.next()
            if token in _OPEN:
                waiting.append(_OPEN[token])
            elif token in (")", "]", "}") and (not waiting or waiting.pop() != token):
                raise NotGraphql("brackets do not match")
            if not waiting:
                return


def _lex(text: str) -> Iterator[str]:
    at, count = 0, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at:
            raise NotGraphql(f"{text[at : at + 20]!r} is no token")
        at = match.end()
        kind = match.lastgroup
        if kind is not None:
            count += 1
            if count > _MAX_TOKENS:
                raise NotGraphql("too long")
            yield '"' if kind in ("block", "string") else match[0]
