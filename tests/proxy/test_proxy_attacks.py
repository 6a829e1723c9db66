"""What an attack on the write rules found, where it takes another policy, a WebSocket or a broken framing to show it.

The others are entries of `disguised.jsonl`. Here as there: what arrives at the server decides, not what the proxy says.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from proxy_rig import POLICY, Hit, Line

from deskcert_proxy.classify import classify
from deskcert_proxy.request import Request
from deskcert_proxy.rules import Allow, Block, compile_network
from deskcert_proxy.websocket import read_message

HOST = "http://127.0.0.1:8000"
JSON = ("content-type", "application/json")


def decide(rules: list[dict[str, Any]], method: str, url: str, *headers: tuple[str, str], body: str = "{}") -> Any:
    hosts = ["127.0.0.1", "localhost", "app.localhost", "0x7f.1", "2130706433", "127.1"]
    policy = compile_network({"network": {"hosts": hosts, "writes": rules}})
    return policy.decide(classify(Request(method, url, (JSON, *headers), body.encode())))


LIST = [
    {"id": "orders", "allow": True, "method": "POST", "url": "**/api/orders/**"},
    {"id": "reads", "allow": True, "json": {"pointer": "/op", "equals": "read"}},
    {"id": "calls", "allow": True, "rpc": "orders.get*"},
]
NOT_ON_THE_LIST = {
    "dots after the allowed path": ("/api/orders/../payouts/1", (), "{}"),
    "encoded dots after it": ("/api/orders/%2e%2e/payouts/1", (), "{}"),
    "dots encoded twice": ("/api/orders/%252e%252e/payouts/1", (), "{}"),
    "backslashes": ("/api/orders\\..\\payouts/1", (), "{}"),
    "a path parameter with dots": ("/api/orders/..;/payouts/1", (), "{}"),
    "another address in a header": ("/api/orders/1", (("x-original-url", "/api/payouts/1"),), "{}"),
    "another address in a batch": (
        "/api/orders/batch",
        (),
        '{"requests": [{"method": "POST", "url": "/api/payouts/1"}]}',
    ),
    "another method in a header": ("/api/orders/1", (("x-http-method-override", "DELETE"),), "{}"),
    "one allowed line among others": ("/bulk", (("accept", "*/*"),), '{"op":"read"}\n{"op":"delete"}'),
    "one allowed item among others": ("/bulk", (), '[{"op":"read"},{"op":"delete"}]'),
    "one allowed call among others": ("/rpc", (), '[{"method":"orders.get"},{"method":"orders.deleteAll"}]'),
}


@pytest.mark.parametrize("how", NOT_ON_THE_LIST)
def test_what_a_list_does_not_name_is_not_smuggled_in_with_what_it_names(how: str) -> None:
    path, headers, body = NOT_ON_THE_LIST[how]
    assert isinstance(decide(LIST, "POST", HOST + path, *headers, body=body), Block)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/orders/1", "{}"),
        ("/api/orders/1?next=/a", "{}"),
        ("/api/orders", "{}"),
        ("/api/orders/a%20b", "{}"),
        ("/api/orders/a.json", "{}"),
        ("/x", '{"op":"read"}'),
        ("/rpc", '[{"method":"orders.get"},{"method":"orders.getAll"}]'),
    ],
)
def test_what_the_list_names_passes(path: str, body: str) -> None:
    assert isinstance(decide(LIST, "POST", HOST + path, body=body), Allow)


ONE_HOST = [{"id": "there", "method": "POST", "url": "http://127.0.0.1/api/payouts/**"}]
NAMED = [{"id": "named", "method": "POST", "url": "http://localhost:8000/api/payouts/**"}]


@pytest.mark.parametrize(
    ("rules", "origin"),
    [
        (ONE_HOST, "http://127.0.0.1"),
        (ONE_HOST, "http://127.0.0.1:80"),
        (ONE_HOST, "http://127.0.0.1."),
        (ONE_HOST, "http://127.1"),
        (ONE_HOST, "http://2130706433:80"),
        (ONE_HOST, "http://0x7f.1"),
        (NAMED, "http://localhost:8000"),
        (NAMED, "http://LOCALHOST:8000"),
        (NAMED, "http://localhost.:8000"),
    ],
)
def test_rule_about_a_host_knows_its_other_spellings(rules: list[dict[str, Any]], origin: str) -> None:
    assert isinstance(decide(rules, "POST", origin + "/api/payouts/1"), Block)


def test_rule_about_the_query_still_sees_it_and_one_about_the_path_does_not() -> None:
    about_query = [{"id": "q", "get": "**/item?action=delete*"}]
    about_path = [{"id": "p", "get": "**/logout"}]
    assert isinstance(decide(about_query, "GET", HOST + "/item?action=delete&id=1", body=""), Block)
    assert isinstance(decide(about_path, "GET", HOST + "/login?next=/logout", body=""), Allow)
    assert isinstance(decide(about_path, "GET", HOST + "/index.php?route=account/logout", body=""), Block)


def test_moving_something_to_a_forbidden_address_is_a_write_there() -> None:
    rule = [{"id": "any", "url": "**/api/payouts/**"}]
    assert isinstance(decide(rule, "MOVE", HOST + "/dav/a", ("destination", HOST + "/api/payouts/1"), body=""), Block)


@pytest.mark.parametrize(
    "message",
    [
        "{op:'delete'}",
        '{"op":/* */"delete"}',
        '{"op":"delete",}',
        '["{\\"op\\":\\"delete\\"}"]',
        '"{\\"op\\":\\"delete\\"}"',
        '{"op":"delete\\u0000x"}',
        '{"op\\u0000x":"delete"}',
        '42["a",{"op":"delete"}]',
        'SEND\ndestination:/q\n\n{"op":"delete"}\0',
        '{"op":"read"}\x1e{"op":"delete"}',
    ],
)
def test_disguised_message_is_dropped(message: str) -> None:
    policy = compile_network({"network": POLICY["network"]})
    read = read_message(message.encode(), text=True)
    assert isinstance(policy.decide_message("ws://127.0.0.1:8000/ws", read), Block)


@pytest.mark.parametrize(
    "message", ["2", '{"op":"read"}', "hello {there}", '42["chat","[x](y)"]', '["{\\"op\\":\\"a\\"}"]']
)
def test_ordinary_message_passes(message: str) -> None:
    policy = compile_network({"network": POLICY["network"]})
    assert isinstance(policy.decide_message("ws://127.0.0.1:8000/ws", read_message(message.encode(), text=True)), Allow)


# -- framings: each holds a second, forbidden request for a server that reads it otherwise than the proxy

SMUGGLED = "POST {url}/api/payouts/smuggled-{how} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\n{{}}"
HEAD = "POST {url}/api/x HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain\r\n"
FRAMINGS = {
    "length, then chunked": HEAD + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked with a blank before the colon": HEAD + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked behind a tab": HEAD + "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked behind a vertical tab": HEAD + "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked that is not the last": HEAD + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked, misspelt": HEAD + "Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked in quotes": HEAD + 'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n' + SMUGGLED,
    "chunked twice": HEAD + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked with an underscore": HEAD + "Transfer_Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked on a folded line": HEAD + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "two lengths": HEAD + "Content-Length: 0\r\nContent-Length: 2\r\n\r\n{{}}" + SMUGGLED,
    "a list of lengths": HEAD + "Content-Length: 0, 2\r\n\r\n{{}}" + SMUGGLED,
    "a length with a plus": HEAD + "Content-Length: +2\r\n\r\n{{}}" + SMUGGLED,
    "a length in hex": HEAD + "Content-Length: 0x2\r\n\r\n{{}}" + SMUGGLED,
    "a negative length": HEAD + "Content-Length: -1\r\n\r\n" + SMUGGLED,
    "a length with an underscore": HEAD + "Content-Length: 1_0\r\n\r\n" + SMUGGLED,
    "a chunk size with 0x": HEAD + "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" + SMUGGLED,
    "a chunk size with a sign": HEAD + "Transfer-Encoding: chunked\r\n\r\n-0\r\n\r\n" + SMUGGLED,
    "an endless chunk size": HEAD + "Transfer-Encoding: chunked\r\n\r\n" + "f" * 40 + "\r\n" + SMUGGLED,
    "a chunk extension with a line feed": HEAD + "Transfer-Encoding: chunked\r\n\r\n0;\nx\r\n\r\n" + SMUGGLED,
    "bare line feeds": (HEAD + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n").replace("\r\n", "\n") + SMUGGLED,
    "a body on a GET": "GET {url}/a HTTP/1.1\r\nHost: {host}\r\nContent-Length: 200\r\n\r\n" + SMUGGLED,
    "an older version": "POST {url}/a HTTP/1.0\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    + SMUGGLED,
    "no version": "POST {url}/api/payouts/smuggled-{how}\r\n\r\n",
    "two blanks in the request line": "POST  {url}/api/payouts/smuggled-{how} HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "an address in the address": "POST {url}/a {url}/api/payouts/smuggled-{how} HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "a line break in a header": HEAD
    + "X-A: b\rPOST /api/payouts/smuggled-{how}\r\nContent-Length: 0\r\n\r\n"
    + SMUGGLED,
    "a null byte in a header": HEAD + "X-A: b\0c\r\nContent-Length: 0\r\n\r\n" + SMUGGLED,
    "continue, then something else": HEAD + "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n" + SMUGGLED,
    "a tunnel in the middle": HEAD
    + "Content-Length: 0\r\n\r\nCONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n"
    + SMUGGLED,
    "HTTP/2 without TLS": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SMUGGLED,
    "an upgrade to HTTP/2": HEAD + "Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n" + SMUGGLED,
    "an upgrade to two things": HEAD
    + "Upgrade: websocket, h2c\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n"
    + SMUGGLED,
    "an upgrade without a key": "GET {url}/a HTTP/1.1\r\nHost: {host}\r\n"
    + "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    + SMUGGLED,
}


def _talk(port: int, data: bytes) -> None:
    """Everything at once, and then until the other side ends it or has nothing more to say."""
    with socket.create_connection(("127.0.0.1", port), timeout=1.5) as client, contextlib.suppress(OSError):
        client.sendall(data)
        while client.recv(65536):
            pass


async def _talk_all(line: Line, attempts: dict[str, str]) -> list[Hit]:
    before = len(line.origin.hits)
    host = f"127.0.0.1:{line.origin.port}"
    told = [text.format(url=line.origin.url, host=host, how=n) for n, text in enumerate(attempts.values())]
    with ThreadPoolExecutor(len(told)) as pool:
        loop = asyncio.get_running_loop()
        work = [loop.run_in_executor(pool, _talk, line.proxy.port, text.encode("latin-1")) for text in told]
        await asyncio.gather(*work)
    return line.origin.hits[before:]


@pytest.mark.asyncio(loop_scope="module")
async def test_second_request_in_a_broken_framing_does_not_arrive(line: Line) -> None:
    arrived = await _talk_all(line, FRAMINGS)
    assert [hit.path for hit in arrived if "payouts" in hit.path] == []
    # Nor does it lie in the body of one that has no plain length, where a server with another framing would find it.
    assert [hit for hit in arrived if b"smuggled" in hit.body and hit.headers.get("transfer-encoding")] == []
    assert all(hit.by_proxy for hit in arrived)


@pytest.mark.asyncio(loop_scope="module")
async def test_allowed_requests_in_a_row_still_arrive(line: Line) -> None:
    """The control: the same, with a second request that nobody forbids."""
    allowed = {how: text.replace("/api/payouts/smuggled-", "/api/orders/second-") for how, text in FRAMINGS.items()}
    arrived = {hit.path for hit in await _talk_all(line, allowed)}
    names = [how for n, how in enumerate(allowed) if f"/api/orders/second-{n}" in arrived]
    assert {"continue, then something else", "an upgrade to HTTP/2"} <= set(names)


def test_corpus_of_framings_is_forbidden_when_sent_as_it_means(line: Line) -> None:
    """The control: the second request alone is one that the policy forbids."""
    del line
    request = Request("POST", HOST + "/api/payouts/smuggled-1", (JSON,), json.dumps({}).encode())
    assert isinstance(compile_network(POLICY).decide(classify(request)), Block)
