"""Patterns over names, values and messages: exact, glob, regex, contains; three-valued, because an expression may take
too long. A forbidding rule reads generously (case, width, invisible characters), an allowing one to the letter."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Self

import regex

from deskcert_proxy.urls import resolved, spellings, url_regex
from deskcert_schema.errors import ConfigError

__all__ = ["Match", "Pattern", "UrlPattern", "all_of", "any_of", "fold", "folds", "shape"]

_KINDS: Final = ("exact", "glob", "regex", "contains")
_MAX_TEXT: Final = 1 << 20
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_TIMEOUT_S: Final = 0.05
"""For one expression over one text."""


class Match(StrEnum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def all_of(*answers: Match) -> Match:
    if Match.NO in answers:
        return Match.NO
    return Match.UNKNOWN if Match.UNKNOWN in answers else Match.YES


def any_of(answers: list[Match]) -> Match:
    if Match.YES in answers:
        return Match.YES
    return Match.UNKNOWN if Match.UNKNOWN in answers else Match.NO


def fold(text: str) -> str:
    """Case, width and invisible characters away."""
    if text.isascii():
        return _CONTROL.sub("", text).lower().strip()
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if unicodedata.category(c) not in ("Cf", "Mn", "Cc")).strip()


def folds(text: str) -> tuple[str, ...]:
    """Folded; and, where a null byte stands in it, as a reader that stops there has it."""
    return (fold(text),) if "\0" not in text else (fold(text), fold(text.partition("\0")[0]))


def shape(raw: Any, where: str, *, bare: str) -> tuple[str, str]:
    """(kind, source) of a matcher; `bare` is what a text alone means. Raises `ConfigError`, which names `where`."""
    if isinstance(raw, str) and raw:
        return bare, raw
    if isinstance(raw, Mapping) and len(raw) == 1:
        ((kind, source),) = raw.items()
        if kind in _KINDS and isinstance(source, str) and source:
            return str(kind), source
    raise ConfigError(f"{where}: expected a text or one of exact, glob, regex; found {raw!r}")


def _compile(expression: str, where: str) -> regex.Pattern[str]:
    try:
        return regex.compile(expression, regex.DOTALL | regex.IGNORECASE)
    except regex.error as exc:
        raise ConfigError(f"{where}: not a regular expression: {exc}") from exc


def _within(expression: regex.Pattern[str], text: str, *, full: bool) -> Match:
    try:
        hit = (expression.fullmatch if full else expression.search)(text, timeout=_TIMEOUT_S)
    except TimeoutError:
        return Match.UNKNOWN
    return Match.YES if hit else Match.NO


@dataclass(frozen=True, slots=True)
class Pattern:
    kind: str
    source: str
    _regex: regex.Pattern[str] = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Any, where: str, *, bare: str = "exact") -> Self:
        kind, source = shape(raw, where, bare=bare)
        match kind:
            case "regex":
                expression = source
            case "glob":
                expression = "".join({"*": ".*", "?": "."}.get(c) or regex.escape(c) for c in fold(source))
            case _:
                expression = str(regex.escape(fold(source)))
        return cls(kind, source, _compile(expression, where))

    def hits(self, text: str, *, generous: bool = True) -> Match:
        if len(text) > _MAX_TEXT:
            return Match.UNKNOWN
        partly = self.kind == "contains" or (self.kind == "regex" and generous)
        if not generous and self.kind in ("exact", "contains") and self.source not in text:
            return Match.NO
        candidates = [text] if self.kind == "regex" else [fold(text)]
        if generous:
            candidates += folds(text)
        return any_of([_within(self._regex, one, full=not partly) for one in candidates])

    def hits_any(self, texts: tuple[str, ...], *, generous: bool = True) -> Match:
        return any_of([self.hits(text, generous=generous) for text in texts])


@dataclass(frozen=True, slots=True)
class UrlPattern:
    source: str
    with_query: bool
    """It says something about the query. Else only the path counts: where a page wants to go afterwards does not."""
    _regex: regex.Pattern[str] = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Any, where: str) -> Self:
        kind, source = shape(raw, where, bare="glob")
        return cls(source, kind == "regex" or "?" in source, _compile(url_regex(kind, source), where))

    def hits(self, url: str, *, generous: bool = True) -> Match:
        """Forbidding: any spelling counts. Allowing: the URL as it stands, with or without its query, and whatever
        servers make of its path."""
        if generous:
            return any_of([_within(self._regex, text, full=True) for text in spellings(url, query=self.with_query)])
        if any(_within(self._regex, text, full=True) is not Match.YES for text in resolved(url)):
            return Match.NO
        return any_of([_within(self._regex, text, full=True) for text in (url, url.split("?", 1)[0])])
