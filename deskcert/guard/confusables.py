"""The table of look-alikes (UTS #39), as one prototype a character.

`confusable_homoglyphs` ships Unicode's confusables.txt as an undirected graph: each line "source → target" of that file
stands under both ends. Every connected part is a star whose centre is the target, so the direction can be had back:

- the end with several neighbours is the centre (`l` for `I`, `1`, `|`; `O` for `0`);
- of a pair, the end of several characters is the centre, because a source is always one character (`rn` for `m`);
- of a pair of single characters, the lower code point is the centre: either choice gives the same equivalence.

Left-to-right marks, which the file puts around right-to-left characters for display, are no part of the data and are
removed. Targets are mapped again until they no longer change, so that a prototype is its own prototype.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

__all__ = ["ascii_table", "prototype_table"]

_LRM: Final = "\u200e"

_OURS: Final = {"w": "vv", "W": "VV"}
"""Not in Unicode's file, but read as one another in every proportional font, like m and rn."""


@cache
def prototype_table() -> Mapping[int, str]:
    """For `str.translate`. The 900 KB file is read at the first call, once in a process (about 20 ms)."""
    near = _neighbours()
    table = {k: _centre(k, near) for k in near if len(k) == 1}
    table = {k: v for k, v in table.items() if k != v} | _OURS
    translate = str.maketrans(table)
    return {code: _settled(target, translate) for code, target in translate.items()}


@cache
def ascii_table() -> Mapping[int, str]:
    """Non-ASCII characters whose prototype is ASCII, with that prototype; ASCII itself stays as it is."""
    ours = set(_OURS.values())
    found: dict[int, str] = {}
    for code, target in prototype_table().items():
        if code < 0x80 or not target.isascii():
            continue
        found[code] = "w" if target in ours else target
    return found


def _neighbours() -> dict[str, set[str]]:
    raw = resources.files("confusable_homoglyphs").joinpath("confusables.json").read_text(encoding="utf-8")
    near: dict[str, set[str]] = {}
    for key, others in json.loads(raw).items():
        near.setdefault(key.replace(_LRM, ""), set()).update(o["c"].replace(_LRM, "") for o in others)
    return near


def _centre(char: str, near: Mapping[str, set[str]]) -> str:
    others = near[char]
    if len(others) > 1:
        return char
    (other,) = others
    if len(other) > 1 or len(near.get(other, ())) > 1:
        return other
    return min(char, other, key=ord)


def _settled(target: str, table: Mapping[int, str]) -> str:
    for _ in range(8):  # the longest way is one of two
        target = target.translate(table)
    return target
