"""One command to a session's daemon, one envelope back. Light, and never twice: a reply that is lost stays lost."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any, Final

from deskcert.ways.registry import Entry

__all__ = ["ask", "control"]

_CONNECT_S: Final = 5.0
_BEYOND_S: Final = 90.0
"""Above a command's own wait: every step of the guard has a deadline, and their sum is less."""
_MAX_REPLY: Final = 4 << 20


def ask(entry: Entry, command: str, args: Mapping[str, Any], *, acting: bool) -> dict[str, Any]:
    """The envelope, whatever happens: also for a daemon that dies in the middle."""
    request = json.dumps({"id": 1, "command": command, "args": dict(args)}).encode() + b"\n"
    wait = args.get("timeout_ms")
    wait_s = _BEYOND_S + (min(wait, 60_000) / 1000 if isinstance(wait, int) and wait > 0 else 0)
    try:
        connection = _connected(entry, wait_s)
    except OSError as exc:
        return _lost(command, f"the session {entry.name} does not answer ({exc.strerror or exc})", acting=False)
    with connection:
        try:
            connection.sendall(request)
            reply = _line(connection)
        except TimeoutError:
            return _lost(command, f"no answer within {wait_s:.0f} s", acting=acting, late=True)
        except KeyboardInterrupt:
            return _lost(command, "interrupted while the answer was awaited", acting=acting)
        except (OSError, ValueError) as exc:
            return _lost(command, f"the session ended before it answered ({exc})", acting=acting)
    reply.pop("id", None)
    return reply


def control(entry: Entry, word: str) -> dict[str, Any] | None:
    """`info` or `end`. None when it does not answer."""
    try:
        with _connected(entry, 30.0) as connection:
            connection.sendall(json.dumps({"id": 1, "control": word}).encode() + b"\n")
            return _line(connection)
    except (OSError, ValueError):
        return None


def _connected(entry: Entry, wait_s: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_CONNECT_S)
        connection.connect(str(entry.socket))
        connection.settimeout(wait_s)
    except BaseException:
        connection.close()
        raise
    return connection


def _line(connection: socket.socket) -> dict[str, Any]:
    """Raises `ValueError` for an end before the end of the line, and for what is no object."""
    parts = bytearray()
    while not parts.endswith(b"\n"):
        block = connection.recv(65_536)
        if not block or len(parts) > _MAX_REPLY:
            raise ValueError("the reply was cut off")
        parts += block
    found = json.loads(parts)
    if not isinstance(found, dict):
        raise ValueError("the reply is no object")  # noqa: TRY004 - untrusted bytes, not a caller's type
    return found


def _lost(command: str, why: str, *, acting: bool, late: bool = False) -> dict[str, Any]:
    """An acting command whose reply is lost may have been carried out: its disposition says so."""
    from deskcert.contract.envelope import Failure, failure
    from deskcert_schema.disposition import Delivery, Disposition
    from deskcert_schema.vocabulary import Code, DetailKind

    delivery = Delivery.DELIVERY_UNCERTAIN if acting else Delivery.NOT_DELIVERED
    code = Code.TIMEOUT if late else Code.APP_UNRESPONSIVE
    kind = DetailKind.DISPATCH_TIMEOUT if late else DetailKind.COMPONENT_LOST
    hint = "look at the application before anything is repeated" if acting else "see deskcert session list"
    return failure(command, Failure(code, why, Disposition(delivery), kind, hint))
