"""XML, read as a form would be: each element with text, and each attribute, under its name and the names around it.

No parser that knows entities: documents that define some were refused before (`bodies`).
"""

from __future__ import annotations

import html
import re
from typing import Final

from deskcert_proxy.request import Unreadable

__all__ = ["called_in", "check_xml", "xml_fields"]

_TOKEN: Final = re.compile(
    r"<!\[CDATA\[(?P<data>.*?)\]\]>|<!--.*?-->|<\?.*?\?>|<!(?:[^>]*)>"
    r"|</\s*(?P<end>[^\s>]+)[^>]*>|<(?P<start>[^\s/>!?]+)(?P<attributes>(?:[^>\"']|\"[^\"]*\"|'[^']*')*?)(?P<empty>/?)>"
    r"|(?P<text>[^<]+)|(?P<stray><)",
    re.DOTALL,
)
_ATTRIBUTE: Final = re.compile(r"([^\s=\"'/]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_ENCODINGS: Final = ("utf-8", "utf8", "us-ascii", "iso-8859-1")
_MAX_FIELDS: Final = 20_000
_MAX_DEPTH: Final = 64


def check_xml(text: str) -> None:
    """Raises `Unreadable` for entities and for other encodings."""
    html_page = re.match(r"\s*<!doctype html", text, re.IGNORECASE)
    if re.search(r"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE) and not html_page:
        raise Unreadable("XML with a document type: entities are read by some readers only")
    declared = re.match(r"\s*<\?xml[^>]*encoding\s*=\s*[\"']([^\"']*)", text)
    if declared and declared[1].lower() not in _ENCODINGS:
        raise Unreadable("XML in another encoding than UTF-8")


def xml_fields(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    open_elements: list[tuple[str, list[str]]] = []
    for token in _TOKEN.finditer(text):
        if token["start"] is not None:
            name = _local(token["start"])
            names = [*(element for element, _ in open_elements), name]
            for attribute in _ATTRIBUTE.finditer(token["attributes"]):
                found += _named([*names, _local(attribute[1])], attribute[2] or attribute[3] or "")
            if not token["empty"] and len(open_elements) < _MAX_DEPTH:
                open_elements.append((name, []))
        elif token["end"] is not None and open_elements:
            names = [element for element, _ in open_elements]
            found += _named(names, "".join(open_elements.pop()[1]))
        elif open_elements and (token["text"] or token["data"]):
            open_elements[-1][1].append(token["data"] or html.unescape(token["text"] or ""))
        if len(found) > _MAX_FIELDS:
            raise Unreadable(f"more than {_MAX_FIELDS} elements")
    return found


def called_in(text: str) -> list[str]:
    """XML-RPC's method names, those of a multicall too; and the elements of a SOAP body."""
    found: list[str] = []
    fields = xml_fields(text)
    names_follow = False
    for name, value in fields:
        if name.lower().endswith("methodname"):
            found.append(value.strip())
        elif name == "name":
            names_follow = value.strip().lower() == "methodname"
        elif names_follow and name in ("value", "string"):
            found.append(value.strip())
    depth_of_body, depth = -1, 0
    for token in _TOKEN.finditer(text):
        if token["start"] is not None:
            if depth == depth_of_body + 1 and depth_of_body >= 0:
                found.append(_local(token["start"]))
            if _local(token["start"]).lower() == "body" and depth_of_body < 0:
                depth_of_body = depth
            depth += not token["empty"]
        elif token["end"] is not None:
            depth -= 1
            if depth <= depth_of_body:
                depth_of_body = -1
    return found


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _named(names: list[str], value: str) -> list[tuple[str, str]]:
    if not value.strip():
        return []
    return [(".".join(names[at:]), value) for at in range(max(0, len(names) - 4), len(names))]
