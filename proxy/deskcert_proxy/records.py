"""What a request leaves in the ledger: its shape in clear, its content as commitments.

`url_class` has numbers, identifiers and query values taken out; the URL itself is a salted commitment with an opening.
`body_digest` is over the run's salt and the body, so that it is no oracle for what can be guessed; the salt is a
commitment in the first heartbeat, and whoever holds its opening can check a body against its digest.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from deskcert_ledger import Secret
from deskcert_proxy.classify import Reading
from deskcert_proxy.request import Request

__all__ = ["body_digest", "describe", "describe_message", "url_class"]

_IDENTITY: Final = re.compile(
    r"[0-9]+|[0-9a-fA-F]{8,}|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|(?=.*[0-9])[A-Za-z0-9_=-]{16,}|.*[^\x21-\x7e].*|.{65,}"
)
_MAX_CLASS: Final = 512
_DESTINATIONS: Final = ("sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-purpose")


def url_class(url: str) -> str:
    """`http://127.0.0.1:8000/api/payouts/:id/send?confirm`."""
    parts = urlsplit(url)
    path = "/".join(":id" if _IDENTITY.fullmatch(piece) else piece for piece in parts.path.split("/"))
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    shown = [name if name.isascii() and not _IDENTITY.fullmatch(name) else ":name" for name in names]
    host = parts.netloc.rpartition("@")[2]
    whole = f"{parts.scheme}://{host}{path}" + ("?" + "&".join(sorted(set(shown))) if names else "")
    return whole if len(whole) <= _MAX_CLASS else whole[:_MAX_CLASS] + "…"


def body_digest(body: bytes, salt: bytes) -> str:
    return f"sha256-salted:{sha256(salt + body).hexdigest()}"


def describe(reading: Reading, salt: bytes) -> dict[str, Any]:
    request = reading.request
    told: dict[str, Any] = {
        "method": request.method.upper()[:32],
        "url_class": url_class(request.url),
        "url": Secret(request.url),
        "class": reading.kind.value,
        "how": "none",
    }
    if request.body:
        told["body_digest"] = body_digest(request.body, salt)
        told["body_size_log2"] = len(request.body).bit_length()
        media = request.values("content-type")
        if media:
            told["content_type"] = media[0].partition(";")[0].strip().lower()[:100]
    overrides = sorted(reading.methods - {request.method.upper()})
    if overrides:
        told["overrides"] = [method[:32] for method in overrides][:8]
    if reading.calls is not None:
        told["operations"] = [
            {"kind": o.kind, "name": (o.name or "")[:100], "fields": [root[:100] for root in o.roots[:8]]}
            for o in reading.calls.operations[:8]
        ]
    return told | _origin(request)


def _origin(request: Request) -> dict[str, Any]:
    """How the browser says the request came about."""
    told = {name.removeprefix("sec-").replace("-", "_"): request.values(name) for name in _DESTINATIONS}
    found: dict[str, Any] = {name: values[0][:60] for name, values in told.items() if values}
    if request.upgrade:
        found["upgrade"] = request.upgrade[:40]
    return found


def describe_message(url: str, kind: str, content: bytes, salt: bytes) -> dict[str, Any]:
    return {
        "method": "WEBSOCKET",
        "url_class": url_class(url),
        "url": Secret(url),
        "class": kind,
        "how": "none",
        "body_digest": body_digest(content, salt),
        "body_size_log2": len(content).bit_length(),
    }
