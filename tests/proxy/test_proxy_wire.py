"""The real proxy and a raw client: what is forbidden does not arrive, what arrives is in the ledger."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import sys
import zlib
from typing import Any

import brotli
import pytest
from proxy_rig import Line, Origin, read_reply, request_bytes, send_raw
from test_proxy_corpora import DISGUISED, ORDINARY, as_request

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.asyncio(loop_scope="module")
JSON = ("Content-Type", "application/json")
FORBIDDEN = b'{"op":"delete"}'
ALLOWED = b'{"op":"update"}'
TWO_LINES = [("Content-Encoding", "gzip"), ("Content-Encoding", "br")]


async def test_allowed_write_is_recorded_before_it_arrives_and_answered_after(line: Line) -> None:
    reply = await asyncio.to_thread(line.send, "POST", "/api/orders/1001", b'{"a":1}', JSON)
    assert reply.status == 200
    hit = line.origin.hits[-1]
    assert hit.by_proxy
    assert hit.body == b'{"a":1}'
    record = line.records("net.allowed")[-1]
    assert (record["method"], record["class"], record["w"]) == ("POST", "write", "proxy")
    assert record["url_class"].endswith("/api/orders/:id")


async def test_no_content_of_a_request_stands_in_the_ledger(line: Line) -> None:
    secret = b'{"password":"correct horse battery staple"}'
    await asyncio.to_thread(line.send, "POST", "/api/login?token=tok_9f8e7d6c5b4a", secret, JSON)
    text = (line.folder / "run" / "ledger.jsonl").read_text()
    assert line.origin.hits[-1].body == secret
    assert "correct horse" not in text
    assert "tok_9f8e7d6c5b4a" not in text


@pytest.mark.parametrize(
    ("how", "headers", "body"),
    [
        ("plain", [], FORBIDDEN),
        ("gzip", [("Content-Encoding", "gzip")], gzip.compress(FORBIDDEN, mtime=0)),
        ("br", [("Content-Encoding", "br")], brotli.compress(FORBIDDEN)),
        ("zstd", [("Content-Encoding", "zstd")], zstd.compress(FORBIDDEN)),
        ("deflate", [("Content-Encoding", "deflate")], zlib.compress(FORBIDDEN)),
        ("gzip, then br", [("Content-Encoding", "gzip, br")], brotli.compress(gzip.compress(FORBIDDEN))),
        ("gzip, then br, in two lines", TWO_LINES, brotli.compress(gzip.compress(FORBIDDEN))),
        ("the wrong order", [("Content-Encoding", "br, gzip")], brotli.compress(gzip.compress(FORBIDDEN))),
        ("something behind the gzip", [("Content-Encoding", "gzip")], gzip.compress(b"{}") + gzip.compress(FORBIDDEN)),
        ("half a gzip", [("Content-Encoding", "gzip")], gzip.compress(FORBIDDEN)[:-4]),
        ("claims gzip", [("Content-Encoding", "gzip")], FORBIDDEN),
        ("unknown coding", [("Content-Encoding", "gzip, rc4")], FORBIDDEN),
        ("UTF-16", [], FORBIDDEN.decode().encode("utf-16")),
        ("duplicate keys", [], b'{"op":"read","op":"delete"}'),
        ("expect continue", [("Expect", "100-continue")], FORBIDDEN),
    ],
)
async def test_forbidden_body_does_not_arrive(line: Line, how: str, headers: list[Any], body: bytes) -> None:
    before, known = len(line.origin.hits), len(line.records("net.blocked"))
    reply = await asyncio.to_thread(line.send, "POST", "/api/x", body, JSON, *headers)
    assert reply.status == 403
    assert reply.rule == json.loads(reply.body)["rule"]
    assert len(line.origin.hits) == before
    assert line.records("net.blocked")[known:][-1]["rule"] == reply.rule


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([("Content-Encoding", "gzip")], gzip.compress(ALLOWED)),
        ([("Content-Encoding", "br")], brotli.compress(ALLOWED)),
        ([("Content-Encoding", "zstd")], zstd.compress(ALLOWED)),
        ([("Content-Encoding", "gzip, br")], brotli.compress(gzip.compress(ALLOWED))),
        ([("Expect", "100-continue")], ALLOWED),
        ([("Transfer-Encoding", "chunked")], b'4\r\n{"op\r\nb\r\n":"update"}\r\n0\r\n\r\n'),
        ([("X-HTTP-Method-Override", "PUT")], ALLOWED),
    ],
)
async def test_allowed_body_arrives_as_it_was_sent_and_is_recorded(line: Line, headers: list[Any], body: bytes) -> None:
    known = len(line.records("net.allowed"))
    reply = await asyncio.to_thread(line.send, "POST", "/api/x", body, JSON, *headers)
    assert reply.status == 200
    chunked = ("Transfer-Encoding", "chunked") in headers
    assert line.origin.hits[-1].body == (b'{"op":"update"}' if chunked else body)
    (record,) = line.records("net.allowed")[known:]
    assert (record["class"], record["method"]) == ("write", "POST")


@pytest.mark.parametrize("trailer", [b"", b"X-T: 1\r\n"])
async def test_chunked_body_is_read_and_with_trailers_goes_nowhere(line: Line, trailer: bytes) -> None:
    before = len(line.origin.hits)
    head = f"POST {line.origin.url}/api/x HTTP/1.1\r\nHost: 127.0.0.1:{line.origin.port}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
    body = b'5\r\n{"op"\r\na\r\n:"delete"}\r\n0\r\n' + trailer + b"\r\n"
    reply = await asyncio.to_thread(send_raw, line.proxy.port, head.encode() + body, wait_s=1)
    # mitmproxy takes no trailers in HTTP/1 requests: it closes the connection.
    assert (reply.status, reply.rule) == ((0, None) if trailer else (403, "net-op"))
    assert len(line.origin.hits) == before


async def test_override_in_a_trailer_counts(line: Line) -> None:
    head = f"GET {line.origin.url}/api/payouts/1 HTTP/1.1\r\nHost: 127.0.0.1:{line.origin.port}\r\n"
    head += "Transfer-Encoding: chunked\r\n\r\n0\r\nX-HTTP-Method-Override: DELETE\r\n\r\n"
    before = len(line.origin.hits)
    reply = await asyncio.to_thread(send_raw, line.proxy.port, head.encode(), wait_s=1)
    assert reply.status != 200
    assert len(line.origin.hits) == before


async def test_contradicting_lengths_are_refused(line: Line) -> None:
    before = len(line.origin.hits)
    head = f"POST {line.origin.url}/api/x HTTP/1.1\r\nHost: 127.0.0.1:{line.origin.port}\r\nContent-Length: 4\r\n"
    reply = await asyncio.to_thread(line.raw, head.encode() + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert reply.status == 400
    assert len(line.origin.hits) == before
    assert line.records("net.blocked")[-1]["rule"] == "net-malformed"


async def test_ten_megabytes_pass_and_twenty_do_not(line: Line) -> None:
    ten = await asyncio.to_thread(line.send, "PUT", "/files/a", b"x" * (10 << 20), ("Content-Type", "image/png"))
    assert ten.status == 200
    assert len(line.origin.hits[-1].body) == 10 << 20
    before = len(line.origin.hits)
    twenty = await asyncio.to_thread(line.send, "PUT", "/files/a", b"x" * (20 << 20), ("Content-Type", "image/png"))
    assert (twenty.status, twenty.rule) == (403, "net-too-large")
    assert len(line.origin.hits) == before


async def test_body_without_an_end_is_cut_off(line: Line) -> None:
    before = len(line.origin.hits)
    head = f"POST {line.origin.url}/api/x HTTP/1.1\r\nHost: 127.0.0.1:{line.origin.port}\r\n"
    head += "Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    def flood() -> int:
        with socket.create_connection(("127.0.0.1", line.proxy.port), timeout=60) as client:
            client.sendall(head.encode())
            chunk = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
            for _ in range(80):
                try:
                    client.sendall(chunk)
                except OSError:
                    break
            return read_reply(client).status

    assert await asyncio.to_thread(flood) in (413, 0)
    assert len(line.origin.hits) == before
    assert line.records("net.blocked")[-1]["rule"] == "net-too-large"


@pytest.mark.parametrize("status", [307, 308])
async def test_redirected_write_is_judged_again_where_it_goes(line: Line, status: int) -> None:
    line.origin.redirects["/moved"] = (status, "/api/payouts/1")
    first = await asyncio.to_thread(line.send, "POST", "/moved", b"{}", JSON)
    assert first.status == status
    second = await asyncio.to_thread(line.send, "POST", first.headers["location"], b"{}", JSON)
    assert second.rule == "net-payout"


async def test_host_that_is_not_named_is_refused_at_connect_and_at_the_request(line: Line) -> None:
    connect = await asyncio.to_thread(line.raw, b"CONNECT bank.example:443 HTTP/1.1\r\nHost: bank.example:443\r\n\r\n")
    assert (connect.status, connect.rule) == (403, "net-host")
    dns = await asyncio.to_thread(line.raw, b"CONNECT 127.0.0.1:53 HTTP/1.1\r\nHost: 127.0.0.1:53\r\n\r\n")
    assert (dns.status, dns.rule) == (403, "net-raw")
    plain = await asyncio.to_thread(line.raw, request_bytes("GET", "http://bank.example/"))
    assert plain.rule == "net-host"


async def test_bytes_that_are_no_http_go_nowhere(line: Line) -> None:
    def talk() -> bytes:
        with socket.create_connection(("127.0.0.1", line.proxy.port), timeout=10) as client:
            target = f"127.0.0.1:{line.origin.port}"
            client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            assert read_reply(client).status == 200
            client.sendall(b"\x00\x01\x02 not http at all\r\n\r\n")
            return client.recv(4096)

    before = len(line.origin.hits)
    assert b"200" not in (await asyncio.to_thread(talk))[:20]
    assert len(line.origin.hits) == before


async def test_plain_http_inside_a_tunnel_is_read_too(line: Line) -> None:
    def talk() -> str | None:
        with socket.create_connection(("127.0.0.1", line.proxy.port), timeout=10) as client:
            target = f"127.0.0.1:{line.origin.port}"
            client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            assert read_reply(client).status == 200
            client.sendall(request_bytes("POST", "/api/payouts/1", b"{}", [JSON], host=target))
            return read_reply(client).rule

    assert await asyncio.to_thread(talk) == "net-payout"


def _frame(opcode: int, data: bytes) -> bytes:
    return bytes([0x80 | opcode, 0x80 | len(data), 0, 0, 0, 0]) + data


async def test_texts_in_control_frames_do_not_arrive(line: Line) -> None:
    """A page can put 123 bytes into the reason of a close; pings and pongs of its own only a raw client can send."""
    text = b'{"op":"delete"}'

    def talk() -> None:
        head = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13")]
        with socket.create_connection(("127.0.0.1", line.proxy.port), timeout=10) as client:
            key = ("Sec-WebSocket-Key", "MDEyMzQ1Njc4OWFiY2RlZg==")
            client.sendall(request_bytes("GET", line.origin.url + "/ws", b"", [*head, key]))
            assert read_reply(client).status == 101
            client.sendall(_frame(1, b"ping me"))
            answer = b""
            while b"\x89\x03one" not in answer:
                answer += client.recv(4096)
            client.sendall(_frame(10, b"one") + _frame(10, text) + _frame(9, text))
            client.sendall(_frame(8, (1000).to_bytes(2, "big") + text))
            while client.recv(4096):
                pass

    line.origin.controls.clear()
    await asyncio.to_thread(talk)
    # The answer to the server's own ping is as it was; the rest has lost its text, and the close kept its code.
    assert line.origin.controls == [(10, b"one"), (10, b""), (9, b""), (8, (1000).to_bytes(2, "big"))]


async def test_upgrade_to_something_else_is_taken_out(line: Line) -> None:
    upgrade = (("Upgrade", "x-tunnel"), ("Connection", "Upgrade"))
    reply = await asyncio.to_thread(line.send, "GET", "/x", b"", *upgrade)
    assert reply.status == 200
    assert "upgrade" not in line.origin.hits[-1].headers


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_each_name_of_this_machine_is_guarded(line: Line, name: str) -> None:
    url = f"http://{name}:{line.origin.port}/api/payouts/1"
    reply = await asyncio.to_thread(line.raw, request_bytes("POST", url, b"{}", [JSON]))
    assert reply.rule == "net-payout"


async def test_ipv6_loopback_is_guarded(line: Line) -> None:
    origin = Origin(host="::1")
    try:
        allowed = await asyncio.to_thread(line.raw, request_bytes("POST", f"{origin.url}/api/x", b"{}", [JSON]))
        denied = await asyncio.to_thread(line.raw, request_bytes("POST", f"{origin.url}/api/payouts", b"{}", [JSON]))
        assert (allowed.status, denied.rule) == (200, "net-payout")
        assert origin.writes() == ["POST /api/x"]
    finally:
        origin.close()


async def test_whole_corpus_over_the_wire(line: Line) -> None:
    """Every ordinary request arrives as it was sent; no disguised one arrives."""
    host = f"127.0.0.1:{line.origin.port}"

    def go(entry: dict[str, Any]) -> int:
        request = as_request(entry)
        url = request.url.replace("127.0.0.1:8000", host)
        headers = [(n, v) for n, v in entry["headers"] if n.lower() != "host"]
        named, *others = [v.replace("127.0.0.1:8000", host) for n, v in request.headers if n == "host"]
        headers += [("Host", other) for other in others]
        data = request_bytes(request.method, url, request.body, headers, host=named)
        return send_raw(line.proxy.port, data).status

    line.origin.hits.clear()
    for entry in DISGUISED:
        assert await asyncio.to_thread(go, entry) in (400, 403), entry["imitates"]
    assert line.origin.hits == []
    for entry in ORDINARY:
        if not entry["url"].endswith("/ws") and not any(n == "Upgrade" for n, _ in entry["headers"]):
            assert await asyncio.to_thread(go, entry) not in (0, 400, 403), entry["imitates"]
    assert all(hit.by_proxy for hit in line.origin.hits)
