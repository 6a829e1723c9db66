"""Foreign text on a terminal: every character that could do anything but be read is shown as `\\u{…}`."""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["visible"]

_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls (escape sequences among them), invisible and direction-changing characters, surrogates, unassigned ones,
line and paragraph separators."""


def visible(words: str) -> str:
    """One line of harmless text: page-supplied names pass through here before they are printed."""
    if words.isascii() and words.isprintable():
        return words
    return "".join(f"\\u{{{ord(c):x}}}" if unicodedata.category(c) in _UNSAFE else c for c in words)
