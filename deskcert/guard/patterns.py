"""(3) Patterns over names, values and URLs: exact, glob, regex; three-valued, as an expression may take too long.

A glob on a name knows `*` (any text) and `?` (one character). A glob on a URL knows `**` (any text) and `*` (any text
without `/`); a question mark there begins a query, so it stands for itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

import regex

from deskcert.guard.names import ascii_look_alike, bare, fold, forms, readings, tight
from deskcert_schema.errors import ConfigError

__all__ = ["Hit", "Match", "TextPattern", "UrlPattern", "url_spellings"]

TIMEOUT_S: Final = 0.05
"""For one regular expression over one text. Expiry is unknown, and unknown evidence is a denial."""

_ANY_TEXT, _ANY_CHAR = "\ufdd0", "\ufdd1"
"""Stand-ins for `*` and `?` while a pattern is folded: noncharacters, which no form changes."""


class Match(StrEnum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Hit:
    """`form` says in which form the text matched, or `why` it is not known."""

    match: Match
    form: str = ""
    why: str = ""


NO_HIT: Final = Hit(Match.NO)


@dataclass(frozen=True, slots=True)
class TextPattern:
    kind: str
    """`exact | glob | regex`"""
    source: str
    _looks: Mapping[str, tuple[regex.Pattern[str], ...]] = field(default_factory=dict, repr=False, compare=False)
    _regex: regex.Pattern[str] | None = field(default=None, repr=False, compare=False)
    _tight: Mapping[str, tuple[regex.Pattern[str], ...]] = field(default_factory=dict, repr=False, compare=False)
    """Without white space: for names that are written letter by letter."""

    @classmethod
    def read(cls, raw: Any, where: str) -> TextPattern:
        """`"text"`, `{glob: …}` or `{regex: …}`. Raises `ConfigError`, which names `where`."""
        kind, source = _kind_and_source(raw, where, plain="exact")
        if kind == "regex":
            try:
                return cls(kind, source, {}, regex.compile(source, regex.IGNORECASE))
            except regex.error as exc:
                raise ConfigError(f"{where}: not a regular expression: {exc}") from exc
        looks = _looks(source, glob=kind == "glob")
        if "fold" not in looks:
            raise ConfigError(
                f"{where}: nothing readable is left of {source!r}; write the text that a person would see"
            )
        return cls(kind, source, looks, None, _looks("".join(source.split()), glob=kind == "glob"))

    def of_name(self, text: str) -> Hit:
        """Does a person read `text` as what the pattern forbids?"""
        if self._regex is not None:
            return _search(self._regex, _regex_texts(text))
        found = _looks_like(self._looks, text)
        if found is None and (inner := bare(text)) not in ("", text):
            found = _looks_like(self._looks, inner, "bare")
        if found is None and (letters := tight(text)):
            found = _looks_like(self._tight, letters, "tight")
        return Hit(Match.YES, found) if found is not None else NO_HIT

    def plainly(self, text: str) -> bool:
        """For allow rules: only case, width and white space may differ. A look-alike is never let through."""
        if self._regex is not None:
            return _fullmatch(self._regex, text)
        read = fold(text)
        return read != "" and self._looks["fold"][0].fullmatch(read) is not None


def _kind_and_source(raw: Any, where: str, *, plain: str) -> tuple[str, str]:
    """`plain` is what a mere text means."""
    if isinstance(raw, str) and raw:
        return plain, raw
    if isinstance(raw, Mapping) and len(raw) == 1:
        ((kind, source),) = raw.items()
        if kind in ("glob", "regex", "exact") and isinstance(source, str) and source:
            return str(kind), source
    raise ConfigError(f"{where}: expected a text, {{glob: …}} or {{regex: …}}, found {raw!r}")


@lru_cache(maxsize=4096)  # every scenario of a suite, and every run of it, has the suite's own rules
def _looks(source: str, *, glob: bool) -> Mapping[str, tuple[regex.Pattern[str], ...]]:
    marked = source.replace("*", _ANY_TEXT).replace("?", _ANY_CHAR) if glob else source
    found = {}
    for form, texts in forms(marked).items():
        # Compiled in the order of the readings: the stored one first, which `plainly` relies on.
        patterns = [_as_regex(read) for _, read in texts if read]
        if patterns:
            found[form] = tuple(patterns)
    return found


def _looks_like(looks: Mapping[str, tuple[regex.Pattern[str], ...]], text: str, how: str = "") -> str | None:
    """In which form it does."""
    for form, patterns in looks.items():
        for label, read in forms(text)[form]:
            if read and any(p.fullmatch(read) for p in patterns):
                return ":".join(part for part in (how, label, form) if part)
    return None


def _as_regex(folded: str) -> regex.Pattern[str]:
    parts = {_ANY_TEXT: ".*", _ANY_CHAR: "."}
    return regex.compile("".join(parts.get(c) or regex.escape(c) for c in folded), regex.DOTALL)


def _regex_texts(text: str) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for label, read in readings(text):
        plain = ascii_look_alike(read)
        spelled = (("regex_look_alike", t) for t in _both_ways(plain))
        for form, candidate in itertools.chain([("regex", read), ("regex_look_alike", plain)], spelled):
            if candidate not in seen:
                seen.add(candidate)
                yield (f"{label}:{form}" if label else form), candidate


_MOST_SPOTS: Final = 6
_SPOT: Final = regex.compile(r"[Il1|O0o]")


def _both_ways(text: str) -> Iterator[str]:
    """I, l, 1 and O, 0 each tried both ways: every combination of up to six of them, else all at once. A letter reads
    as a digit only in a word that holds a digit, and a digit as a letter only in a word that holds a letter."""
    spots = [(m.start(), _choices(text, m.start())) for m in _SPOT.finditer(text)]
    spots = [s for s in spots if len(s[1]) > 1]
    if len(spots) <= _MOST_SPOTS:
        for chosen in itertools.product(*(choices for _, choices in spots)):
            letters = list(text)
            for (at, _), letter in zip(spots, chosen, strict=True):
                letters[at] = letter
            yield "".join(letters)
        return
    for before, after in (("I1|0", "lllO"), ("l1|0", "IIIO"), ("Il|Oo", "11100")):
        yield text.translate(str.maketrans(before, after))


def _choices(text: str, at: int) -> str:
    start, end = at, at
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    word = text[start:at] + text[at + 1 : end]
    letters = any(c.isalpha() for c in word)
    digits = any(c.isdigit() for c in word)
    char = text[at]
    if char in "Oo0":
        others = ("o" if letters else "") + ("0" if digits else "")
    else:
        others = ("lI" if letters else "") + ("1" if digits else "")
    return "".join(dict.fromkeys(char + others))


def _search(pattern: regex.Pattern[str], texts: Iterator[tuple[str, str]]) -> Hit:
    try:
        for form, text in texts:
            if pattern.search(text, timeout=TIMEOUT_S):
                return Hit(Match.YES, form)
    except TimeoutError:
        return Hit(
            Match.UNKNOWN, "regex", f"the expression {pattern.pattern!r} took longer than {TIMEOUT_S * 1000:.0f} ms"
        )
    return NO_HIT


def _fullmatch(pattern: regex.Pattern[str], text: str) -> bool:
    """What takes too long is not known, and so not let through."""
    try:
        return pattern.fullmatch(text, timeout=TIMEOUT_S) is not None
    except TimeoutError:
        return False


@dataclass(frozen=True, slots=True)
class UrlPattern:
    source: str
    _regex: regex.Pattern[str] = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Any, where: str) -> UrlPattern:
        kind, source = _kind_and_source(raw, where, plain="glob")
        try:
            compiled = regex.compile(_url_regex(kind, source), regex.DOTALL | regex.IGNORECASE)
        except regex.error as exc:
            raise ConfigError(f"{where}: not a regular expression: {exc}") from exc
        return cls(source, compiled)

    def matches(self, url: str) -> Match:
        """For deny rules: any spelling of the URL counts."""
        try:
            hit = any(self._regex.fullmatch(spelling, timeout=TIMEOUT_S) for spelling in url_spellings(url))
        except TimeoutError:
            return Match.UNKNOWN
        return Match.YES if hit else Match.NO

    def plainly(self, url: str) -> bool:
        """For allow rules: the URL as it stands, without its fragment."""
        return _fullmatch(self._regex, url.partition("#")[0])


def _url_regex(kind: str, source: str) -> str:
    if kind == "regex":
        return f".*?(?:{source}).*"  # as everywhere, an expression may match any part
    if kind != "glob":
        return str(regex.escape(source))
    parts = {"**": ".*", "*": "[^/]*"}
    out = "".join(parts.get(piece) or regex.escape(piece) for piece in regex.split(r"(\*\*|\*)", source))
    # "**/payouts/**" also means the page /payouts itself.
    return out[: -len("/.*")] + "(?:/.*)?" if out.endswith("/.*") else out


@lru_cache(maxsize=1024)
def url_spellings(url: str) -> tuple[str, ...]:
    """The URL as it stands, without fragment, without query; each also percent-decoded, and with doubled and trailing
    slashes removed: a server answers all of these alike."""
    whole = url.partition("#")[0]
    found = dict.fromkeys((url, whole, whole.partition("?")[0]))
    for text in tuple(found):
        found.setdefault(unquote(text))
    for text in tuple(found):
        tidy = regex.sub(r"(?<!:)//+", "/", text.replace("\\", "/"))
        tidy = regex.sub(r";[^/?]*", "", tidy)
        found.setdefault(tidy)
        found.setdefault(tidy.rstrip("/"))
    return tuple(found)
