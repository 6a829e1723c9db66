"""Reads the user's YAML files: strict YAML, then the schema, every problem with file and line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deskcert_schema.errors import ConfigError
from deskcert_schema.problems import path_text
from deskcert_schema.strict_yaml import Loaded

__all__ = ["BLANK", "contained", "digest_of", "read_document", "shown"]

BLANK = "<fill in"
"""How a text begins that `deskcert scenario new` left for its author."""


def shown(path: Path) -> str:
    """As the user would type it: relative to the working folder where it lies below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def read_document(path: Path, schema: str) -> Loaded:
    """`schema` is a name that `deskcert_schema.validate` knows. Raises `ConfigError`."""
    from deskcert_schema.validate import check_config, read_config  # the JSON Schema library takes its time

    name = shown(path)
    loaded = read_config(path, name=name)
    blanks = [(place, value) for place, value in _texts(loaded.value, ()) if value.startswith(BLANK)]
    if blanks:
        raise ConfigError(
            [
                f"{name}:{loaded.positions.value(place).line}: {path_text(place)}: this is still to be filled in"
                f" ({value.removeprefix(BLANK).strip(':<> ')})"
                for place, value in blanks
            ]
        )
    return check_config(loaded, path, schema)


def _texts(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    match value:
        case str():
            yield path, value
        case Mapping():
            for key, inner in value.items():
                yield from _texts(inner, (*path, key))
        case list():
            for index, inner in enumerate(value):
                yield from _texts(inner, (*path, index))
        case _:
            return


def contained(path: Path, folder: Path) -> None:
    """Raises `ConfigError` when `path` leads out of `folder`, by a symbolic link for example: what a suite holds is
    read, quoted in messages and recorded, so it has to be the suite's own."""
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a link that leads to itself
        inside = False
    if not inside:
        raise ConfigError(f"{_as_named(path)}:1: leads out of {_as_named(folder)}; copy the file into the folder")


def _as_named(path: Path) -> str:
    """As `shown`, and a symbolic link by its own name."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def digest_of(value: Any) -> str:
    """Hex SHA-256 of a document's content: white space, comments and the order of keys do not count."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
