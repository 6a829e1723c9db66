"""`multipart/form-data` as browsers and clients send it (RFC 7578). Everything that parsers are known to disagree
about is `Unreadable`: bare line feeds, a preamble, transfer encodings, names given twice, unfinished bodies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from deskcert_proxy.request import Unreadable, parameters

__all__ = ["Part", "read_multipart"]

_MAX_PARTS: Final = 1000
_MAX_HEADER: Final = 8192
_BOUNDARY: Final = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    filename: str | None
    media_type: str
    data: bytes


def read_multipart(body: bytes, content_type: str) -> tuple[Part, ...]:
    told = parameters(content_type)
    boundary = told.get("boundary", "")
    if any("*" in name for name in told):
        raise Unreadable("the boundary is told in pieces (RFC 2231), which some readers put together")
    if not _BOUNDARY.fullmatch(boundary):
        raise Unreadable("multipart without a usable boundary")
    mark = b"--" + boundary.encode("ascii")
    if not body.startswith(mark):
        raise Unreadable("a multipart body does not begin with its boundary")
    pieces = (b"\r\n" + body).split(b"\r\n" + mark)
    if b"".join(pieces).count(mark):
        raise Unreadable("a multipart boundary stands where it is no boundary")
    if pieces[-1].rstrip(b"\r\n") != b"--":
        raise Unreadable("a multipart body does not end with its closing boundary")
    if len(pieces) - 2 > _MAX_PARTS:
        raise Unreadable(f"more than {_MAX_PARTS} parts")
    return tuple(_part(piece) for piece in pieces[1:-1])


def _part(piece: bytes) -> Part:
    if not piece.startswith(b"\r\n"):
        raise Unreadable("something stands behind a multipart boundary")
    head, blank, data = piece[2:].partition(b"\r\n\r\n")
    if not blank:
        raise Unreadable("a part has no end of its headers")
    headers = _headers(head)
    disposition = headers.get("content-disposition", "")
    if disposition.partition(";")[0].strip().lower() != "form-data":
        raise Unreadable("a part is no form-data")
    told = parameters(disposition)
    if "name" not in told or any(name.endswith("*") or name[-1:].isdigit() for name in told):
        raise Unreadable("the name of a part cannot be read in one way")
    if headers.get("content-transfer-encoding", "binary").strip().lower() not in ("binary", "8bit", "7bit"):
        raise Unreadable("a part has a transfer encoding")
    media = headers.get("content-type", "")
    if media.lower().startswith("multipart/"):
        raise Unreadable("multipart within multipart")
    return Part(told["name"], told.get("filename"), media.partition(";")[0].strip().lower(), data)


def _headers(head: bytes) -> dict[str, str]:
    if len(head) > _MAX_HEADER:
        raise Unreadable("the headers of a part are too long")
    found: dict[str, str] = {}
    for line in head.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon or b"\n" in line or b"\r" in line or b"\0" in line or name != name.strip():
            raise Unreadable("a header of a part cannot be read")
        key = name.decode("latin-1").lower()
        if key in found:
            raise Unreadable(f"the header {key[:40]} of a part stands there twice")
        try:
            found[key] = value.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise Unreadable("a header of a part is not UTF-8") from error
    return found
