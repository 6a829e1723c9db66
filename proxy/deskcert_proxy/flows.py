"""From mitmproxy's flow to our frozen `Request`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskcert_proxy.request import Request, Unreadable

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow
    from mitmproxy.http import Request as Sent

__all__ = ["request_of", "url_of"]

_PORTS = {"http": 80, "https": 443}


def url_of(sent: Sent) -> str:
    """Where the request really goes: the connection's host and port, not what a header says."""
    host = f"[{sent.host}]" if ":" in sent.host else sent.host
    port = "" if _PORTS.get(sent.scheme) == sent.port else f":{sent.port}"
    path = sent.path if sent.path.startswith("/") else "/" + sent.path
    return f"{sent.scheme}://{host}{port}{path}"


def request_of(flow: HTTPFlow) -> Request:
    """Raises `Unreadable` when the body was not kept."""
    sent = flow.request
    if sent.raw_content is None:
        raise Unreadable("the body was streamed past the proxy")
    headers = _texts(sent.headers.fields)
    if sent.authority and not any(name == "host" for name, _ in headers):
        headers = (("host", sent.authority), *headers)
    trailers = _texts(sent.trailers.fields) if sent.trailers is not None else ()
    # A server may take a trailer for a header: it is read as one.
    return Request(sent.method, url_of(sent), headers + trailers, sent.raw_content, trailers)


def _texts(fields: tuple[tuple[bytes, bytes], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in fields)
