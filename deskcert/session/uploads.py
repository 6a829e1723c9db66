"""The files of an upload: real paths, regular files, their size and digest, read before anything is dispatched."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deskcert_schema.errors import ContractError

__all__ = ["Upload", "files_to_upload"]

_MOST_FILES: Final = 16
_MOST_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Upload:
    path: Path
    """Absolute, symbolic links followed."""
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.path.name

    def within(self, folders: Sequence[Path]) -> bool:
        return any(self.path.is_relative_to(folder.resolve()) for folder in folders)

    def as_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "bytes": self.size, "sha256": self.sha256}


def files_to_upload(name: str, raw: object) -> tuple[Upload, ...]:
    """An absolute path, or a list of them. Raises `ContractError` for what is missing, or is no regular file."""
    paths = [raw] if isinstance(raw, str) else raw
    if not isinstance(paths, list) or not 1 <= len(paths) <= _MOST_FILES:
        raise ContractError(f"{name} must be an absolute path, or a list of 1 to {_MOST_FILES} of them")
    return tuple(_one(name, path) for path in paths)


def _one(name: str, raw: object) -> Upload:
    if not isinstance(raw, str) or not Path(raw).is_absolute():
        raise ContractError(f"{name} takes absolute paths: a relative one means another file to another process")
    try:
        path = Path(raw).resolve(strict=True)
        if not path.is_file():
            raise ContractError(f"{name}: {Path(raw).name} is no regular file")
        if path.stat().st_size > _MOST_BYTES:
            raise ContractError(f"{name}: {path.name} is larger than {_MOST_BYTES} bytes")
        content = path.read_bytes()
    except (OSError, ValueError) as exc:
        raise ContractError(f"{name}: {Path(raw).name!r} cannot be read") from exc
    return Upload(path, len(content), hashlib.sha256(content).hexdigest())
