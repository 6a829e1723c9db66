"""gRPC-Web: the framing is checked, the message is not read (it has no schema here); the name is in the path."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Final

from deskcert_proxy.request import SAFE_METHODS, Request, Unreadable

__all__ = ["check_frames", "rpc_names"]

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


def rpc_names(
    request: Request, paths: tuple[str, ...], documents: tuple[Any, ...], text: str | None
) -> tuple[str, ...]:
    """What a request calls, by every convention that puts a name outside or on top of a message: the path (gRPC,
    Twirp, Connect, tRPC), JSON-RPC's `method`, SOAP's action, XML-RPC, AWS's target, Next.js's action."""
    found: dict[str, None] = {}
    for path in paths:
        pieces = [piece for piece in path.split("/") if piece]
        service = len(pieces) > 1 and "." in pieces[-2]
        if service:
            found |= dict.fromkeys(("/".join(pieces), "/" + "/".join(pieces), "/".join(pieces[-2:])))
        if pieces and (service or "trpc" in pieces or request.method.upper() not in SAFE_METHODS):
            found |= dict.fromkeys((pieces[-1], *pieces[-1].split(",")))  # a comma: tRPC's batches
    for header in ("soapaction", "x-amz-target", "next-action", "x-rpc-method", "grpc-method"):
        for value in request.values(header):
            bare = value.strip().strip('"')
            found |= dict.fromkeys((bare, bare.rsplit("/", 1)[-1], bare.rsplit("#", 1)[-1], bare.rsplit(".", 1)[-1]))
    found |= dict.fromkeys(name for document in documents for name in _json_rpc(document))
    if text is not None and text.lstrip()[:1] == "<":
        found |= dict.fromkeys(_xml_names(text))
    return tuple(name for name in found if name)


def _json_rpc(document: Any) -> Iterator[str]:
    for call in document if isinstance(document, list) else [document]:
        if isinstance(call, dict):
            for key, value in call.items():
                if key.casefold() in ("method", "rpc", "procedure") and isinstance(value, str):
                    yield value
                    yield value.rsplit(".", 1)[-1]


def _xml_names(text: str) -> Iterator[str]:
    """XML-RPC's method name, and the first element of a SOAP body."""
    import re

    for match in re.finditer(r"<(?:[\w.-]+:)?methodName\s*>\s*([^<]+?)\s*<", text):
        yield match[1]
    for match in re.finditer(r"<(?:[\w.-]+:)?Body[^>]*>\s*(?:<!--.*?-->\s*)*<(?:[\w.-]+:)?([\w.-]+)", text, re.DOTALL):
        yield match[1]
