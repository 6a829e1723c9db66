"""Foreign text on a terminal: every character that could do anything but be read is shown as `\\u{…}`."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["log_line", "visible"]

_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls (escape sequences among them), invisible and direction-changing characters, surrogates, unassigned ones,
line and paragraph separators."""


def visible(words: str) -> str:
    """One line of harmless text: page-supplied names pass through here before they are printed."""
    if words.isascii() and words.isprintable():
        return words
    return "".join(f"\\u{{{ord(c):x}}}" if unicodedata.category(c) in _UNSAFE else c for c in words)


_COMMAND: Final = re.compile(r"^(\s*):(?=:)|##(?=\w*\[)")
"""What a pipeline would take for a command in a line of a log: `::error::` at its start, `##[error]` or `##vso[…]`
anywhere (actions/runner, ActionCommand.cs)."""


def log_line(line: str) -> str:
    """A line of a log that no pipeline takes for a command, whatever a page's text has put at its start."""
    return _COMMAND.sub(lambda found: "\\u{23}#" if found[1] is None else found[1] + "\\u{3a}", line)
