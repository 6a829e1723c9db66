"""Opening files of a folder that somebody else made: regular ones only, and no more of them than is asked for.

A named pipe would block whoever opens it, a device never end; both can stand in a folder that was unpacked. And a link
in it would have a recovery write somewhere else.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

__all__ = ["open_own", "open_own_folder", "open_regular", "read_bounded"]


def open_regular(path: Path) -> BinaryIO:
    """Open for reading. Raises `OSError`, for anything but a regular file too."""
    return os.fdopen(_regular(path, os.O_RDONLY, 0), "rb")


def open_own(path: Path, flags: int, mode: int = 0o644) -> int:
    """A descriptor to write to: of a regular file that is in this place itself. Raises `OSError`, for a link too."""
    return _regular(path, flags | os.O_NOFOLLOW, mode)


def open_own_folder(path: Path, *, make: bool = False) -> int:
    """A descriptor of a folder that is in this place itself. Raises `OSError`, for a link too."""
    if make:
        path.mkdir(exist_ok=True)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _regular(path: Path, flags: int, mode: int) -> int:
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return fd


def read_bounded(path: Path, limit: int) -> bytes:
    """All of it, or `limit` + 1 bytes of a longer one. Raises `OSError`."""
    with open_regular(path) as file:
        return file.read(limit + 1)
