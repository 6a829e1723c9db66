"""URLs and hosts: every spelling that servers answer alike, globs over them, and which host is named.

The same glob language as the policy's other URLs: `**` is any text, `*` any text without a slash, a question mark
stands for itself.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

__all__ = ["host_matches", "host_name", "paths", "resolved", "spellings", "url_regex"]

_FORMAT: Final = re.compile(r"\.[A-Za-z]{2,5}$")
_PLAIN: Final = re.compile(r"https?://[\w.:\[\]-]+(?:/(?!\.)[\w-]+(?:\.[A-Za-z0-9]+)*)*", re.ASCII)
_INVISIBLE: Final = re.compile("[\x00-\x20\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]")
_PARAMETERS: Final = re.compile(r";[^/]*")
_SLASHES: Final = re.compile(r"(?<!:)//+")
_WIDE_ESCAPE: Final = re.compile(r"%u([0-9A-Fa-f]{4})")
_OVERLONG: Final = re.compile(rb"[\xc0\xc1][\x80-\xbf]|\xe0[\x80\x81][\x80-\xbf]")
_NUMBERS: Final = re.compile(r"(?:0x[0-9a-f]+|[0-9]+)(?:\.(?:0x[0-9a-f]+|[0-9]+)){0,3}")
_PORTS: Final = {"http": "80", "https": "443", "ws": "80", "wss": "443"}
_ROUNDS: Final = 3


@lru_cache(maxsize=2048)
def spellings(url: str, *, query: bool = True) -> tuple[str, ...]:
    """The URL as sent, and its path percent-decoded up to three times (overlong UTF-8 and `%u0061` too), with dots,
    doubled slashes, backslashes, path parameters, invisible characters, wide letters, what follows a null byte,
    trailing slashes and format endings (`/orders/1.json`) taken away. `query`: also with the query."""
    whole = url.split("#", 1)[0]
    bare = whole.split("?", 1)[0]
    found: dict[str, None] = dict.fromkeys((whole, bare) if query else (bare,))
    if _PLAIN.fullmatch(bare):
        found[_FORMAT.sub("", bare)] = None
    else:
        if query or "?" not in url:
            found[url] = None
        found |= dict.fromkeys(_decoded(bare))
        for text in tuple(found):
            found |= dict.fromkeys(_tidied(text))
    for text in tuple(found):
        found |= dict.fromkeys(_other_authorities(text))
    return tuple(found)


@lru_cache(maxsize=2048)
def resolved(url: str) -> tuple[str, ...]:
    """What servers make of the path: decoded, without dots and the like. An allowing rule must hold for each."""
    bare = url.split("#", 1)[0].split("?", 1)[0]
    if _PLAIN.fullmatch(bare):
        return (bare,)
    return tuple(dict.fromkeys(_tidied(text)[0] for text in (bare, *_decoded(bare))))


def _decoded(text: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for _ in range(_ROUNDS):
        plain = _WIDE_ESCAPE.sub(lambda m: chr(int(m[1], 16)), text)
        data = _OVERLONG.sub(_shortened, unquote_to_bytes(plain))
        text = data.decode("utf-8", "replace")
        if text in found:
            break
        found[text] = None
    for each in tuple(found):
        if not each.isascii():
            found[unicodedata.normalize("NFKC", each)] = None
        if "\0" in each:
            found[each.partition("\0")[0]] = None
    return tuple(found)


def _shortened(match: re.Match[bytes]) -> bytes:
    """An ASCII character that was written in two or three bytes, which old decoders take."""
    *high, low = match[0]
    code = ((high[-1] & 0x3F) << 6 | (low & 0x3F)) & 0x7F
    return bytes([code])


def _other_authorities(url: str) -> tuple[str, ...]:
    """The same host and port, written otherwise: a trailing dot, a number for an address, the port that goes without
    saying."""
    scheme, mark, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    host, _, port = (
        authority.rpartition(":") if not authority.endswith("]") and ":" in authority else (authority, "", "")
    )
    if not mark or not host:
        return ()
    name = _address(host_name(host))
    shown = f"[{name}]" if ":" in name else name
    usual = _PORTS.get(scheme.lower(), "")
    ports = ("", f":{usual}") if port in ("", usual) else (f":{port}",)
    return tuple(f"{scheme}://{shown}{told}{slash}{path}" for told in ports)


def _address(name: str) -> str:
    """`2130706433`, `0x7f.1`, `127.1` as resolvers take them."""
    if not _NUMBERS.fullmatch(name):
        return name
    try:
        return socket.inet_ntoa(socket.inet_aton(name))
    except OSError:
        return name


def _tidied(text: str) -> tuple[str, ...]:
    head, query_mark, query = text.partition("?")
    plain = _INVISIBLE.sub("", head.replace("\\", "/"))
    plain = _without_dots(_SLASHES.sub("/", _PARAMETERS.sub("", plain)))
    short = plain.rstrip("/. ")
    return (plain, plain + query_mark + query, short, _FORMAT.sub("", short))


def _without_dots(text: str) -> str:
    scheme, mark, rest = text.partition("://")
    if not mark:
        scheme, rest = "", text
    out: list[str] = []
    for piece in rest.split("/"):
        if piece == "..":
            if len(out) > 1:
                out.pop()
        elif piece != ".":
            out.append(piece)
    return scheme + mark + "/".join(out)


@lru_cache(maxsize=2048)
def paths(url: str) -> tuple[str, ...]:
    """The paths among the spellings, without query, scheme and host."""
    found: dict[str, None] = {}
    for text in spellings(url):
        bare = text.split("?", 1)[0].split("#", 1)[0]
        _, mark, rest = bare.partition("://")
        found["/" + rest.partition("/")[2] if mark else bare] = None
    return tuple(found)


def url_regex(kind: str, source: str) -> str:
    if kind == "regex":
        return f".*?(?:{source}).*"  # as everywhere, an expression may match any part
    if kind == "exact":
        return re.escape(source)
    parts = {"**": ".*", "*": "[^/]*"}
    out = "".join(parts.get(piece) or re.escape(piece) for piece in re.split(r"(\*\*|\*)", source) if piece)
    # "**/payouts/**" also means the page /payouts itself.
    return out[: -len("/.*")] + "(?:/.*)?" if out.endswith("/.*") else out


@lru_cache(maxsize=512)
def host_name(text: str) -> str:
    """One spelling of a host: small letters, no trailing dot, IPv6 in its short form, names in ASCII."""
    name = text.strip().strip("[]").rstrip(".").lower()
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        return name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError:
        return name


@lru_cache(maxsize=1024)
def host_matches(pattern: str, host: str, port: int | None) -> bool:
    """`127.0.0.1`, `localhost:8080`, `[::1]`, `*.example.org` (which is not `example.org`)."""
    wanted, wanted_port = _split(pattern)
    if wanted_port is not None and wanted_port != port:
        return False
    name = host_name(host)
    if wanted == "*":
        return True
    if wanted.startswith("*."):
        return name.endswith(wanted[1:]) and len(name) > len(wanted) - 1
    return "*" not in wanted and host_name(wanted) == name


def _split(pattern: str) -> tuple[str, int | None]:
    if pattern.count(":") > 1 and not pattern.startswith("["):
        return pattern.lower(), None  # IPv6 without brackets
    name, colon, port = pattern.rpartition(":")
    if colon and port.isdecimal() and not name.endswith(":"):
        return name.lower(), int(port)
    return pattern.lower(), None
