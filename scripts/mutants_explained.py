"""Mutants of scoring rules that no conversation tells from the rule, and why none can."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["explained"]

_CLASSES: Final[Sequence[tuple[str, str]]] = (
    (
        r"_REMEMBERED|_REPEATS|< 64|^64: |^8: ",
        "a limit of memory, one more or less: beyond it lies no other proof",
    ),
    (r"^[01]: one more$", "a number that stands for “none yet”: every other that is no record's number does the same"),
    (
        r"^kind_of\(record\) == [^:]* and .*: without condition 1$",
        "what is read next stands in no other kind of record",
    ),
    (r"^number\(record, 'of'\) == self\._intent\[0\]", "a result follows its own intent, with none between"),
    (r"^s < seq_of\(record\): its border moved$", "a record that is named twice is named once"),
    (r"^self\._\w+ (>=|<) 0: its border moved$", "record 0 is run.start, and never the one that is meant"),
    (r"^ref\.partition", "a ref without its snapshot is refused before it gets here"),
    (
        r"or 0: without condition|^1000(000)?: one more$",
        "a unit, a millisecond in thousands: no heart beats that exactly",
    ),
)
"""(what was changed, why it makes no difference)."""


def explained(what: str) -> str | None:
    return next((why for pattern, why in _CLASSES if re.search(pattern, what)), None)
