"""MCP over streamable HTTP on the loopback. One token is one guarded session.

The newer protocol has no session ids, so the token alone says whose request it is. It stands in the path, for clients
that are given an address only, or in `Authorization: Bearer`. A browser must not reach this by accident or by DNS
rebinding: the Host must be the loopback's, and an Origin must be none or our own.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message, Receive, Scope, Send

from deskcert.session.jsonlines import MAX_LINE

__all__ = ["Endpoint", "McpHttp"]

BODY_S: Final = 10.0
"""How long a client may take to send one message."""
MAX_AT_ONCE: Final = 128
"""Requests of one client that are being answered; what is more is turned away."""
_IDLE_S: Final = 30 * 60.0
_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(slots=True)
class Endpoint:
    """One client's way in."""

    token: str
    manager: StreamableHTTPSessionManager
    task: asyncio.Task[None]
    stop: asyncio.Event
    refused: Callable[[str], None]
    busy: int = 0
    touched: float = 0.0
    """When its newest request was answered, by the loop's clock."""


class McpHttp:
    """Bound to a free port of 127.0.0.1 (or `port`) once `running`."""

    def __init__(
        self, *, port: int = 0, more: tuple[socket.socket, ...] = (), refused: Callable[[str], None] = lambda _: None
    ) -> None:
        """`more`: further listening sockets to serve, such as a Unix one that a sandbox is given. `refused` is told of
        requests that name no session of ours."""
        self._refused = refused
        # Named TCP: asyncio switches Nagle's algorithm off for sockets that say so, and 40 ms an answer with it.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self._more = more
        self.port: int = self._socket.getsockname()[1]
        self._endpoints: dict[str, Endpoint] = {}
        self._ended: set[str] = set()

    def url(self, endpoint: Endpoint) -> str:
        return f"http://127.0.0.1:{self.port}/{endpoint.token}/mcp"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[McpHttp]:
        import uvicorn

        from deskcert.ways.mcp.patience import Patient

        class Quiet(uvicorn.Server):
            @contextlib.contextmanager
            def capture_signals(self) -> Any:
                yield  # whoever runs us seals the ledgers first

        config = uvicorn.Config(
            self,
            http=Patient,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_keep_alive=30,
            h11_max_incomplete_event_size=65_536,
        )
        server = Quiet(config)
        work = asyncio.create_task(server.serve(sockets=[self._socket, *self._more]))
        try:
            while not server.started and not work.done():  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.005)
            yield self
        finally:
            for endpoint in list(self._endpoints.values()):
                await self.remove(endpoint)
            server.should_exit = server.force_exit = True
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await asyncio.wait_for(work, 5)
            self._socket.close()

    async def add(self, server: Server[Any], refused: Callable[[str], None] = lambda _: None) -> Endpoint:
        """A new client, with a token of its own. `refused` is told why a request under this token was turned away."""
        manager = StreamableHTTPSessionManager(server, max_request_body_size=MAX_LINE, session_idle_timeout=_IDLE_S)
        stop, ready = asyncio.Event(), asyncio.Event()

        async def live() -> None:
            async with manager.run():
                ready.set()
                await stop.wait()

        endpoint = Endpoint(secrets.token_urlsafe(32), manager, asyncio.create_task(live()), stop, refused)
        endpoint.touched = asyncio.get_running_loop().time()
        await ready.wait()
        self._endpoints[endpoint.token] = endpoint
        return endpoint

    async def remove(self, endpoint: Endpoint) -> None:
        """Its requests are cancelled; its token names nobody any more, and says so."""
        self._endpoints.pop(endpoint.token, None)
        self._ended.add(endpoint.token)
        endpoint.stop.set()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await endpoint.task

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        if (wrong := self._stranger(headers)) is not None:
            self._refused(f"a request that was refused: {wrong[1]}")
            await _say(send, *wrong)
            return
        given = _token_in(scope["path"], headers)
        endpoint = self._whose(given)
        if endpoint is None and given in self._ended:
            await _say(send, 410, "this session has ended, and its ledger is sealed")
            return
        if endpoint is None:
            self._refused("a request with a wrong token or none")
            await _say(send, 401, "the token is missing or wrong: use the address that deskcert printed")
            return
        if endpoint.busy >= MAX_AT_ONCE:
            endpoint.refused("too many requests at once")
            await _say(send, 503, f"{endpoint.busy} requests of this client are being answered; wait for an answer")
            return
        endpoint.busy += 1
        try:
            await self._pass_on(endpoint, headers, scope, receive, send)
        finally:
            endpoint.busy -= 1
            endpoint.touched = asyncio.get_running_loop().time()

    def _stranger(self, headers: dict[str, str]) -> tuple[int, str] | None:
        """Checked before the token: a page in a browser must not even learn whether a token is right."""
        if headers.get("host") not in {f"{name}:{self.port}" for name in _NAMES}:
            return 421, f"this is 127.0.0.1:{self.port}; the Host header names something else"
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{name}:{self.port}" for name in _NAMES}:
            return 403, "requests from other origins are not taken"
        return None

    def _whose(self, given: str) -> Endpoint | None:
        found = None
        for token, endpoint in self._endpoints.items():  # every one, in constant time each
            if hmac.compare_digest(token, given):
                found = endpoint
        return found

    async def _pass_on(
        self, endpoint: Endpoint, headers: dict[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > MAX_LINE:
            endpoint.refused("a message of more than 1 MiB")
            await _say(send, 413, "a message may hold at most 1 MiB", close=True)
            return
        try:
            body = await asyncio.wait_for(_body(receive), BODY_S)
        except TimeoutError:
            endpoint.refused("a message that did not come to its end")
            await _say(send, 408, f"the message did not come within {BODY_S:.0f} s", close=True)
            return
        except _TooLong:
            endpoint.refused("a message of more than 1 MiB")
            await _say(send, 413, "a message may hold at most 1 MiB", close=True)
            return
        except ConnectionError:
            return
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": body, "more_body": False}
            return await receive()

        await endpoint.manager.handle_request({**scope, "path": "/mcp", "raw_path": b"/mcp"}, replay, send)


def _token_in(path: str, headers: dict[str, str]) -> str:
    """Empty where there is none."""
    given = path.removesuffix("/").removesuffix("/mcp").strip("/")  # some clients add /mcp to what they are given
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if not given and scheme.lower() == "bearer":
        given = bearer.strip()
    return given if given.isascii() else ""


class _TooLong(Exception):
    pass


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionError("the client left")
        body += message.get("body", b"")
        if len(body) > MAX_LINE:
            raise _TooLong
        if not message.get("more_body", False):
            return bytes(body)


async def _say(send: Send, status: int, why: str, *, close: bool = False) -> None:
    """A JSON-RPC error with an HTTP status: whatever reads it, a person or a client, finds the sentence."""
    told = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": why}}
    body = json.dumps(told).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
