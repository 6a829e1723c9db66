"""Answers requests from a tape, and forwards none.

mitmproxy's own server replay goes to the real server when its tape is used up. Here every request is answered at once:
with the next kept answer to the same request, or with a synthetic 502 and a record of what was not on the tape.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskcert_ledger.blob import load_blob
from deskcert_proxy.answers import FAULT, refusal
from deskcert_proxy.failclosed import close_connection, close_message, close_raw, close_request, closed_unless_done
from deskcert_proxy.flows import request_of
from deskcert_proxy.redaction import Redaction
from deskcert_proxy.request import Request
from deskcert_proxy.tape import FLOWS
from deskcert_schema.errors import LedgerFormatError

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow

__all__ = ["Answer", "Replayer", "match_key", "read_tape"]

_NOT_HOP: frozenset[str] = frozenset(("transfer-encoding", "connection", "keep-alive", "content-length", "alt-svc"))


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    trouble: str | None
    """Why it cannot be given again: it was cut, or withheld."""


type Key = tuple[str, str, str]
type Answers = dict[Key, deque[Answer]]


def match_key(method: str, url: str, body: bytes) -> Key:
    return method.upper(), url.partition("#")[0], sha256(body).hexdigest()


def read_tape(folder: Path) -> Answers:
    """Raises `LedgerFormatError` with the line, `LedgerTampered` for a flow that is not what its line says."""
    found: Answers = defaultdict(deque)
    for number, line in enumerate((folder / FLOWS).read_bytes().split(b"\n"), start=1):
        if not line:
            continue
        try:
            raw = load_blob(folder, json.loads(line)["flow"])
            asked, said = raw["request"], raw["response"]
            key = match_key(asked["method"], asked["url"], base64.b64decode(asked["body"], validate=True))
            headers = tuple((str(name), str(value)) for name, value in said["headers"] if name not in _NOT_HOP)
            body = base64.b64decode(said["body"], validate=True)
            trouble = "its answer was too long to be kept" if said["cut"] else None
            trouble = "its answer was withheld: it could not be read for secrets" if said["withheld"] else trouble
            found[key].append(Answer(int(said["status"]), headers, body, trouble))
        except (ValueError, KeyError, TypeError, binascii.Error) as error:
            raise LedgerFormatError(f"not a kept flow: {type(error).__name__}", line=number) from error
    return dict(found)


type Missed = Callable[[Request, str], Awaitable[None]]
"""Told each request that gets no kept answer, and why."""


class Replayer:
    """An addon."""

    def __init__(self, tape: Answers, redaction: Redaction, missed: Missed) -> None:
        self._tape, self._redaction, self._missed = tape, redaction, missed
        self.faults: list[str] = []

    def fault(self, hook: str, error: BaseException) -> None:
        self.faults.append(f"{hook}: {error!r}")

    @closed_unless_done(close_request)
    async def request(self, flow: HTTPFlow) -> None:
        from mitmproxy.http import Response

        flow.response = refusal(FAULT)
        request = request_of(flow)
        types, codings = request.values("content-type"), request.values("content-encoding")
        kept = self._redaction.body(request.body, types[0] if types else "", codings)
        answers = self._tape.get(match_key(request.method, self._redaction.url(request.url), kept.data))
        answer = answers.popleft() if answers else None
        why = "not on the tape" if answers is None else "asked more often than it was"
        if answer is None or answer.trouble is not None or answer.status == 101:
            why = why if answer is None else answer.trouble or "a WebSocket is not replayed"
            await self._missed(request, why)
            flow.response = Response.make(
                502, f"deskcert replay: {why}", {"content-type": "text/plain", "x-deskcert": "replay-missed"}
            )
            return
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
        response = Response.make(answer.status, b"", headers)
        response.raw_content = answer.body
        response.headers["content-length"] = str(len(answer.body))
        flow.response = response

    @closed_unless_done(close_request)
    async def http_connect(self, flow: HTTPFlow) -> None:
        """The tunnel is opened to us alone: `server_connect` refuses every connection."""

    @closed_unless_done(close_connection)
    async def server_connect(self, data: Any) -> None:
        close_connection(data)

    @closed_unless_done(close_message)
    async def websocket_message(self, flow: HTTPFlow) -> None:
        close_message(flow)

    @closed_unless_done(close_raw)
    async def tcp_start(self, flow: Any) -> None:
        close_raw(flow)

    @closed_unless_done(close_raw)
    async def udp_start(self, flow: Any) -> None:
        close_raw(flow)

    @closed_unless_done(close_raw)
    async def dns_request(self, flow: Any) -> None:
        close_raw(flow)
