"""HTTP/2 from end to end: a real HTTP/2 server, whose certificate the proxy checks, and clients that speak it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from h2_rig import H2Origin, ask_h2
from proxy_rig import POLICY, Origin, Reply, make_ledger, net_records

from deskcert.certify.https import ServerCertificate
from deskcert_proxy.supervisor import ProxyRun

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class H2Line:
    folder: Path
    origin: H2Origin
    older: Origin
    """HTTP/1.1 over TLS: what came as HTTP/2 is written out anew for it."""
    proxy: ProxyRun

    async def ask(
        self, method: str, path: str, body: bytes = b"", *headers: tuple[str, str], at: str = "", **more: object
    ) -> Reply:
        target = f"127.0.0.1:{(self.older if at == 'HTTP/1.1' else self.origin).port}"
        head = [(":method", method), (":scheme", "https"), (":authority", target), (":path", path), *headers]
        return await asyncio.to_thread(ask_h2, self.proxy.port, target, head, body, **more)

    def blocked(self) -> list[dict]:
        return net_records(self.folder, "net.blocked")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def line(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[H2Line]:
    folder = tmp_path_factory.mktemp("h2")
    ledger, origin = make_ledger(folder), H2Origin(folder)
    both = folder / "both.pem"
    both.write_bytes((folder / "tls-key.pem").read_bytes() + origin.certificate.read_bytes())
    older = Origin(tls=both)
    proxy = await ProxyRun.start(ledger, POLICY, folder=folder / "proxy", trust=origin.certificate)
    yield H2Line(folder, origin, older, proxy)
    await proxy.stop()
    origin.close()
    older.close()
    ledger.seal()


JSON = ("content-type", "application/json")


async def test_allowed_write_goes_on_as_http2_and_is_recorded_first(line: H2Line) -> None:
    reply = await line.ask("POST", "/api/orders/7", b'{"a":1}', JSON)
    assert reply.status == 200
    assert (line.origin.writes()[-1], line.origin.versions[-1]) == ("POST /api/orders/7", "2")
    assert line.origin.hits[-1].by_proxy
    assert line.origin.hits[-1].body == b'{"a":1}'
    (record, *_) = reversed(net_records(line.folder, "net.allowed"))
    assert (record["method"], record["class"]) == ("POST", "write")


@pytest.mark.parametrize("server", ["HTTP/2", "HTTP/1.1"])
async def test_read_goes_through(line: H2Line, server: str) -> None:
    assert (await line.ask("GET", "/orders", at=server)).status == 200


FORBIDDEN = b'{"op":"delete"}'
ATTEMPTS = {
    "plain": ("POST", "/api/payouts/1", b"{}", (JSON,), ()),
    "in the body": ("POST", "/api/x", FORBIDDEN, (JSON,), ()),
    "an override in a trailer": ("GET", "/api/payouts/1", b"", (), (("x-http-method-override", "DELETE"),)),
    "a body behind a trailer": ("POST", "/api/x", FORBIDDEN, (JSON,), (("x-checksum", "1"),)),
    "two paths": ("POST", "/api/x", b"{}", (JSON, (":path", "/api/payouts/1")), ()),
    "capital header names": ("GET", "/api/payouts/1", b"", (("X-HTTP-Method-Override", "DELETE"),), ()),
    "a host beside the authority": ("POST", "/api/x", b"{}", (JSON, ("host", "bank.example")), ()),
    "a length that is too short": ("POST", "/api/x", FORBIDDEN, (JSON, ("content-length", "2")), ()),
    "a transfer encoding": ("POST", "/api/x", FORBIDDEN, (JSON, ("transfer-encoding", "chunked")), ()),
    "a line break in a header": ("GET", "/x", b"", (("x-a", "1\r\nX-HTTP-Method-Override: DELETE"),), ()),
    "a request in the path": ("GET", "/x HTTP/1.1\r\nHost: a\r\n\r\nDELETE /api/payouts/1", b"", (), ()),
    "a method with a blank": ("DELETE /api/payouts/1", "/x", b"", (), ()),
    "an absolute path": ("POST", "https://127.0.0.1/api/payouts/1", b"{}", (JSON,), ()),
    "two content types": ("POST", "/api/x", FORBIDDEN, (JSON, ("content-type", "text/plain")), ()),
}


@pytest.mark.parametrize("server", ["HTTP/2", "HTTP/1.1"])
@pytest.mark.parametrize("how", ATTEMPTS)
async def test_forbidden_write_does_not_arrive(line: H2Line, how: str, server: str) -> None:
    method, path, body, headers, trailers = ATTEMPTS[how]
    known = len(line.blocked())
    reply = await line.ask(method, path, body, *headers, at=server, trailers=trailers)
    assert reply.status in (403, 400, 0), reply
    assert "/orders" in {hit.path for hit in line.origin.hits}
    assert not [hit for hit in (*line.origin.hits, *line.older.hits) if "orders" not in hit.path]
    if reply.status == 403:
        assert line.blocked()[known:]


async def test_server_with_another_certificate_gets_nothing(line: H2Line, tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    trust, _ = ServerCertificate.new().write(tmp_path)
    before = len(line.origin.hits)
    async with await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy", trust=trust) as proxy:
        target = f"127.0.0.1:{line.origin.port}"
        head = [(":method", "POST"), (":scheme", "https"), (":authority", target), (":path", "/api/x"), JSON]
        try:
            status = (await asyncio.to_thread(ask_h2, proxy.port, target, head, b"{}")).status
        except (OSError, AssertionError):
            status = 0  # the handshake is ended, or HTTP/1 is spoken to tell why
        assert status in (0, 502)
    ledger.seal()
    assert len(line.origin.hits) == before
