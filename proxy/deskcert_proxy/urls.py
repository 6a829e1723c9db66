"""URLs and hosts: every spelling that servers answer alike, globs over them, and which host is named.

The same glob language as the policy's other URLs: `**` is any text, `*` any text without a slash, a question mark
stands for itself.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

__all__ = ["host_matches", "host_name", "paths", "spellings", "url_regex"]

_FORMAT: Final = re.compile(r"\.[A-Za-z]{2,5}$")
_PLAIN: Final = re.compile(r"https?://[\w.:\[\]-]+(?:/(?!\.)[\w-]+(?:\.[A-Za-z0-9]+)*)*", re.ASCII)
_INVISIBLE: Final = re.compile("[\x00-\x20\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]")
_PARAMETERS: Final = re.compile(r";[^/]*")
_SLASHES: Final = re.compile(r"(?<!:)//+")
_ROUNDS: Final = 3


@lru_cache(maxsize=2048)
def spellings(url: str) -> tuple[str, ...]:
    """The URL as sent, without its query, percent-decoded up to three times, with dots, doubled slashes, backslashes,
    path parameters, invisible characters, trailing slashes and format endings (`/orders/1.json`) taken away."""
    whole = url.split("#", 1)[0]
    bare = whole.split("?", 1)[0]
    if _PLAIN.fullmatch(bare):
        return tuple(dict.fromkeys((whole, bare, _FORMAT.sub("", bare))))
    found: dict[str, None] = dict.fromkeys((url, whole, bare))
    decoded = bare
    for _ in range(_ROUNDS):
        decoded = unquote(decoded, errors="replace")
        if decoded in found:
            break
        found[decoded] = None
    for text in tuple(found):
        found |= dict.fromkeys(_tidied(text))
    return tuple(found)


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
