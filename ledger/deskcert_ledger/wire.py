"""The lines between a second writer and the sequencer: one JSON object a line, at most 1 MiB.

`{"id","kind","payload","ack"}` one way, `{"id","seq","commit_us"}` or `{"id","error"}` the other. Secrets and blobs of
a payload travel as `{"$secret": …}` and `{"$blob": …}`; a foreign object with such a key travels as a list of pairs.
Text that is no valid Unicode travels with its surrogates as they are.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from deskcert_ledger.blob import Blob
from deskcert_ledger.disclosure import Secret
from deskcert_ledger.line import MARK_UTF8, dumps, dumps_strict, is_plain, loads
from deskcert_schema.errors import ContractError, LedgerFormatError

__all__ = [
    "IN_FLIGHT",
    "MAX_LINE",
    "Request",
    "answer",
    "decode_payload",
    "encode_payload",
    "lines_of",
    "message",
    "peer_uid",
    "read_answer",
    "read_request",
    "request",
]

MAX_LINE: Final = 1 << 20
IN_FLIGHT: Final = 128
"""Records without an answer: so many answers fit a socket's buffer, and the sequencer never waits for a reader."""
_SECRET, _BLOB, _PAIRS = "$secret", "$blob", "$pairs"


def encode_payload(value: Any) -> Any:
    match value:
        case Secret():
            return {_SECRET: value.value, "openable": value.openable}
        case Blob():
            return {_BLOB: encode_payload(value.content)}
        case Mapping():
            if any(str(key).startswith("$") for key in value):
                return {_PAIRS: [[key, encode_payload(item)] for key, item in value.items()]}
            return {str(key): encode_payload(item) for key, item in value.items()}
        case list() | tuple():
            return [encode_payload(item) for item in value]
        case _:
            return value


def decode_payload(value: Any) -> Any:
    """Raises `LedgerFormatError`."""
    if isinstance(value, list):
        return [decode_payload(item) for item in value]
    if not isinstance(value, dict):
        return value
    try:
        if _SECRET in value:
            return Secret(value[_SECRET], openable=value["openable"] is True)
        if _BLOB in value:
            return Blob(decode_payload(value[_BLOB]))
        if _PAIRS in value:
            return {key: decode_payload(item) for key, item in value[_PAIRS]}
    except (KeyError, TypeError, ValueError) as error:
        raise LedgerFormatError("a payload that no writer of ours sends") from error
    return {key: decode_payload(item) for key, item in value.items()}


def message(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def request(number: int, kind: str, payload: Mapping[str, Any], ack: str) -> bytes:
    """A record on its way to the sequencer. Raises `ContractError` when it is too long."""
    data = _plain_request(number, kind, payload, ack) or message(
        {"id": number, "kind": kind, "payload": encode_payload(payload), "ack": ack}
    )
    if len(data) > MAX_LINE:
        raise ContractError(f"a record of {len(data)} bytes: at most {MAX_LINE} go through the socket")
    return data


def _plain_request(number: int, kind: str, payload: Mapping[str, Any], ack: str) -> bytes | None:
    """The same for a payload that needs no care, in a fraction of the time; None for all others."""
    if not is_plain(payload):
        return None
    try:
        body = dumps_strict(payload)
    except (TypeError, ValueError, ContractError):  # lone surrogates, integers that the other side refuses
        return None
    if b'"$' in body or MARK_UTF8 in body:
        return None
    return b'{"id":%d,"kind":%s,"payload":%s,"ack":"%s"}\n' % (number, dumps(kind), body, ack.encode())


class Request(NamedTuple):
    number: int
    """Of the writer's own; 0 wants no answer."""
    kind: str
    payload: dict[str, Any]
    ack: str
    redact: str | None = None
    """Not a record, but a signed request to redact (see `open_redaction`)."""


def read_request(line: bytes) -> Request:
    """Raises `LedgerFormatError`."""
    raw = _loads(line)
    match raw:
        case {"id": int(number), "redact": str(note), **rest} if not rest:
            return Request(number, "", {}, "durable", note)
    if not isinstance(raw, dict) or type(raw.get("id")) is not int or not isinstance(raw.get("kind"), str):
        raise LedgerFormatError("not a record")
    payload = raw.get("payload")
    if b'"$' in line:
        payload = decode_payload(payload)
    if not isinstance(payload, dict):
        raise LedgerFormatError("a record without a payload")
    return Request(raw["id"], raw["kind"], payload, raw.get("ack", "durable"))


def answer(number: int, seq: int, commit_us: int) -> bytes:
    return b'{"id":%d,"seq":%d,"commit_us":%d}\n' % (number, seq, commit_us)


def read_answer(line: bytes) -> Any:
    """Raises `LedgerFormatError`."""
    return _loads(line)


def _loads(line: bytes) -> Any:
    """Strict JSON first, which nearly all is; then with what the fast reader refuses: surrogates and large numbers."""
    try:
        return loads(line)
    except LedgerFormatError:
        pass
    try:
        return json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise LedgerFormatError("not JSON") from error


class lines_of:  # noqa: N801 - reads as a function: for line in lines_of(connection)
    """The lines that come through a socket. Raises `LedgerFormatError` for one that is too long, `OSError`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()

    def __iter__(self) -> lines_of:
        return self

    def ready(self) -> bool:
        """Is there another line already? Then the next one does not wait."""
        return b"\n" in self._buffer

    def __next__(self) -> bytes:
        at, seen = self._buffer.find(b"\n"), 0
        while at < 0:
            if len(self._buffer) > MAX_LINE:
                raise LedgerFormatError(f"a line over {MAX_LINE} bytes")
            seen = len(self._buffer)
            data = self._connection.recv(1 << 16)
            if not data:
                raise StopIteration
            self._buffer += data
            at = self._buffer.find(b"\n", seen)
        line = bytes(self._buffer[:at])
        del self._buffer[: at + 1]
        return line


def peer_uid(connection: socket.socket) -> int | None:
    """User id of the process at the other end; None where the system does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return int(uid)
