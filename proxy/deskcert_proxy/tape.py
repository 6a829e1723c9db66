"""Flows kept for replay: each request with its answer, salted, in files that only their owner may read.

Cookies, authorization and what the policy calls secret are taken out before anything is written; replay matches
requests without them.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deskcert_proxy.request import Request

if TYPE_CHECKING:
    from mitmproxy.http import Response

__all__ = ["MAX_KEPT", "Tape", "kept_headers"]

MAX_KEPT: Final = 8 << 20
"""Bytes of one answer; what is longer is kept as cut, and its replay says so."""
_SECRET_HEADERS: Final = frozenset(
    ("authorization", "cookie", "set-cookie", "proxy-authorization", "x-api-key", "x-csrf-token", "x-xsrf-token")
)


def kept_headers(headers: Iterable[tuple[str, str]]) -> list[list[str]]:
    return [[name, value] for name, value in headers if name not in _SECRET_HEADERS]


class Tape:
    """Appends one JSON line a flow to `flows.jsonl` in `folder`. Raises `OSError`, which blocks the request."""

    def __init__(self, folder: Path, *, rng: Callable[[int], bytes] = os.urandom) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = os.open(folder / "flows.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._rng = rng
        self._requests: dict[str, Request] = {}
        self._answers: dict[str, bytearray] = {}

    def sent(self, flow: str, request: Request) -> None:
        self._requests[flow] = request

    def keep(self, flow: str, _response: Response) -> Callable[[bytes], bytes]:
        """For mitmproxy's `stream`: lets chunks pass and keeps a copy."""
        kept = self._answers[flow] = bytearray()

        def pass_on(chunk: bytes) -> bytes:
            if len(kept) <= MAX_KEPT:
                kept.extend(chunk)
            return chunk

        return pass_on

    def done(self, flow: str, response: Response) -> None:
        request = self._requests.pop(flow, None)
        body = bytes(self._answers.pop(flow, b"")) or (response.raw_content or b"")
        if request is None:
            return
        line = {
            "salt": self._rng(16).hex(),
            "request": _request(request),
            "response": {
                "status": response.status_code,
                "headers": kept_headers(
                    (n.decode("latin-1").lower(), v.decode("latin-1")) for n, v in response.headers.fields
                ),
                "body": base64.b64encode(body[:MAX_KEPT]).decode("ascii"),
                "cut": len(body) > MAX_KEPT,
            },
        }
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")


def _request(request: Request) -> dict[str, Any]:
    return {
        "method": request.method,
        "url": request.url,
        "headers": kept_headers(request.headers),
        "body": base64.b64encode(request.body).decode("ascii"),
    }
