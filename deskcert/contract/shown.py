"""What a page says, written so that nobody obeys it: without a character that a terminal acts on, that turns the order
of what is read, or that nobody sees. In JSON it is escaped, so that every reader of JSON still gets the same value.

The joiners between letters stay: Persian, the scripts of India and emoji are written with them.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = ["shown_json", "shown_text"]

_CONTROLS: Final = "\x7f-\x9f\u2028\u2029"
_MARKS: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Marks of direction."""
_UNSEEN: Final = "\xad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff"
"""Nothing is painted for them: soft hyphens, blanks without width, halves of a pair, tags that repeat ASCII."""
_UNSHOWN_TEXT: Final = re.compile(f"[\x00-\x08\x0b-\x1f{_CONTROLS}{_MARKS}{_UNSEEN}]")


def shown_json(value: object, **options: Any) -> str:
    """`options` as for `json.dumps`, which escapes the controls below a blank itself."""
    return shown_text(json.dumps(value, ensure_ascii=False, **options))


def shown_text(text: str) -> str:
    """Lines stay lines."""
    return _UNSHOWN_TEXT.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return "\\u007f" if found[0] == "\x7f" else json.dumps(found[0])[1:-1]
