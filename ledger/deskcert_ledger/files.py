"""Opening files of a folder that somebody else made: regular ones only, and no more of them than is asked for.

A named pipe would block whoever opens it, a device never end; both can stand in a folder that was unpacked.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

__all__ = ["open_regular", "read_bounded"]


def open_regular(path: Path) -> BinaryIO:
    """Open for reading. Raises `OSError`, for anything but a regular file too."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return os.fdopen(fd, "rb")


def read_bounded(path: Path, limit: int) -> bytes:
    """All of it, or `limit` + 1 bytes of a longer one. Raises `OSError`."""
    with open_regular(path) as file:
        return file.read(limit + 1)
