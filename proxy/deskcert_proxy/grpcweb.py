"""gRPC-Web: the framing is checked, the message is not read (it has no schema here); the name is in the path."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from deskcert_proxy.request import Unreadable

__all__ = ["check_frames"]

_KNOWN_FLAGS: Final = frozenset((0x00, 0x01, 0x80, 0x81))


def check_frames(data: bytes, media: str) -> int:
    """Number of frames. Raises `Unreadable` when lengths do not add up: readers would see different messages."""
    if media.startswith("application/grpc-web-text"):
        try:
            data = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise Unreadable("a gRPC-Web text body is not base64") from error
    at, frames = 0, 0
    while at < len(data):
        if len(data) - at < 5 or data[at] not in _KNOWN_FLAGS:
            raise Unreadable("a gRPC frame has no header")
        at += 5 + int.from_bytes(data[at + 1 : at + 5], "big")
        frames += 1
    if at != len(data):
        raise Unreadable("a gRPC frame is cut off")
    return frames
