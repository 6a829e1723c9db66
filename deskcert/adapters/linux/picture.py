"""A picture of one window, with a frame around the target: from the X server, as it stands on the screen."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from typing import Any, Final

from deskcert.adapters.linux.facts import Box
from deskcert_schema.errors import AdapterError

__all__ = ["framed", "png", "taken"]

_FRAME: Final = (255, 0, 64)
_THICK: Final = 3


def taken(window: Box) -> Callable[[Any], tuple[int, int, int, int, bytes]]:
    """x, y, width, height and the pixels, three bytes each, of the part of the window that is on the screen."""

    def read(display: Any) -> tuple[int, int, int, int, bytes]:
        from Xlib import X

        screen = display.screen()
        left, top = max(0, window[0]), max(0, window[1])
        width = min(window[0] + window[2], screen.width_in_pixels) - left
        height = min(window[1] + window[3], screen.height_in_pixels) - top
        if width <= 0 or height <= 0:
            raise AdapterError("the window is not on the screen")
        if screen.root_depth not in (24, 32):
            raise AdapterError(f"pictures need a screen of 24 bits, not {screen.root_depth}")
        raw = screen.root.get_image(left, top, width, height, X.ZPixmap, 0xFFFFFFFF).data
        pixels = bytearray(width * height * 3)
        pixels[0::3], pixels[1::3], pixels[2::3] = raw[2::4], raw[1::4], raw[0::4]
        return left, top, width, height, bytes(pixels)

    return read


def framed(width: int, height: int, pixels: bytes, box: Box) -> bytes:
    """The same pixels with a frame around `box`, which counts from the picture's corner. What is outside is cut."""
    out = bytearray(pixels)
    x, y, wide, tall = box
    left, right = max(0, x - _THICK), min(width, x + wide + _THICK)
    if left >= right:
        return bytes(out)
    for row in range(max(0, y - _THICK), min(height, y + tall + _THICK)):
        inside = y <= row < y + tall
        spans = ((left, min(right, x)), (max(left, x + wide), right)) if inside else ((left, right),)
        for begin, end in spans:
            if begin < end:
                out[(row * width + begin) * 3 : (row * width + end) * 3] = bytes(_FRAME) * (end - begin)
    return bytes(out)


def png(width: int, height: int, pixels: bytes) -> str:
    """In base 64. Source: the PNG specification, colour type 2, filter 0."""
    rows = b"".join(b"\0" + pixels[i * width * 3 : (i + 1) * width * 3] for i in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()
