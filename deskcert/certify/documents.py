"""Reads the user's YAML files: strict YAML, then the schema, every problem with file and line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from deskcert_schema.strict_yaml import Loaded

__all__ = ["digest_of", "read_document", "shown"]


def shown(path: Path) -> str:
    """As the user would type it: relative to the working folder where it lies below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def read_document(path: Path, schema: str) -> Loaded:
    """`schema` is a name that `deskcert_schema.validate` knows. Raises `ConfigError`."""
    from deskcert_schema.validate import load_config  # brings the JSON Schema library, which takes its time

    return load_config(path, schema, name=shown(path))


def digest_of(value: Any) -> str:
    """Hex SHA-256 of a document's content: white space, comments and the order of keys do not count."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
