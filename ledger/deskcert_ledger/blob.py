"""Blobs: what does not fit a line, in files of its own, named by SHA-256.

A blob's file begins with 16 random bytes, so that its name is no oracle for guessable content; the digest and `bytes`
are of the whole file. The record holds `{"blob": <hex>, "bytes": <n>}`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from deskcert_ledger.files import open_regular, read_bounded
from deskcert_ledger.line import decode
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = [
    "BLOB_FOLDER",
    "NAMES_THE_GONE",
    "Blob",
    "BlobFile",
    "blob_path",
    "check_blob",
    "is_blob_name",
    "is_reference",
    "load_blob",
    "make_blob",
    "references",
]

BLOB_FOLDER = "blobs"
SALT_BYTES = 16
MAX_BLOB_BYTES = 256 * 1024 * 1024
NAMES_THE_GONE: Final = frozenset({"redaction", "blob.missing"})
"""Kinds of records that speak of blobs which are not there, and name none of their own."""
_CHUNK = 1 << 20
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Blob:
    """As a value in a payload: written as a blob file. Its content may hold secrets, not blobs."""

    content: Any


@dataclass(frozen=True, slots=True)
class BlobFile:
    name: str
    data: bytes

    def reference(self) -> dict[str, str | int]:
        return {"blob": self.name, "bytes": len(self.data)}


def make_blob(content: bytes, rng: Callable[[int], bytes]) -> BlobFile:
    data = rng(SALT_BYTES) + content
    return BlobFile(sha256(data).hexdigest(), data)


def is_reference(value: object) -> bool:
    """Does `value` have the form of a reference to a blob?"""
    if not isinstance(value, dict) or len(value) != 2 or "blob" not in value or "bytes" not in value:
        return False
    name, size = value["blob"], value["bytes"]
    return isinstance(name, str) and is_blob_name(name) and type(size) is int and size >= SALT_BYTES


def is_blob_name(name: str) -> bool:
    return len(name) == 64 and set(name) <= _HEX


def references(value: Any) -> Iterator[dict[str, Any]]:
    """Every reference within a record."""
    if is_reference(value):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def blob_path(folder: Path, name: str) -> Path:
    return folder / BLOB_FOLDER / name


def check_blob(folder: Path, reference: dict[str, Any]) -> str | None:
    """None when the file is there and is what the record says; else a sentence. Reads in constant memory."""
    path = blob_path(folder, reference["blob"])
    try:
        with open_regular(path) as file:
            digest, size = sha256(), file.seek(0, os.SEEK_END)
            file.seek(0)
            left = size if size == reference["bytes"] else 0  # a sparse file of a terabyte is not read to be refused
            while left > 0 and (chunk := file.read(min(_CHUNK, left))):
                digest.update(chunk)
                left -= len(chunk)
    except FileNotFoundError:
        return f"blob {reference['blob'][:12]}… is missing"
    except OSError as error:
        return f"blob {reference['blob'][:12]}… cannot be read: {error.strerror}"
    if digest.hexdigest() != reference["blob"] or size != reference["bytes"]:
        return f"blob {reference['blob'][:12]}… is not what its record says"
    return None


def load_blob(folder: Path, reference: Any) -> Any:
    """The JSON value of a blob, its digest checked.

    Raises `LedgerFormatError` (no reference, no file, not the JSON subset) or `LedgerTampered` (another content).
    """
    if not is_reference(reference):
        raise LedgerFormatError('not a blob reference: {"blob": <64 hex digits>, "bytes": <n>} is expected')
    path = blob_path(folder, reference["blob"])
    try:
        data = read_bounded(path, min(reference["bytes"], MAX_BLOB_BYTES))
    except OSError as error:
        raise LedgerFormatError(f"the blob {path} cannot be read: {error.strerror}") from error
    if len(data) != reference["bytes"] or sha256(data).hexdigest() != reference["blob"]:
        raise LedgerTampered(f"the blob {path} is not what its record says")
    return decode(data[SALT_BYTES:], limit=MAX_BLOB_BYTES)
