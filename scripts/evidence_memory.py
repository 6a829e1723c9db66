"""A run folder in memory, as far as the ledger's own code looks at one: for judging crash states without a disk."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, cast

from deskcert_ledger import files
from deskcert_ledger.blob import BLOB_FOLDER, BlobFile
from deskcert_ledger.store import CHECKPOINT, CHECKPOINTS, DISCLOSURES, HASHES, LEDGER, Disk, RunFiles

__all__ = ["MemoryFiles", "MemoryFolder", "folder_of", "look_into_memory"]


class MemoryFolder:
    """Stands for a `Path`: `/`, `open`, `is_file`, `read_bytes`."""

    def __init__(self, files: dict[str, bytes], name: str = "") -> None:
        self.files, self.name = files, name

    def __truediv__(self, name: str) -> MemoryFolder:
        return MemoryFolder(self.files, f"{self.name}/{name}" if self.name else name)

    def __str__(self) -> str:
        return f"memory/{self.name}"

    def is_file(self) -> bool:
        return self.name in self.files

    def exists(self) -> bool:
        return self.is_file()

    def read_bytes(self) -> bytes:
        try:
            return self.files[self.name]
        except KeyError:
            raise FileNotFoundError(self.name) from None

    def open(self, mode: str = "r") -> BytesIO:
        assert mode == "rb"
        return BytesIO(self.read_bytes())


def look_into_memory() -> None:
    """Have the ledger's code open files of such folders too. What it does to be sure that a path is a regular file is
    not of interest here, and cannot be done with one."""
    plain = files.open_regular

    def open_any(path: Path) -> BinaryIO:
        return path.open("rb") if isinstance(path, MemoryFolder) else plain(path)

    for name, module in list(sys.modules.items()):
        if name.startswith("deskcert_ledger") and getattr(module, "open_regular", None) is plain:
            module.open_regular = open_any  # type: ignore[attr-defined]


def folder_of(files: dict[str, bytes]) -> Path:
    return cast(Path, MemoryFolder(files))


class MemoryFiles(RunFiles):
    """What recovery writes with; the same order of steps as on a disk is not of interest here."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(folder_of(files), Disk(), {})
        self.files = files
        for name in (LEDGER, CHECKPOINTS, HASHES, DISCLOSURES):
            files.setdefault(name, b"")

    def append_lines(self, lines: bytes) -> None:
        self.append(LEDGER, lines)

    def append(self, name: str, data: bytes) -> None:
        self.files[name] = self.files.get(name, b"") + data

    def sync(self, name: str) -> None:
        del name

    def write_blobs(self, blobs: Iterable[BlobFile]) -> None:
        for blob in blobs:
            self.files[f"{BLOB_FOLDER}/{blob.name}"] = blob.data

    def replace_checkpoint(self, note: bytes) -> None:
        self.files[CHECKPOINT] = note

    def put(self, name: str, data: bytes) -> None:
        self.files[name] = data

    def keep_torn(self, source: str, offset: int, name: str) -> None:
        self.files[f"torn/{name}"] = self.files[source][offset:]

    def truncate(self, name: str, size: int) -> None:
        self.files[name] = self.files[name][:size]

    def replace(self, name: str, parts: Iterable[bytes]) -> None:
        self.files[name] = b"".join(parts)
