"""The files of a run folder, and the order in which they are written.

One `write` and one `fdatasync` a commit on `ledger.jsonl`: no header, no length field, the file's valid prefix is the
truth. Blobs are synced before the record that names them. `checkpoints`, `ledger.hashes` and `disclosures.jsonl` are
appended without a sync of their own; `checkpoint` is replaced whole (temporary file, fsync, rename, fsync of the
folder, whose descriptor is held open so that an I/O error cannot get lost).

Every method raises `OSError` as it comes; whoever calls decides, and the sequencer's decision is: poison, no retry.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from deskcert_ledger.blob import BLOB_FOLDER, BlobFile
from deskcert_ledger.files import open_own, open_own_folder, open_regular
from deskcert_schema.errors import LedgerUnavailable, UsageError

__all__ = [
    "CHECKPOINT",
    "CHECKPOINTS",
    "DISCLOSURES",
    "HASHES",
    "LEDGER",
    "TORN_FOLDER",
    "Disk",
    "RunFiles",
    "create_files",
    "open_files",
]

LEDGER = "ledger.jsonl"
HASHES = "ledger.hashes"
CHECKPOINTS = "checkpoints"
CHECKPOINT = "checkpoint"
DISCLOSURES = "disclosures.jsonl"
TORN_FOLDER = "torn"


class Disk:
    """The system calls that can fail late; a test puts a failing disk in its place."""

    def write(self, fd: int, data: bytes) -> int:
        return os.write(fd, data)

    def datasync(self, fd: int) -> None:
        os.fdatasync(fd)

    def sync(self, fd: int) -> None:
        os.fsync(fd)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def rename(self, old: Path, new: Path) -> None:
        old.replace(new)

    def write_all(self, fd: int, data: bytes) -> None:
        """One write; more only if the system took less (a full disk answers at the second)."""
        done = self.write(fd, data)
        while done < len(data):
            done += self.write(fd, data[done:])


class RunFiles:
    """Open descriptors of one run folder. Holds the lock on `ledger.jsonl` until `close`."""

    def __init__(self, folder: Path, disk: Disk, descriptors: dict[str, int]) -> None:
        self.folder = folder
        self._disk = disk
        self._fd = descriptors
        self._blob_folder: int | None = None

    def append_lines(self, lines: bytes) -> None:
        """The commit: when this returns, the lines are durable."""
        self._disk.write_all(self._fd[LEDGER], lines)
        self._disk.datasync(self._fd[LEDGER])

    def append(self, name: str, data: bytes) -> None:
        """Append to `checkpoints`, `ledger.hashes` or `disclosures.jsonl`, without a sync."""
        if data:
            self._disk.write_all(self._fd[name], data)

    def sync(self, name: str) -> None:
        self._disk.sync(self._fd[name])

    def write_blobs(self, blobs: Iterable[BlobFile]) -> None:
        """Write and sync blobs and the folder that holds them."""
        if self._blob_folder is None:
            self._blob_folder = open_own_folder(self.folder / BLOB_FOLDER, make=True)
            self._disk.sync(self._fd["."])
        for blob in blobs:
            fd = os.open(blob.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=self._blob_folder)
            try:
                self._disk.write_all(fd, blob.data)
                self._disk.datasync(fd)
            finally:
                os.close(fd)
        self._disk.sync(self._blob_folder)

    def replace_checkpoint(self, note: bytes) -> None:
        """Put `note` in the place of `checkpoint`, durably, whole or not at all."""
        temporary = self.folder / f".{CHECKPOINT}.tmp"
        fd = open_own(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            self._disk.write_all(fd, note)
            self._disk.sync(fd)
        finally:
            os.close(fd)
        self._disk.rename(temporary, self.folder / CHECKPOINT)
        self._disk.sync(self._fd["."])

    def put(self, name: str, data: bytes) -> None:
        """Put a file that does not change any more in its place, whole or not at all. The folder's sync is the next."""
        temporary = self.folder / f".{name}.tmp"
        fd = open_own(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            self._disk.write_all(fd, data)
            self._disk.sync(fd)
        finally:
            os.close(fd)
        self._disk.rename(temporary, self.folder / name)

    def keep_torn(self, source: str, offset: int, name: str) -> None:
        """Copy the bytes of `source` from `offset` on to `torn/<name>`, durably, before they are cut."""
        folder = self.folder / TORN_FOLDER
        os.close(open_own_folder(folder, make=True))
        into = open_own(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(into, "wb") as kept, open_regular(self.folder / source) as torn:
            torn.seek(offset)
            shutil.copyfileobj(torn, kept)
            kept.flush()
            self._disk.sync(kept.fileno())
        for path in (folder, self.folder):
            _sync_folder(path, self._disk)

    def drop(self, openings: Iterable[bytes] | None, blobs: Iterable[str]) -> None:
        """Write the openings that are kept in the place of all (None: all stay), and remove blobs."""
        if openings is not None:
            self.replace(DISCLOSURES, openings, 0o600)
        names = list(blobs)
        if names:
            folder = open_own_folder(self.folder / BLOB_FOLDER)
            try:
                for name in names:
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=folder)
                self._disk.sync(folder)
            finally:
                os.close(folder)

    def truncate(self, name: str, size: int) -> None:
        self._disk.truncate(self._fd[name], size)
        self._disk.sync(self._fd[name])

    def replace(self, name: str, parts: Iterable[bytes], mode: int = 0o644) -> None:
        """Write a file anew beside the old one and put it in its place, whole or not at all."""
        temporary = self.folder / f".{name}.tmp"
        with os.fdopen(open_own(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.writelines(parts)
            file.flush()
            self._disk.sync(file.fileno())
        self._disk.rename(temporary, self.folder / name)
        self._disk.sync(self._fd["."])
        os.close(self._fd.pop(name))
        self._fd[name] = open_own(self.folder / name, os.O_WRONLY | os.O_APPEND)

    def close(self) -> None:
        """Close everything, and with it give up the lock."""
        if self._blob_folder is not None:
            os.close(self._blob_folder)
            self._blob_folder = None
        while self._fd:
            os.close(self._fd.popitem()[1])


def create_files(folder: Path, disk: Disk) -> RunFiles:
    """Make a run folder and its files. Raises `UsageError` when there is a ledger, `OSError` when it cannot be."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        ledger = os.open(folder / LEDGER, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError as error:
        raise UsageError(f"There is a ledger in {folder} already. A run needs a folder of its own.") from error
    files = _open_beside(folder, disk, ledger)
    _sync_folder(folder.absolute().parent, disk)
    files.sync(".")
    return files


def _sync_folder(path: Path, disk: Disk) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        disk.sync(fd)
    finally:
        os.close(fd)


def open_files(folder: Path, disk: Disk) -> RunFiles:
    """Open an existing run folder for writing. Raises `LedgerUnavailable` when another process has it."""
    return _open_beside(folder, disk, open_own(folder / LEDGER, os.O_RDWR | os.O_APPEND))


def _open_beside(folder: Path, disk: Disk, ledger: int) -> RunFiles:
    descriptors = {LEDGER: ledger}
    try:
        try:
            fcntl.flock(ledger, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LedgerUnavailable(f"Another process is writing the ledger in {folder}.") from error
        for name, mode in ((CHECKPOINTS, 0o644), (HASHES, 0o644), (DISCLOSURES, 0o600)):
            descriptors[name] = open_own(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode)
        descriptors["."] = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except BaseException:
        for fd in descriptors.values():
            os.close(fd)
        raise
    return RunFiles(folder, disk, descriptors)
