"""Answers as tables: with colour in a terminal, plain in a log, CSV and JSON for programs. All foreign text inert."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TextIO

from deskcert.contract.shown import shown_json
from deskcert.report.visible import visible

__all__ = ["Column", "Format", "cell", "csv_cell", "say_table"]

_LONGEST: Final = 60
"""Characters of a cell in a plain table."""


class Format(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Column:
    key: str
    """In JSON and CSV, and as the heading."""
    right: bool = False
    style: Callable[[Any], str] | None = None
    """A value's rich style."""
    wide: bool = False
    """Never cut."""


type Row = Mapping[str, Any]


def say_table(columns: Sequence[Column], rows: Iterable[Row], form: Format, stream: TextIO | None = None) -> int:
    """Write the rows; returns how many there were. JSON is one object a line; a terminal gets a pager when needed."""
    out = sys.stdout if stream is None else stream
    match form:
        case Format.JSON:
            return _each(rows, lambda row: out.write(shown_json(dict(row)) + "\n"))
        case Format.CSV:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow([c.key for c in columns])
            return _each(rows, lambda row: writer.writerow([csv_cell(row.get(c.key)) for c in columns]))
        case Format.TABLE:
            told = list(rows)
            _table(columns, told, out)
            return len(told)


def _each(rows: Iterable[Row], write: Callable[[Row], object]) -> int:
    number = 0
    for row in rows:
        write(row)
        number += 1
    return number


def cell(value: Any) -> str:
    """One line of harmless text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def csv_cell(value: Any) -> str:
    """A spreadsheet takes `=…` for a formula, wherever the text came from; a quote before it keeps it a text."""
    told = cell(value)
    risky = isinstance(value, str) and told[:1] in {"=", "+", "-", "@"}
    return f"'{told}" if risky else told


def _table(columns: Sequence[Column], rows: Sequence[Row], out: TextIO) -> None:
    if out.isatty():
        _rich(columns, rows, out)
        return
    cells = [[c.key for c in columns], *([_cut(cell(row.get(c.key)), c) for c in columns] for row in rows)]
    wide = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        padded = (text.rjust(w) if c.right else text.ljust(w) for text, w, c in zip(line, wide, columns, strict=True))
        out.write("  ".join(padded).rstrip() + "\n")


def _cut(text: str, column: Column) -> str:
    return text if column.wide or len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _rich(columns: Sequence[Column], rows: Sequence[Row], out: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=out, highlight=False)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column.key, justify="right" if column.right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(row.get(c.key)), c.style(row.get(c.key)) if c.style else "") for c in columns))
    if len(rows) + 4 <= console.height or out is not sys.stdout:
        console.print(table)
        return
    with console.pager(styles=True):
        console.print(table)
