"""A real origin server that keeps its own log, a raw client, and a run's ledger: what the tests of the proxy share."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import os
import socket
import ssl
import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deskcert_ledger import ProjectKey, RunLedger, SystemClock, read_records
from deskcert_proxy.supervisor import ProxyRun

POLICY: dict[str, Any] = {
    "version": 1,
    "default": "allow",
    "network": {
        "hosts": ["127.0.0.1", "localhost", "[::1]", "app.localhost"],
        "writes": [
            {"id": "net-payout", "method": ["POST", "PUT", "PATCH", "DELETE"], "url": "**/api/payouts/**"},
            {"id": "net-mutation", "graphql": {"operation": "mutation", "name": {"glob": "delete*"}}},
            {"id": "net-op", "json": {"pointer": "/op", "equals": "delete"}},
            {"id": "net-logout", "get": "**/logout"},
            {"id": "net-item", "get": "**/item/*/delete"},
            {"id": "net-rpc", "rpc": "*Delete*"},
            {"id": "net-ws", "websocket": {"contains": '"op":"delete"'}},
        ],
    },
}


@dataclass(frozen=True)
class Hit:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def by_proxy(self) -> bool:
        return "deskcert" in self.headers.get("via", "")


@dataclass
class Origin:
    """HTTP/1.1, keep-alive, chunked bodies, WebSocket echo; every request that arrives is in `hits`."""

    host: str = "127.0.0.1"
    tls: Path | None = None
    hits: list[Hit] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    controls: list[tuple[int, bytes]] = field(default_factory=list)
    """Opcode and payload of control frames through WebSockets."""
    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    redirects: dict[str, tuple[int, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        kind = type("Server", (http.server.ThreadingHTTPServer,), {"address_family": family, "daemon_threads": True})
        self._server = kind((self.host, 0), type("Handler", (_Handler,), {"origin": self}))
        self.port: int = self._server.server_address[1]
        if self.tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    def writes(self) -> list[str]:
        return [f"{hit.method} {hit.path}" for hit in self.hits if hit.method not in ("GET", "HEAD", "OPTIONS")]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    origin: Origin

    def log_message(self, *_: object) -> None:
        pass

    def _read(self) -> bytes:
        if "chunked" in self.headers.get("transfer-encoding", ""):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def _any(self) -> None:
        body = self._read()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.origin.hits.append(Hit(self.command, self.path, headers, body))
        path = self.path.split("?")[0]
        if headers.get("upgrade", "").lower() == "websocket":
            self._websocket(headers)
            return
        if path in self.origin.redirects:
            status, where = self.origin.redirects[path]
            self._answer(status, "text/plain", b"", {"Location": where})
        elif path == "/events":
            self._answer(200, "text/event-stream", b"data: one\n\n", {})
        else:
            kind, page = self.origin.pages.get(path, ("text/plain", b"ok"))
            self._answer(200, kind, page, {})

    def _answer(self, status: int, kind: str, body: bytes, more: dict[str, str]) -> None:
        self.send_response(status)
        cors = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*"}
        cors["Access-Control-Allow-Methods"] = "*"
        for name, value in ({"Content-Type": kind, "Content-Length": str(len(body))} | cors | more).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_FOO = do_MKCOL = do_patch = _any  # noqa: N815

    def _websocket(self, headers: dict[str, str]) -> None:
        key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while True:
            head = self.rfile.read(2)
            if len(head) < 2:
                return
            opcode, length = head[0] & 15, head[1] & 127
            if length == 126:
                (length,) = struct.unpack(">H", self.rfile.read(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self.rfile.read(8))
            mask = self.rfile.read(4)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(length)))
            if opcode >= 8:
                self.origin.controls.append((opcode, data))
            if opcode == 8:
                return
            if data == b"ping me":
                self.wfile.write(b"\x89\x03one")
            if opcode in (0, 1, 2):
                self.origin.messages.append(data)
                echo = b"echo"
                self.wfile.write(bytes([0x81, len(echo)]) + echo)


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def rule(self) -> str | None:
        return self.headers.get("x-deskcert")


def send_raw(port: int, data: bytes, *, wait_s: float = 30) -> Reply:
    """Bytes to the proxy, one answer back. A closed connection is status 0."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait_s) as client:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(data)
        return read_reply(client, body=not data.startswith(b"HEAD"))


def read_reply(client: socket.socket, *, body: bool = True) -> Reply:
    buffer = b""
    while b"\r\n\r\n" not in buffer:
        try:
            more = client.recv(65536)
        except (ConnectionResetError, TimeoutError):
            more = b""
        if not more:
            return Reply(0, {}, buffer)
        buffer += more
        if buffer.startswith(b"HTTP/1.1 100") and b"\r\n\r\n" in buffer:
            buffer = buffer.split(b"\r\n\r\n", 1)[1]
    head, _, data = buffer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines[1:])}
    length = int(headers.get("content-length", 0)) if body else 0
    while len(data) < length:
        more = client.recv(65536)
        if not more:
            break
        data += more
    return Reply(int(lines[0].split()[1]), headers, data)


def request_bytes(
    method: str, url: str, body: bytes = b"", headers: list[tuple[str, str]] | None = None, *, host: str | None = None
) -> bytes:
    given = headers or []
    names = {name.lower() for name, _ in given}
    lines = [f"{method} {url} HTTP/1.1", f"Host: {host or url.split('/')[2]}"]
    if "transfer-encoding" not in names and (body or method not in ("GET", "HEAD")):
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in given]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def make_ledger(folder: Path, **more: Any) -> RunLedger:
    return RunLedger.create(
        folder / "run",
        origin="deskcert/test/run",
        start={"run": "run"},
        project_key=ProjectKey.load_or_create(folder / "key"),
        clock=SystemClock(),
        rng=os.urandom,
        **more,
    )


def net_records(folder: Path, *kinds: str) -> list[dict[str, Any]]:
    wanted = kinds or ("net.allowed", "net.blocked", "canary", "component.lost")
    return [
        {"kind": r.kind, "seq": r.seq, "w": r.w, **r.data} for r in read_records(folder / "run") if r.kind in wanted
    ]


@dataclass
class Line:
    folder: Path
    ledger: RunLedger
    origin: Origin
    proxy: ProxyRun

    def send(self, method: str, path: str, body: bytes = b"", *headers: tuple[str, str]) -> Reply:
        url = path if path.startswith("http") else self.origin.url + path
        return self.raw(request_bytes(method, url, body, list(headers)))

    def raw(self, data: bytes) -> Reply:
        return send_raw(self.proxy.port, data)

    def records(self, *kinds: str) -> list[dict]:
        return net_records(self.folder, *kinds)
