"""Unix sockets that this user alone can reach."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

__all__ = ["peer_uid", "private_listener"]

_MAX_PATH = 107
"""Bytes of a Unix socket's path, on Linux."""


def private_listener(path: Path, *, backlog: int = 16) -> socket.socket:
    """Listening, with mode 0600 from the first moment. Raises `OSError`."""
    if len(os.fsencode(path)) > _MAX_PATH:
        raise OSError(0, f"the path of the socket {path} is longer than {_MAX_PATH} bytes")
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        made.bind(str(path))
    finally:
        os.umask(before)
    made.listen(backlog)
    return made


def peer_uid(connection: socket.socket) -> int:
    """Whose process is at the other end, from the kernel."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, uid, _gid = struct.unpack("3i", credentials)
    return int(uid)
