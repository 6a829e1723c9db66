"""`Content-Encoding`, undone, with limits. One answer or none: what is left over, cut off, doubled or unknown is
`Unreadable`, because some servers would read it and others would not."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable
from typing import Final

from deskcert_proxy.request import Unreadable

__all__ = ["MAX_DECODED", "decode_body"]

MAX_DECODED: Final = 32 << 20
"""Bytes of a body after decoding."""
_MAX_CODINGS: Final = 3
"""In one chain; nobody sends more."""


def decode_body(body: bytes, content_encoding: Iterable[str], *, limit: int = MAX_DECODED) -> bytes:
    """The body without its codings, which are undone from the last to the first (RFC 9110, 8.4)."""
    names = [name.strip().lower() for line in content_encoding for name in line.split(",")]
    if any(not name for name in names):
        raise Unreadable("the Content-Encoding has an empty entry")
    coded = [name for name in names if name != "identity"]
    if len(coded) > _MAX_CODINGS:
        raise Unreadable(f"{len(coded)} content codings in a row")
    if not body:
        return body
    for name in reversed(coded):
        undo = _CODINGS.get(name)
        if undo is None:
            raise Unreadable(f"the content coding {name[:40]!r} is not known")
        body = undo(body, limit)
    return body


def _gzip(body: bytes, limit: int) -> bytes:
    return _zlib(body, limit, "gzip", zlib.MAX_WBITS | 16)


def _deflate(body: bytes, limit: int) -> bytes:
    """With the zlib header, as RFC 9110 says; the bare form is read by some servers only."""
    return _zlib(body, limit, "deflate", zlib.MAX_WBITS)


def _zlib(body: bytes, limit: int, name: str, bits: int) -> bytes:
    engine = zlib.decompressobj(bits)
    try:
        out = engine.decompress(body, limit + 1)
    except zlib.error as error:
        raise Unreadable(f"the body says {name} and is not") from error
    if len(out) > limit:
        raise Unreadable(f"the body is over {limit} bytes when unpacked")
    if not engine.eof:
        raise Unreadable(f"the {name} body is cut off")
    if engine.unused_data:
        raise Unreadable(f"something follows the end of the {name} body")
    return out


def _brotli(body: bytes, limit: int) -> bytes:
    try:
        import brotli  # type: ignore[import-untyped]
    except ImportError as error:
        raise Unreadable("br cannot be unpacked here: pip install 'deskcert[proxy]'") from error
    engine = brotli.Decompressor()
    parts: list[bytes] = []
    size, fed = 0, body
    try:
        while not engine.is_finished():
            part = engine.process(fed, output_buffer_limit=1 << 16)
            fed = b""
            parts.append(part)
            size += len(part)
            if size > limit:
                raise Unreadable(f"the body is over {limit} bytes when unpacked")
            if not part and engine.can_accept_more_data() and not engine.is_finished():
                raise Unreadable("the br body is cut off")
    except brotli.error as error:
        raise Unreadable("the body says br and is not") from error
    return b"".join(parts)


def _zstd(body: bytes, limit: int) -> bytes:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError as error:
        raise Unreadable("zstd cannot be unpacked here: pip install 'deskcert[proxy]'") from error
    # RFC 9659: a decoder need not support windows over 8 MiB.
    engine = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 23})
    try:
        out = engine.decompress(body, max_length=limit + 1)
    except (zstd.ZstdError, EOFError) as error:
        raise Unreadable("the body says zstd and is not") from error
    if len(out) > limit:
        raise Unreadable(f"the body is over {limit} bytes when unpacked")
    if not engine.eof:
        raise Unreadable("the zstd body is cut off")
    if engine.unused_data:
        raise Unreadable("something follows the end of the zstd body")
    return bytes(out)


_CODINGS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
