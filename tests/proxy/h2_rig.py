"""A real HTTP/2 server over TLS with its own log, and a raw HTTP/2 client through the proxy that may send anything."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proxy_rig import Hit, Reply, read_reply

from deskcert.certify.https import ServerCertificate


@dataclass
class H2Origin:
    """hypercorn with ALPN `h2`. `pages` as `Origin`'s; `versions` holds the protocol of each hit."""

    folder: Path
    hits: list[Hit] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    more: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Further headers of every answer."""

    def __post_init__(self) -> None:
        from hypercorn.asyncio import serve
        from hypercorn.config import Config

        certificate, key = ServerCertificate.new().write(self.folder)
        self.certificate = certificate
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        config = Config()
        config.bind = [f"fd://{self._socket.fileno()}"]
        config.certfile, config.keyfile, config.loglevel = str(certificate), str(key), "CRITICAL"
        ready = threading.Event()

        async def main() -> None:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            ready.set()
            await serve(self._app, config, shutdown_trigger=self._stop.wait)

        self._thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
        self._thread.start()
        ready.wait()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def writes(self) -> list[str]:
        return [f"{hit.method} {hit.path}" for hit in self.hits if hit.method not in ("GET", "HEAD", "OPTIONS")]

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            event = await receive()
            body += event.get("body", b"")
            more = event.get("more_body", False)
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self.versions.append(scope["http_version"])
        self.hits.append(Hit(scope["method"], scope["path"], headers, body))
        kind, page = self.pages.get(scope["path"], ("text/plain", b"ok"))
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind.encode()), *self.more]}
        )
        await send({"type": "http.response.body", "body": page})

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        with contextlib.suppress(OSError):
            self._socket.close()


def ask_h2(
    port: int,
    target: str,
    headers: list[tuple[str, str]],
    body: bytes = b"",
    *,
    trailers: tuple[tuple[str, str], ...] = (),
) -> Reply:
    """CONNECT to `target` by the proxy, TLS whose certificate is not looked at, one HTTP/2 request whose headers are
    sent as they are. A connection or a stream that is cut off is status 0."""
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2.events import ConnectionTerminated, DataReceived, ResponseReceived, StreamEnded, StreamReset

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
        raw.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        opened = read_reply(raw)
        if opened.status != 200:
            return opened
        with context.wrap_socket(raw, server_hostname=target.rpartition(":")[0].strip("[]")) as client:
            assert client.selected_alpn_protocol() == "h2"
            anything = H2Configuration(
                validate_outbound_headers=False, normalize_outbound_headers=False, header_encoding="utf-8"
            )
            wire = H2Connection(anything)
            wire.initiate_connection()
            wire.send_headers(1, headers, end_stream=not body and not trailers)
            if body:
                wire.send_data(1, body, end_stream=not trailers)
            if trailers:
                wire.send_headers(1, list(trailers), end_stream=True)
            client.sendall(wire.data_to_send())
            status, told, data = 0, {}, b""
            while True:
                try:
                    received = client.recv(65536)
                except (TimeoutError, OSError):
                    return Reply(0, {}, b"")
                if not received:
                    return Reply(status, told, data)
                for event in wire.receive_data(received):
                    if isinstance(event, ResponseReceived):
                        told = {str(name): str(value) for name, value in event.headers}
                        status = int(told[":status"])
                    elif isinstance(event, DataReceived):
                        data += event.data
                    elif isinstance(event, (StreamReset, ConnectionTerminated)):
                        return Reply(status if data else 0, told, data)
                    elif isinstance(event, StreamEnded):
                        return Reply(status, told, data)
                client.sendall(wire.data_to_send())
