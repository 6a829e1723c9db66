"""The code beside a suite that its oracles and hooks are made of: an oracle that was rewritten is another suite."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from deskcert_schema import strict_yaml
from deskcert_schema.errors import ConfigError

__all__ = ["code_of"]

_BESIDE: Final = re.compile(r"\{suite\}/([\w./-]+)")
"""A file of the suite's folder, as commands name it."""
_SCRIPTS: Final = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl", ".php", ".jar", ".sql"})


def code_of(folder: Path) -> dict[str, str]:
    """File name -> hex SHA-256: the modules that a suite's YAML names, what these import from the same folder, and the
    programs and scripts that its commands name as `{suite}/…`. Not what is data: an application may write it.

    Found in what is written, not by running it: what is imported under a computed name is not seen. Raises
    `OSError`."""
    waiting: list[tuple[Path, str]] = []
    found: dict[str, str] = {}
    for key, text in (pair for path in sorted(folder.glob("*.yaml")) for pair in _texts(_written(path))):
        if key == "python":
            waiting.append((folder, text.rpartition(":")[0]))
        for name in _BESIDE.findall(text):
            path = folder / name
            if path.is_file() and (path.suffix in _SCRIPTS or os.access(path, os.X_OK)):
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
                if path.suffix == ".py" and path.resolve().is_relative_to(folder.resolve()):
                    waiting += [(p, module) for module in _imports(path.read_bytes()) for p in {folder, path.parent}]
    while waiting:
        for path in _files(*waiting.pop()):
            name = path.relative_to(folder).as_posix()
            if name not in found:
                source = path.read_bytes()
                found[name] = hashlib.sha256(source).hexdigest()
                waiting += [(place, module) for module in _imports(source) for place in {folder, path.parent}]
    return found


def _written(path: Path) -> Any:
    """Nothing of a file that the suite cannot be reading either."""
    with contextlib.suppress(ConfigError, UnicodeDecodeError):
        return strict_yaml.load(path.read_text("utf-8"), name=path.name).value if path.is_file() else None
    return None


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text, with the key that it is under."""
    match value:
        case str():
            yield key, value
        case Mapping():
            for name, inner in value.items():
                yield from _texts(inner, str(name))
        case list():
            for inner in value:
                yield from _texts(inner, key)


def _files(folder: Path, module: str) -> Iterator[Path]:
    """Of a dotted name or a path: the packages on the way, and the module itself."""
    parts = [part for part in re.split(r"[./]", module) if part]
    for count in range(1, len(parts) + 1):
        place = folder.joinpath(*parts[:count])
        yield from (p for p in (place / "__init__.py", place.with_name(f"{place.name}.py")) if p.is_file())


def _imports(source: bytes) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return  # the question that needs it says so when it is asked
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
