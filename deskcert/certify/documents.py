"""Reads the user's YAML files: strict YAML, then the schema, every problem with file and line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from deskcert_schema.errors import ConfigError
from deskcert_schema.strict_yaml import Loaded, load

__all__ = ["digest_of", "read_document", "shown"]


def shown(path: Path) -> str:
    """As the user would type it: relative to the working folder where it lies below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def read_document(path: Path, schema: str, *, what: str) -> Loaded:
    """`schema` is a name that `deskcert_schema.validate` knows. Raises `ConfigError`."""
    from deskcert_schema.validate import check

    name = shown(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{name}:1: there is no such file; expected {what}") from None
    except IsADirectoryError:
        raise ConfigError(f"{name}:1: this is a folder; expected a file that holds {what}") from None
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{name}:1: not UTF-8 text (byte {exc.start}); save the file as UTF-8") from None
    except OSError as exc:
        raise ConfigError(f"{name}:1: cannot be read ({exc.strerror}); expected {what}") from None
    loaded = load(text, name=name)
    if problems := check(schema, loaded):
        raise ConfigError([p.sentence(name) for p in problems])
    return loaded


def digest_of(value: Any) -> str:
    """Hex SHA-256 of a document's content: white space, comments and the order of keys do not count."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
