"""A request as the proxy saw it: one frozen value, no network behind it; and the one reason for distrust."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from deskcert_schema.errors import ContractError

__all__ = ["SAFE_METHODS", "Kind", "Request", "Unreadable", "check_form", "parameters"]

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"})
"""Methods that only read, by RFC 9110, by WebDAV (RFC 4918, 3253, 5323) and by the draft of QUERY."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_NO_TARGET: Final = re.compile(r"[\x00-\x20\x7f]")
_NO_VALUE: Final = re.compile(r"[\x00\r\n]")
_PARAMETER: Final = re.compile(r';\s*([A-Za-z0-9!#$%&\'*+.^_`|~-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^;"\s]*)\s*(?=;|$)')


class Kind(StrEnum):
    READ = "read"
    WRITE = "write"
    UNKNOWN = "unknown"


class Unreadable(ContractError):
    """Bytes that two readers could read differently. `str()` says why."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    """As sent; a server may care about its case."""
    url: str
    """Absolute, as sent: scheme, host, port, path and query."""
    headers: tuple[tuple[str, str], ...]
    """Names in small letters; every line of its own, in order."""
    body: bytes = b""
    """As sent, `Content-Encoding` still on it."""
    trailers: tuple[tuple[str, str], ...] = ()

    def values(self, name: str) -> tuple[str, ...]:
        """Every line of a header; CGI and WSGI know no difference between `-` and `_` in its name."""
        return tuple(value for key, value in self.headers if key == name or key.replace("_", "-") == name)

    def one(self, name: str) -> str | None:
        """The only line of a header; None without one. Raises `Unreadable` when lines contradict each other."""
        found = set(self.values(name))
        if len(found) > 1:
            raise Unreadable(f"the header {name} stands there {len(found)} times with different values")
        return found.pop() if found else None

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def query(self) -> str:
        return urlsplit(self.url).query

    @property
    def media_type(self) -> str:
        """`application/json`, in small letters, or "". Raises `Unreadable`."""
        return (self.one("content-type") or "").partition(";")[0].strip().lower()

    @property
    def upgrade(self) -> str:
        """The protocol a handshake asks for, or ""."""
        return ", ".join(self.values("upgrade")).strip().lower()


def check_form(request: Request) -> None:
    """What HTTP/2 can carry and HTTP/1 cannot: forwarded to an older server, a method with a blank in it is another
    request line. Raises `Unreadable` (RFC 9113, 8.2.1 and 8.3; RFC 9110, 5.1, 5.5 and 9.1)."""
    if not _TOKEN.fullmatch(request.method):
        raise Unreadable("the method is no word")
    if _NO_TARGET.search(request.url):
        raise Unreadable("a blank or a control character in the URL")
    for name, value in request.headers:
        if not _TOKEN.fullmatch(name) or _NO_VALUE.search(value):
            raise Unreadable("a header that HTTP/1 cannot carry")


def parameters(header: str) -> dict[str, str]:
    """`; name=value` parameters of a header. Raises `Unreadable` for one that stands there twice or is malformed."""
    head, semicolon, rest = header.partition(";")
    del head
    found: dict[str, str] = {}
    text, at = semicolon + rest, 0
    while at < len(text):
        match = _PARAMETER.match(text, at)
        if match is None:
            if text[at:].strip("; \t"):
                raise Unreadable(f"the parameters {text[at : at + 60]!r} of a header cannot be read")
            break
        name, value = match[1].lower(), match[2]
        if name in found:
            raise Unreadable(f"the parameter {name} of a header stands there twice")
        found[name] = re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
        at = match.end()
    return found
