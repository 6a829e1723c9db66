"""What the page gets instead of the server's answer: 403 that names the rule. Never a broken connection, which
Chromium would answer by sending the request again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from deskcert_proxy.rules import Block

if TYPE_CHECKING:
    from mitmproxy.http import Response

__all__ = ["FAULT", "NO_RECORD", "refusal"]

FAULT: Final = Block("net-fault", "the proxy failed while it looked at this request")
NO_RECORD: Final = Block("net-no-record", "the record of this request could not be written")


def refusal(block: Block, *, origin: str | None = None) -> Response:
    from mitmproxy.http import Response

    headers = {"content-type": "application/json", "cache-control": "no-store", "x-deskcert": block.rule}
    if origin is not None and origin.isprintable() and origin.isascii():
        # Without it a page of another origin would see a network error and try again.
        headers |= {"access-control-allow-origin": origin, "access-control-allow-credentials": "true"}
    body = {"error": "blocked by deskcert", "rule": block.rule, "why": block.why}
    return Response.make(403, json.dumps(body, ensure_ascii=True).encode(), headers)
