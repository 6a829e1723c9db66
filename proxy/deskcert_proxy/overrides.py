"""Methods and addresses that a request tells beside its own: in headers, in fields, in the query, in a batch.

Frameworks, gateways and content systems take them for the request's own; a forbidding rule sees all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from deskcert_proxy.bodies import Body
from deskcert_proxy.request import Request

__all__ = ["REGISTERED", "told_methods", "told_urls"]

type _Fields = tuple[tuple[str, str], ...]

REGISTERED: Final = frozenset(
    (
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY", "ACL",
        "BIND", "CHECKIN", "BASELINE-CONTROL", "CHECKOUT", "COPY", "LABEL", "LINK", "LOCK", "MERGE",
        "MKACTIVITY", "MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "ORDERPATCH", "PRI",
        "PROPFIND", "PROPPATCH", "PURGE", "REBIND", "REPORT", "SEARCH", "UNBIND", "UNCHECKOUT", "UNLINK",
        "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
    )
)  # fmt: skip
"""IANA's list of methods, and PURGE. What another does only its server knows; many take it for a GET or a POST."""
_METHOD_HEADERS: Final = (
    "x-http-method-override", "x-http-method", "x-method-override", "x-original-method", "x-forwarded-method",
    "x-http-verb", "x-request-method",
)  # fmt: skip
_METHOD_FIELDS: Final = ("_method", "x-http-method-override", "_httpmethod", "http_method")
_URL_HEADERS: Final = (
    "x-original-url", "x-rewrite-url", "x-original-uri", "x-override-url", "x-forwarded-uri", "x-rewrite-uri",
    "x-forwarded-path", "x-original-path",
)  # fmt: skip
_ROUTES: Final = ("rest_route", "_url")
"""Fields that hold the whole path in WordPress and Phalcon."""
_BARE_ROUTES: Final = ("r", "route")
"""The same in Yii and OpenCart, which write it without a slash in front; with one it is where to go afterwards."""
_METHOD_KEYS: Final = ("method", "verb", "httpmethod", "http_method")
_URL_KEYS: Final = ("url", "path", "uri", "href", "relative_url", "relativeurl", "endpoint")
_BATCHES: Final = ("requests", "batch", "operations", "atomic:operations", "calls")
_ATOMIC: Final = frozenset(("add", "update", "remove"))
"""`op` of JSON:API's atomic operations."""
_MAX_BATCH: Final = 200


def told_methods(request: Request, body: Body, query: _Fields) -> frozenset[str]:
    """The method sent and every override, in capitals."""
    told = [request.method]
    told += [value for header in _METHOD_HEADERS for value in request.values(header)]
    told += [value for name, value in (*body.fields, *query) if name.lower() in _METHOD_FIELDS]
    for document in body.documents:
        if isinstance(document, dict):
            told += [v for k, v in document.items() if k.lower() in _METHOD_FIELDS and isinstance(v, str)]
    told += [method for method, _ in _batched(request, body.documents)]
    return frozenset(piece.strip().upper() for text in told for piece in text.split(",") if piece.strip())


def told_urls(request: Request, body: Body, query: _Fields) -> tuple[str, ...]:
    """Addresses beside the request's own, absolute."""
    told = [value for header in _URL_HEADERS for value in request.values(header)]
    told += request.values("destination")  # WebDAV's COPY and MOVE
    for name, value in (*body.fields, *query):
        if name.lower() in _ROUTES or (name.lower() in _BARE_ROUTES and "/" in value and value[:1] != "/"):
            told.append(value)
    parts = urlsplit(request.url)
    base = f"{parts.scheme}://{parts.netloc}/"
    # A batch is carried out by the server that gets it: an address elsewhere in one is no request.
    told += [url for _, url in _batched(request, body.documents) if "://" not in url[:12] or url.startswith(base)]
    return tuple(dict.fromkeys(url if "://" in url[:12] else base + url.lstrip("/") for url in told))


def _batched(request: Request, documents: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    """(method, URL) of requests inside a JSON batch: OData, Microsoft's and Meta's Graph, WordPress, JSON:API. Logs of
    requests look alike, so only what stands where a batch stands counts."""
    for item in list(_members(request, documents))[:_MAX_BATCH]:
        low = {key.lower(): value for key, value in item.items() if isinstance(value, str)}
        url = next((low[key] for key in _URL_KEYS if key in low), None)
        method = next((low[key] for key in _METHOD_KEYS if low.get(key, "").upper() in REGISTERED), None)
        if method is None and low.get("op", "").lower() in _ATOMIC:
            method = "POST"
        if url is not None and method is not None:
            yield method, url


def _members(request: Request, documents: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    for document in documents:
        if isinstance(document, dict):
            lists = [v for k, v in document.items() if k.lower() in _BATCHES and isinstance(v, list)]
            yield from (item for items in lists for item in items if isinstance(item, dict))
        elif isinstance(document, list):
            here = "batch" in request.path.lower()
            yield from (item for item in document if isinstance(item, dict) and (here or "relative_url" in item))
