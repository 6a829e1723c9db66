"""What the tape of flows leaves out: the values of names that are secret by their nature, or that the policy names.

One function for recording and for replay: a request is matched as it looks without its secrets. What cannot be read is
withheld as a whole.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self
from urllib.parse import unquote_plus

from deskcert_proxy.codings import decode_body
from deskcert_proxy.multipart import read_multipart
from deskcert_proxy.request import Unreadable
from deskcert_proxy.strict_json import NotJson, loads, looks_like_json, utf8
from deskcert_proxy.texts import Match, Pattern

__all__ = ["REDACTED", "Kept", "Redaction"]

REDACTED: Final = "redacted"
_ALWAYS: Final = (
    "*password*", "*passwd*", "*secret*", "*token*", "*authorization*", "cookie", "set-cookie", "*api-key*", "*apikey*",
    "*api_key*", "*csrf*", "*xsrf*", "*session*", "otp", "pin", "cvv", "cvc", "*cardnumber*", "*card_number*", "iban",
)  # fmt: skip
_TAG: Final = re.compile(r"<(?:input|meta)\b[^>]{0,4096}>", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(r"(name|id|value|content)(\s*=\s*)(\"[^\"]*\"|'[^']*'|[^\s>\"']+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Kept:
    """A body without its secrets; `coded` says whether it still has its Content-Encoding."""

    data: bytes
    coded: bool
    withheld: bool = False


@dataclass(frozen=True)
class Redaction:
    names: tuple[Pattern, ...]

    @classmethod
    def of(cls, policy: Mapping[str, Any]) -> Self:
        """Of a policy's `network.secrets`, and what is always left out. Raises `ConfigError`."""
        told = policy.get("network", {}).get("secrets", ())
        own = [Pattern.read(raw, f"network.secrets[{n}]") for n, raw in enumerate(told)]
        return cls((*own, *(Pattern.read({"glob": glob}, "") for glob in _ALWAYS)))

    def secret(self, name: str) -> bool:
        return _secret(self.names, name)

    def headers(self, headers: Iterable[tuple[str, str]]) -> list[list[str]]:
        return [[name, value] for name, value in headers if not self.secret(name)]

    def url(self, url: str) -> str:
        head, mark, query = url.partition("?")
        return head + mark + self._fields(query) if mark else url

    def body(self, data: bytes, content_type: str, content_encoding: Iterable[str]) -> Kept:
        """Never raises."""
        if not data:
            return Kept(data, coded=True)
        media = content_type.partition(";")[0].strip().lower()
        try:
            plain = decode_body(data, content_encoding)
            scrubbed = self._scrubbed(plain, media, content_type)
        except (Unreadable, NotJson, ValueError, RecursionError):
            return Kept(b"", coded=False, withheld=True)
        return Kept(data, coded=True) if scrubbed == plain else Kept(scrubbed, coded=False)

    def _scrubbed(self, data: bytes, media: str, content_type: str) -> bytes:
        """Raises `Unreadable` for what cannot be told."""
        if media == "multipart/form-data":
            if any(self.secret(part.name) for part in read_multipart(data, content_type)):
                raise Unreadable("a part is secret")
            return data
        if media == "application/x-www-form-urlencoded":
            return self._fields(utf8(data)).encode()
        try:
            text = utf8(data)
        except Unreadable:
            if media.startswith(("image/", "audio/", "video/", "font/")) or media == "application/octet-stream":
                return data
            raise
        if "html" in media:
            return _TAG.sub(lambda tag: self._tag(tag[0]), text).encode()
        if "json" in media or looks_like_json(text):
            whole = loads(text)
            kept = self._walk(whole)
            return data if kept == whole else json.dumps(kept, ensure_ascii=False, default=str).encode()
        return data

    def _fields(self, text: str) -> str:
        pieces = re.split("([&;])", text)
        return "".join(
            f"{piece.partition('=')[0]}={REDACTED}" if "=" in piece and self._named(piece) else piece
            for piece in pieces
        )

    def _named(self, piece: str) -> bool:
        name = unquote_plus(piece.partition("=")[0])
        return any(self.secret(part) for part in re.split(r"[\[\].]+", name) if part)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: REDACTED if self.secret(key) else self._walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        return value

    def _tag(self, tag: str) -> str:
        told = [(a[1].lower(), html.unescape(a[3].strip("\"'"))) for a in _ATTRIBUTE.finditer(tag)]
        if not any(name in ("name", "id") and self.secret(value) for name, value in told):
            return tag
        return _ATTRIBUTE.sub(
            lambda a: f'{a[1]}{a[2]}"{REDACTED}"' if a[1].lower() in ("value", "content") else a[0], tag
        )


@lru_cache(maxsize=4096)
def _secret(names: tuple[Pattern, ...], name: str) -> bool:
    return any(pattern.hits(name) is not Match.NO for pattern in names)
