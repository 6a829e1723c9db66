"""A message from the page through an open WebSocket: the documents and texts in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from deskcert_proxy.framings import framed_documents
from deskcert_proxy.graphql_calls import Calls, payload_calls
from deskcert_proxy.request import Kind, Unreadable
from deskcert_proxy.strict_json import is_loose_json, maps

__all__ = ["Message", "read_message"]

_QUIET: Final = frozenset(("connection_init", "init", "ping", "pong", "complete", "stop", "heartbeat", "keepalive"))
_MAX: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Message:
    kind: Kind
    texts: tuple[str, ...]
    """As sent; and each document written out again, so that an escape inside a word hides nothing."""
    documents: tuple[Any, ...]
    calls: Calls | None
    opaque: bool
    """Binary that is no text: a rule about its content cannot be answered."""
    unreadable: str | None = None
    loose: bool = False
    """Only lenient readers take it for JSON."""


def read_message(content: bytes, *, text: bool) -> Message:
    """Never raises."""
    try:
        return _read(content, text=text)
    except (Unreadable, ValueError, RecursionError) as error:
        return Message(Kind.UNKNOWN, (), (), None, opaque=True, unreadable=str(error))


def _read(content: bytes, *, text: bool) -> Message:
    if len(content) > _MAX:
        raise Unreadable(f"a message over {_MAX} bytes")
    try:
        plain = content.decode("utf-8")
    except UnicodeDecodeError:
        if text:
            raise Unreadable("a text message that is not UTF-8") from None
        if content[:2] in (b"\xff\xfe", b"\xfe\xff") or content[1:2] == b"\0" or content[:1] in (b"{", b"["):
            raise Unreadable("a binary message in another encoding") from None
        return Message(Kind.WRITE, (), (), None, opaque=True)
    if "\0" in plain[:4] and plain.strip("\0"):
        return Message(Kind.WRITE, (plain,), (), None, opaque=True)
    documents = tuple(framed_documents(plain))
    texts = dict.fromkeys((plain, *(again for document in documents for again in _again(document))))
    calls = _calls(documents)
    loose = not documents and is_loose_json(plain)
    return Message(_kind(plain, documents, calls), tuple(texts), documents, calls, opaque=False, loose=loose)


def _again(document: Any) -> Iterator[str]:
    for separators in ((",", ":"), (", ", ": ")):
        yield json.dumps(document, ensure_ascii=False, separators=separators, default=str)


def _calls(documents: tuple[Any, ...]) -> Calls | None:
    found = []
    for document in documents:
        for payload in maps(document):
            calls = payload_calls(payload, {}, at_home="query" in payload and "operationName" in payload)
            if calls is not None:
                found.append(calls)
    if not found:
        return None
    unknown = next((call.unknown for call in found if call.unknown is not None), None)
    return Calls(tuple(operation for call in found for operation in call.operations), unknown)


def _kind(plain: str, documents: tuple[Any, ...], calls: Calls | None) -> Kind:
    if calls is not None:
        return calls.kind
    if not plain.strip("\0\r\n ") or plain.strip() in ("2", "3", "ping", "pong", "h"):
        return Kind.READ
    kinds = [document.get("type") for document in documents if isinstance(document, dict)]
    if documents and len(kinds) == len(documents) and all(kind in _QUIET for kind in kinds):
        return Kind.READ
    return Kind.WRITE
