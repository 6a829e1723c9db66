"""One reading for each body.

A body is decoded once and read as what it says it is, and, where its bytes allow, also as what a server that does not
look at `Content-Type` would take it for: a rule that forbids something sees every such document. What readers are
known to read differently raises `Unreadable`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from deskcert_proxy.codings import decode_body
from deskcert_proxy.framings import framed_documents
from deskcert_proxy.grpcweb import check_frames
from deskcert_proxy.multipart import read_multipart
from deskcert_proxy.request import Request, Unreadable, parameters
from deskcert_proxy.strict_json import NotJson, is_loose_json, loads, looks_like_json, looks_wide, unfolded, utf8
from deskcert_proxy.xml_fields import check_xml, xml_fields

__all__ = ["Body", "Form", "Upload", "documents_in", "form_fields", "read_body"]

_ASCII_BASED: Final = {"utf-8", "utf8", "us-ascii", "ascii", "latin1", "iso-8859-1", "iso-8859-2", "iso-8859-15"} | {
    f"windows-125{n}" for n in range(9)
}
_LINES: Final = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines", "application/json-seq")
_MEDIA: Final = ("image/", "audio/", "video/", "font/")
_BINARY_DOCUMENT: Final = re.compile(
    r"(application|text)/(.*\+)?(x-|vnd\.)?(cbor|msgpack|messagepack|bson|smile|ubjson|ion|yaml|protobuf|google\.protobuf"
    r"|proto|avro|amf|fleece|json5|hjson|toml|edn|java-serialized-object|python-pickle|php-serialized)(-\w+)?"
)
_MAX_FIELDS: Final = 10_000


class Form(StrEnum):
    EMPTY = "empty"
    JSON = "json"
    LINES = "json_lines"
    FIELDS = "form"
    MULTIPART = "multipart"
    TEXT = "text"
    XML = "xml"
    BINARY_DOCUMENT = "binary_document"
    """Structured, and not read here: CBOR, protobuf, YAML…; a rule about its content cannot be answered."""
    GRPC = "grpc"
    """Messages of a service, whose name is in the path."""
    OPAQUE = "opaque"
    """No document: an image, an archive."""


@dataclass(frozen=True, slots=True)
class Upload:
    name: str
    filename: str
    media_type: str
    size: int


@dataclass(frozen=True, slots=True)
class Body:
    form: Form
    documents: tuple[Any, ...] = ()
    """JSON values in it: the whole, each line, or inside a form field."""
    fields: tuple[tuple[str, str], ...] = ()
    """Of a form; with every reading of `;` that servers know."""
    text: str | None = None
    uploads: tuple[Upload, ...] = ()
    size: int = 0
    """Bytes when decoded."""
    loose: bool = False
    """Only lenient readers take it for JSON: a rule about its content cannot be answered."""


@dataclass(slots=True)
class _Found:
    documents: list[Any] = field(default_factory=list)
    fields: list[tuple[str, str]] = field(default_factory=list)


def read_body(request: Request) -> Body:
    """Raises `Unreadable`."""
    framing = {piece.strip().lower() for line in request.values("transfer-encoding") for piece in line.split(",")}
    if framing - {"chunked", "identity", ""}:
        raise Unreadable("a transfer coding beside chunked: some servers undo it")
    data = decode_body(request.body, request.values("content-encoding"))
    if not data:
        return Body(Form.EMPTY)
    media = request.media_type
    if media == "multipart/form-data":
        return _multipart(data, request.one("content-type") or "")
    if media.startswith("multipart/"):
        raise Unreadable(f"{media[:60]} is not read")
    if media.startswith("application/grpc"):
        check_frames(data, media)
        return Body(Form.GRPC, size=len(data))
    if _BINARY_DOCUMENT.fullmatch(media):
        return Body(Form.BINARY_DOCUMENT, size=len(data))
    if media.startswith(_MEDIA) and not media.endswith("+xml") and data.lstrip()[:1] not in (b"{", b"[", b"<"):
        return Body(Form.OPAQUE, size=len(data))
    return _textual(data, media, request)


def _textual(data: bytes, media: str, request: Request) -> Body:
    says_json = media == "application/json" or media.endswith("+json") or media == "text/json"
    says_form = media == "application/x-www-form-urlencoded"
    says_lines = media in _LINES
    says_text = says_json or says_form or says_lines or media.startswith("text/") or "xml" in media or not media
    if says_text:
        _check_charset(data, request)
    try:
        text = utf8(data)
    except Unreadable:
        ascii_based = (parameters(request.one("content-type") or "").get("charset") or "utf-8").lower()
        if data[:3] == b"\xff\xfe\x00" or data[:1] in (b"{", b"[") or (says_text and ascii_based in ("utf-8", "utf8")):
            raise
        if says_text or looks_wide(data) or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise
        return Body(Form.OPAQUE, size=len(data))
    found = _Found()
    form = Form.TEXT
    if says_lines:
        form = Form.LINES
        found.documents += [_must_be_json(line) for line in text.replace("\x1e", "\n").split("\n") if line.strip()]
    elif says_json or looks_like_json(text):
        form = _json(text, found, must=says_json)
    elif text.lstrip()[:1] == "<":
        check_xml(text)
        found.fields += xml_fields(text)
        form = Form.XML
    if says_form or (form is Form.TEXT and "=" in text):
        found.fields += form_fields(text)
        form = Form.FIELDS if says_form else form
        _documents_in_fields(found)
    if media == "text/plain" and form is Form.TEXT:
        found.fields += [_pair(line) for line in re.split(r"\r?\n", text) if "=" in line][:_MAX_FIELDS]
    found.documents += [inner for document in tuple(found.documents) for inner in unfolded(document)]
    if form is Form.TEXT and not found.documents:
        found.documents += framed_documents(text)
    loose = not found.documents and is_loose_json(text)
    return Body(form, tuple(found.documents), tuple(found.fields), text, size=len(data), loose=loose)


def _json(text: str, found: _Found, *, must: bool) -> Form:
    try:
        found.documents.append(loads(text))
    except NotJson as error:
        lines = [line for line in re.split("[\n\x1e]", text) if line.strip()]
        if len(lines) > 1 and all(looks_like_json(line) for line in lines):
            found.documents += [_must_be_json(line) for line in lines]  # as bulk interfaces take it
            return Form.LINES
        if must:
            raise Unreadable(f"the body says JSON and is not: {error}") from error
        return Form.TEXT
    return Form.JSON


def _must_be_json(line: str) -> Any:
    try:
        return loads(line)
    except NotJson as error:
        raise Unreadable(f"a line of the body is no JSON: {error}") from error


def _multipart(data: bytes, content_type: str) -> Body:
    found, uploads = _Found(), []
    for part in read_multipart(data, content_type):
        if part.filename is not None:
            uploads.append(Upload(part.name, part.filename, part.media_type, len(part.data)))
            found.documents += _document_in_file(part.data)
            if part.filename and part.media_type not in ("application/json", "text/json"):
                continue  # one with an empty name is a plain field to some readers
        found.fields.append((part.name, utf8(part.data)))
    _documents_in_fields(found)
    fields = tuple(found.fields)
    return Body(Form.MULTIPART, tuple(found.documents), fields, uploads=tuple(uploads), size=len(data))


def _document_in_file(data: bytes) -> list[Any]:
    """A page sends a document so by putting it into a Blob."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return []
    try:
        return [loads(utf8(data))]
    except NotJson:
        return []


def _documents_in_fields(found: _Found) -> None:
    """Many servers take `payload={…}`, and multipart GraphQL is made of such fields."""
    found.documents += documents_in(found.fields)


def documents_in(fields: Iterable[tuple[str, str]]) -> list[Any]:
    """JSON in the values of fields. GraphQL's own fields are not documents of the request."""
    found: list[Any] = []
    for name, value in fields:
        if looks_like_json(value) and name.lower() not in ("variables", "extensions"):
            try:
                found.append(loads(value))
            except NotJson:
                continue
    return found


def form_fields(text: str) -> list[tuple[str, str]]:
    """`a=1&b=2`. Where a `;` stands, servers differ: the fields of both readings are given."""
    readings = [text.split("&")]
    if ";" in text:
        readings.append(re.split("[&;]", text))
    pairs = [_pair(piece.strip("\r\n")) for pieces in readings for piece in pieces if piece]
    if len(pairs) > _MAX_FIELDS:
        raise Unreadable(f"more than {_MAX_FIELDS} form fields")
    return list(dict.fromkeys(pairs))


def _pair(piece: str) -> tuple[str, str]:
    name, _, value = piece.partition("=")
    return _unquote(name), _unquote(value)


def _unquote(text: str) -> str:
    if "%" not in text and "+" not in text:
        return text
    # %uXXXX is no standard, but IIS and older Java servers take it.
    plain = re.sub(r"%u([0-9A-Fa-f]{4})", lambda m: chr(int(m[1], 16)), text.replace("+", " "))
    return unquote_to_bytes(plain).decode("utf-8", "replace")


def _check_charset(data: bytes, request: Request) -> None:
    declared = parameters(request.one("content-type") or "").get("charset", "utf-8").strip().lower()
    if declared not in _ASCII_BASED:
        raise Unreadable(f"the charset {declared[:40]!r} is not read")
    if declared not in ("utf-8", "utf8") and not data.isascii():
        raise Unreadable(f"not every reader takes the charset {declared[:40]!r} for what it says")
