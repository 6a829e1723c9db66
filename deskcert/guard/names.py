"""(3) Names compared as a person would read them.

`forms(text)` gives every form of a name, or of a pattern, that is compared: two texts look alike if they agree in one.
Source: guard.md (3); UTS #39 for the skeleton, UAX #9 for the display order. On top of guard.md's four compositions:

- `deep`: fold and skeleton repeated until nothing changes, which also joins `REM0VE` with `Remove`;
- `initial`: `deep` with an i at the beginning of a word read as l, because a capital I was meant (`lnvite`);
- readings: the text as stored, as displayed, with l for I undone in words of capitals (`MAlL`), without letter spacing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import regex

from deskcert.guard.confusables import ascii_table, prototype_table

__all__ = ["FORMS", "Reading", "ascii_look_alike", "bare", "display", "fold", "forms", "readings", "skeleton", "tight"]

_REMOVED: Final = regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Cs}\p{Co}]+")
"""Invisible, or an icon font's glyph, which no person reads as a letter."""
_WHITE: Final = regex.compile(r"[\s\u2800]+")
"""U+2800 is the blank Braille pattern: not white space to Unicode, and blank on every screen."""
_DIRECTED: Final = regex.compile(
    r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff"
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_STRAY_MARKS: Final = regex.compile(r"(?<=\p{Latin})\p{Mn}+")
_THIN_SPACE: Final = regex.compile(r"(?<=\p{L})[\u2004-\u2006\u2009\u200a\u202f\u205f](?=\p{L})")
_SPACED_OUT: Final = regex.compile(r"(?<!\S)\S(?:\s\S){3,}(?!\S)")
_LETTER_BY_LETTER: Final = regex.compile(r"\S(?: \S){3,}")
_ORNAMENT: Final = regex.compile(
    r"(?:[\p{S}\p{Pi}\p{Pf}\p{Extended_Pictographic}\p{Default_Ignorable_Code_Point}\s…·•\"']|\.\.\.)+"
)
_MIRRORED: Final = str.maketrans("()[]{}<>«»‹›", ")(][}{><»«›‹")
_READS_AS_I: Final = "l1|"
_WORD: Final = regex.compile(r"[\w|]+")
_INITIAL_I: Final = regex.compile(r"(?<![^\W_])i")


def fold(text: str) -> str:
    """NFKC, case folded, default-ignorable and control characters removed, white space collapsed; to a fixed point."""
    return _until_settled(text, _fold_once)


def skeleton(text: str) -> str:
    """UTS #39: decomposed, each character replaced by its prototype, decomposed again. Keeps case and white space."""
    return _until_settled(text, _skeleton_once)


def _fold_once(text: str) -> str:
    text = _sub(_WHITE, " ", text)
    text = _sub(_REMOVED, "", text)
    text = unicodedata.normalize("NFKC", text).casefold()
    return _sub(_WHITE, " ", unicodedata.normalize("NFKC", text)).strip(" ")


def _skeleton_once(text: str) -> str:
    text = _sub(_REMOVED, "", _sub(_WHITE, " ", text))
    text = unicodedata.normalize("NFD", text).translate(prototype_table())
    return _sub(_WHITE, " ", unicodedata.normalize("NFD", text)).strip(" ")


def _deep(text: str) -> str:
    return _until_settled(text, lambda t: fold(skeleton(t)))


def _initial(text: str) -> str:
    return _sub(_INITIAL_I, "l", _deep(text))


def _sub(pattern: regex.Pattern[str], to: str | Callable[[regex.Match[str]], str], text: str) -> str:
    return str(pattern.sub(to, text))


def _until_settled(text: str, step: Callable[[str], str]) -> str:
    for _ in range(8):
        again = step(text)
        if again == text:
            break
        text = again
    return text


FORMS: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {
        "fold": fold,
        "skeleton": skeleton,
        "fold_skeleton": lambda t: fold(skeleton(t)),
        "skeleton_fold": lambda t: skeleton(fold(t)),
        "deep": _deep,
        "initial": _initial,
    }
)
"""In the order in which a match is named. `a_b` means a applied to b's result."""

type Reading = tuple[str, str]
"""(what was done to the stored text, the text)."""


@lru_cache(maxsize=4096)
def readings(text: str) -> tuple[Reading, ...]:
    """The ways in which a person may read a name, the stored one first, without repetition."""
    found: dict[str, str] = {}
    for label, shown in [("", text), *(("display_", shown) for shown in display(text))]:
        for extra, read in _rewritten(shown):
            found.setdefault(read, f"{label}{extra}".removesuffix("_"))
    return tuple((label, read) for read, label in found.items())


def _rewritten(text: str) -> Iterator[Reading]:
    yield "", text
    yield "unmarked", _without_stray_marks(text)
    plain = ascii_look_alike(text)
    undone = _sub(_WORD, _undo_capital_i, plain)
    yield "capitals", undone if undone != plain else text
    yield "unspaced", _without_letter_spacing(text)


def _without_stray_marks(text: str) -> str:
    """Without marks that no precomposed letter holds: a line through or under each letter changes nothing to read."""
    return _sub(_STRAY_MARKS, "", unicodedata.normalize("NFC", text))


def _undo_capital_i(match: regex.Match[str]) -> str:
    word = str(match.group())
    rest = [c for c in word if c not in _READS_AS_I and c.isalpha()]
    if len(rest) < 2 or any(not c.isupper() for c in rest):
        return word
    return word.translate({ord(c): "I" for c in _READS_AS_I})


def bare(text: str) -> str:
    """Without the signs around it: a picture before, an arrow or three dots after, quotation marks. They are no part of
    what a button is called."""
    begin = _ORNAMENT.match(text)
    text = text[begin.end() :] if begin is not None else text
    end = next((m for m in _ORNAMENT.finditer(text) if m.end() == len(text)), None)
    return text[: end.start()] if end is not None else text


def tight(text: str) -> str:
    """Written letter by letter, with blanks between all of them: the letters. Empty for any other text."""
    letters = _sub(_WHITE, " ", _sub(_REMOVED, "", text)).strip(" ")
    return letters.replace(" ", "") if _LETTER_BY_LETTER.fullmatch(letters) else ""


def _without_letter_spacing(text: str) -> str:
    joined = _sub(_THIN_SPACE, "", text)
    return _sub(_SPACED_OUT, lambda m: _sub(_WHITE, "", m.group()), joined)


@lru_cache(maxsize=4096)
def display(text: str) -> tuple[str, ...]:
    """The text as it stands on the screen (UAX #9: overrides, isolates), in a left-to-right and in a right-to-left
    paragraph, each with its brackets as they are and mirrored. Empty where order cannot differ."""
    if _DIRECTED.search(text) is None:
        return ()
    from bidi import get_display

    line = _sub(_WHITE, " ", text.encode("utf-8", "replace").decode("utf-8"))
    shown = [str(get_display(line, base_dir=direction)) for direction in ("L", "R")]
    # python-bidi orders and does not mirror, and does not tell which run a bracket stood in: both are tried.
    return tuple(dict.fromkeys([*shown, *(text.translate(_MIRRORED) for text in shown)]))


@lru_cache(maxsize=4096)
def forms(text: str) -> Mapping[str, tuple[Reading, ...]]:
    """Form → its (reading, text) pairs, without repetition. Nothing readable gives empty texts, which never match."""
    return MappingProxyType({form: _distinct(text, apply) for form, apply in FORMS.items()})


def _distinct(text: str, apply: Callable[[str], str]) -> tuple[Reading, ...]:
    found: dict[str, str] = {}
    for label, read in readings(text):
        found.setdefault(apply(read), label)
    return tuple((label, read) for read, label in found.items())


def ascii_look_alike(text: str) -> str:
    """Only non-ASCII characters become the ASCII they look like; white space and invisible characters as in `fold`."""
    text = unicodedata.normalize("NFKC", _sub(_REMOVED, "", _sub(_WHITE, " ", text)))
    return _sub(_WHITE, " ", text.translate(ascii_table())).strip(" ")
