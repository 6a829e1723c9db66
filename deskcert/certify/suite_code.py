"""The Python beside a suite that its oracles and hooks are made of: an oracle that was rewritten is another suite."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["code_of"]

_FUNCTION: Final = re.compile(rb"""\bpython["']?\s*:\s*["']?([\w./-]+):[A-Za-z_]""")
"""`python: "module:function"`, as questions and hooks say it."""


def code_of(folder: Path) -> dict[str, str]:
    """File name -> hex SHA-256: the modules that a suite's YAML names, and what these import from the same folder.

    Found in the text, not by running it: what is imported under a computed name is not seen. Raises `OSError`."""
    texts = (path.read_bytes() for path in sorted(folder.glob("*.yaml")) if path.is_file())
    waiting = [(folder, name.decode()) for text in texts for name in _FUNCTION.findall(text)]
    found: dict[str, str] = {}
    while waiting:
        for path in _files(*waiting.pop()):
            name = path.relative_to(folder).as_posix()
            if name not in found:
                source = path.read_bytes()
                found[name] = hashlib.sha256(source).hexdigest()
                waiting += [(place, module) for module in _imports(source) for place in {folder, path.parent}]
    return found


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
