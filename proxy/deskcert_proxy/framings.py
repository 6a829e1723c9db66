"""Documents behind the prefixes of framings, in messages and in the bodies of their long-polling twins.

Undone are: Socket.IO (`42["event",…]`), SignalR (records end with 0x1e),
SockJS (a list of texts), Phoenix (`[ref, ref, topic, event, payload]` is plain JSON), graphql-ws
(`{"type":"subscribe","payload":{…}}`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from deskcert_proxy.strict_json import NotJson, loads, looks_like_json, unfolded

__all__ = ["framed_documents"]

_SOCKET_IO: Final = re.compile(r"\s*[0-9]{1,4}(?:/[^,\[{]*,)?[0-9]*(?=[\[{])")


def framed_documents(plain: str) -> Iterator[Any]:
    for record in plain.split("\x1e"):
        body = record
        if (prefix := _SOCKET_IO.match(record)) is not None:
            body = record[prefix.end() :]
        elif not looks_like_json(record) and record.lstrip()[:1] != '"':
            # A command in front of a document, as STOMP and home-made protocols have it.
            start = min((at for at in (record.find("{"), record.find("[")) if at >= 0), default=-1)
            body = record[start:].rstrip("\0\r\n ") if start >= 0 else ""
        if body.strip():
            try:
                document = loads(body)
            except NotJson:
                continue
            yield document
            yield from unfolded(document)
