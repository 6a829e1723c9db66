"""Whether a regular expression can be compiled, and without taking the machine's memory for it.

The engine that runs policies (`regex`, which knows time limits) writes counted repetitions out when it compiles:
`((a{1000}){1000}){1000}` takes gigabytes. So their size is counted first, from the text alone.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MAX_EXPANDED", "expanded_size", "is_readable"]

MAX_EXPANDED: Final = 20_000
"""Single characters, classes and escapes of an expression, after its counted repetitions are written out."""

_TOKEN: Final = re.compile(
    r"""\\. | \[\^?\]?(?:\\.|[^\]\\])*\]            # one escape, one class
      | \{(?P<least>[0-9]*)(?P<upto>,(?P<most>[0-9]*))?\}
      | [()] | .""",
    re.VERBOSE | re.DOTALL,
)


def is_readable(pattern: object) -> bool:
    """True for what the engine compiles, and for what is no text (another check's business)."""
    if not isinstance(pattern, str):
        return True
    if expanded_size(pattern) > MAX_EXPANDED:
        return False
    import regex

    try:
        regex.compile(pattern)
    except (regex.error, ValueError, OverflowError, RecursionError, IndexError):
        return False
    return True


def expanded_size(pattern: str) -> int:
    """An upper bound; open groups and stray brackets are counted as they stand, for the engine to refuse."""
    open_groups, total, last = [], 0, 0
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text == "(":
            open_groups.append(total)
            total, last = 0, 0
        elif text == ")" and open_groups:
            last = total + 1
            total = open_groups.pop() + last
        elif text[0] == "{" and len(text) > 1:
            times = _times(token)
            total += last * (times - 1)
            last *= times
        else:
            last = 1
            total += 1
    return total + sum(open_groups)


def _times(token: re.Match[str]) -> int:
    counts = [int(token[name][:9]) for name in ("least", "most") if token[name]]
    return max([1, *counts])
