"""Base64 that has one spelling only.

The last character before the padding carries unused bits, and lenient decoders ignore them: a flipped bit there
changes a signature's text and not its bytes. Everything here is decoded and compared with its own re-encoding, so
that no proof, note or key has two spellings. Standard alphabet: RFC 4648 section 4; URL alphabet: section 5, without
padding, as RFC 9901 uses it.
"""

from __future__ import annotations

import base64
import binascii

from deskcert_schema.errors import LedgerFormatError

__all__ = ["b64decode", "b64encode", "b64url_decode", "b64url_encode"]


def b64encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def b64decode(text: str, *, length: int | None = None) -> bytes:
    """Decode strictly. `length` is the wanted number of bytes. Raises `LedgerFormatError`."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise LedgerFormatError(f"not base64: {_short(text)}") from error
    if base64.b64encode(data) != text.encode("ascii"):
        raise LedgerFormatError(f"base64 that is not in its one canonical spelling: {_short(text)}")
    if length is not None and len(data) != length:
        raise LedgerFormatError(f"base64 of {len(data)} bytes where {length} are expected")
    return data


def b64url_encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def b64url_decode(text: str) -> bytes:
    """Decode strictly, without padding. Raises `LedgerFormatError`."""
    try:
        raw = text.encode("ascii")
        data = base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise LedgerFormatError(f"not base64url: {_short(text)}") from error
    if b64url_encode(data) != text:
        raise LedgerFormatError(f"base64url that is not in its one canonical spelling: {_short(text)}")
    return data


def _short(text: str) -> str:
    return ascii(text if len(text) <= 40 else text[:40] + "…")
