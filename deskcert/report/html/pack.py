"""What is too much for the page's text: gzip in base64, in pieces that the browser opens when they are looked at."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["Pieces", "cut", "inert_json"]

_LONGEST: Final = 20_000
"""Characters of one text that the report carries; the whole of it stays in the ledger."""


def inert_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it ends the element or begins a comment."""
    told = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return told.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def cut(value: Any) -> Any:
    """The same value, long texts cut, with a note of how much was left out."""
    match value:
        case str() if len(value) > _LONGEST:
            return f"{value[:_LONGEST]}… ({len(value):,} characters; the ledger has them all)"
        case Mapping():
            return {(k if len(k) <= _LONGEST else k[:_LONGEST]): cut(v) for k, v in value.items()}
        case list() | tuple():
            return [cut(v) for v in value]
        case _:
            return value


@dataclass(slots=True)
class Pieces:
    """Numbered pieces, each a script element that holds no script."""

    texts: list[str] = field(default_factory=list)
    size: int = 0
    """Bytes of base64 so far."""

    def add(self, value: Any) -> int:
        """Keep a JSON value; returns its number."""
        raw = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")
        packed = base64.b64encode(gzip.compress(raw, 6, mtime=0)).decode("ascii")
        self.texts.append(packed)
        self.size += len(packed)
        return len(self.texts) - 1

    def add_in_parts(self, values: Iterable[Any], each: int) -> list[int]:
        """The numbers of pieces of `each` values."""
        return [self.add(part) for part in _parts(values, each)]

    def as_html(self) -> Iterator[str]:
        for number, text in enumerate(self.texts):
            yield f'<script type="application/octet-stream" id="p{number}">{text}</script>\n'


def _parts(values: Iterable[Any], each: int) -> Iterator[list[Any]]:
    part: list[Any] = []
    for value in values:
        part.append(value)
        if len(part) == each:
            yield part
            part = []
    if part:
        yield part
