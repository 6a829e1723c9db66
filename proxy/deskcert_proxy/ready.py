"""Is the port ours? A request with a nonce, which only the addon with this run's secret can answer."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from hashlib import sha256
from typing import Final

from deskcert_schema.errors import HarnessError

__all__ = ["READY_HOST", "answer_of", "prove_ready"]

READY_HOST: Final = "ready.deskcert.invalid"
"""No name can end in `invalid` (RFC 2606): a proxy that is not ours fails to resolve it."""
_WAIT_S: Final = 10.0
_MOST: Final = 1 << 16


def answer_of(secret: bytes, nonce: bytes) -> str:
    return hmac.new(secret, nonce, sha256).hexdigest()


async def prove_ready(port: int, secret: bytes, *, host: str = "127.0.0.1") -> None:
    """Raises `HarnessError` when something else answers on the port, or the addon is not in the proxy."""
    nonce = secrets.token_hex(16)
    try:
        answer = await asyncio.wait_for(_ask(host, port, nonce), _WAIT_S)
    except (OSError, TimeoutError) as error:
        raise HarnessError(f"the proxy on port {port} does not answer: {type(error).__name__}") from error
    if not hmac.compare_digest(answer.rpartition(b"\r\n\r\n")[2], answer_of(secret, nonce.encode()).encode()):
        raise HarnessError(
            f"what answers on port {port} is not this run's proxy, or its addon is not loaded; nothing is sent there"
        )


async def _ask(host: str, port: int, nonce: str) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        url = f"http://{READY_HOST}/{nonce}"
        writer.write(f"GET {url} HTTP/1.1\r\nHost: {READY_HOST}\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        answer = b""
        while len(answer) < _MOST and (more := await reader.read(_MOST)):
            answer += more
        return answer
    finally:
        writer.close()
