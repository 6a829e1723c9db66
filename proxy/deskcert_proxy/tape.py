"""Flows kept for replay: each request with its answer, without their secrets, as a salted blob of its own.

    <folder>/flows.jsonl    one line a flow: method, the address's class, status, and the blob's digest
    <folder>/blobs/…        the flows themselves; files that only their owner may read

Replay matches requests as they look without their secrets (`redaction`).
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deskcert_ledger.blob import BLOB_FOLDER, blob_path, make_blob
from deskcert_proxy.records import url_class
from deskcert_proxy.redaction import Redaction
from deskcert_proxy.request import Request

if TYPE_CHECKING:
    from mitmproxy.http import Response

__all__ = ["FLOWS", "MAX_KEPT", "Tape"]

FLOWS: Final = "flows.jsonl"
MAX_KEPT: Final = 8 << 20
"""Bytes of one answer; what is longer is kept as cut, and its replay says so."""


class Tape:
    """Raises `OSError` when a flow cannot be kept: the run then has a fault of its proxy in its ledger."""

    def __init__(self, folder: Path, redaction: Redaction, *, rng: Callable[[int], bytes] = os.urandom) -> None:
        (folder / BLOB_FOLDER).mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder, self._redaction, self._rng = folder, redaction, rng
        self._file = os.open(folder / FLOWS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
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
        content = {"request": self._request(request), "response": self._response(response, body)}
        blob = make_blob(json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode(), self._rng)
        file = os.open(blob_path(self._folder, blob.name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "wb") as out:
            out.write(blob.data)
        line = {
            "flow": blob.reference(),
            "method": request.method[:32],
            "url_class": url_class(request.url),
            "status": response.status_code,
        }
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _request(self, request: Request) -> dict[str, Any]:
        types, codings = request.values("content-type"), request.values("content-encoding")
        kept = self._redaction.body(request.body, types[0] if types else "", codings)
        return {
            "method": request.method,
            "url": self._redaction.url(request.url),
            "headers": self._redaction.headers(request.headers),
            "body": base64.b64encode(kept.data).decode("ascii"),
            "withheld": kept.withheld,
        }

    def _response(self, response: Response, body: bytes) -> dict[str, Any]:
        headers = [(n.decode("latin-1").lower(), v.decode("latin-1")) for n, v in response.headers.fields]
        cut = len(body) > MAX_KEPT
        codings = [value for name, value in headers if name == "content-encoding"]
        media = next((value for name, value in headers if name == "content-type"), "")
        kept = self._redaction.body(b"" if cut else body, media, codings)
        if not kept.coded:
            headers = [(name, value) for name, value in headers if name != "content-encoding"]
        return {
            "status": response.status_code,
            "headers": self._redaction.headers(headers),
            "body": base64.b64encode(kept.data).decode("ascii"),
            "cut": cut,
            "withheld": kept.withheld,
        }
