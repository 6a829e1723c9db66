"""Clients that mean harm, or are broken: refused with a clear error, the session goes on, nothing is dispatched."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from ways_world import Simulated, ref_of, simulated

from deskcert.session.jsonlines import MAX_LINE
from deskcert.ways.guarding import MAX_WAITING, Gate
from deskcert.ways.mcp import http as http_module
from deskcert.ways.mcp import patience
from deskcert.ways.mcp.http import McpHttp
from deskcert.ways.mcp.lines import MAX_BAD, serve_lines

HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


class Door:
    """The HTTP way in over a simulated world, and what it noted about requests that it turned away."""

    def __init__(self, world: Simulated, http: McpHttp, url: str, noted: list[str]) -> None:
        self.world, self.http, self.url, self.noted = world, http, url, noted

    async def post(self, body: Any, *, url: str | None = None, **headers: str) -> httpx2.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        async with httpx2.AsyncClient(timeout=30) as client:
            return await client.post(url or self.url, content=content, headers=HEADERS | named)

    async def raw(self, head: str, body: bytes = b"", *, finish: bool = True) -> bytes:
        """Bytes as they are; what comes back until the other side closes, or for a moment."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.http.port)
        writer.write(head.encode() + b"\r\n\r\n" + body)
        if finish:
            await writer.drain()
        answer = await asyncio.wait_for(reader.read(65_536), 10)
        writer.close()
        return answer

    async def still_works(self) -> None:
        """An ordinary client does its work; it is the first to deliver anything."""
        assert self.world.delivered() == []
        async with Client(self.url) as client:
            seen = (await client.call_tool("snapshot", {})).structured_content
            done = await client.call_tool("click", {"ref": ref_of(seen, "Approve", "Order 1001")})
            assert done.structured_content["ok"] is True
        assert [d.thing for d in self.world.delivered()] == ["order-1001"]


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    noted: list[str] = []
    async with simulated(tmp_path) as world:
        http = McpHttp(refused=noted.append)
        async with http.running():
            endpoint = await http.add(world.server(), refused=noted.append)
            yield Door(world, http, http.url(endpoint), noted)


async def test_a_wrong_token_and_none(door: Door) -> None:
    for url in (f"http://127.0.0.1:{door.http.port}/mcp", door.url.replace("/mcp", "x/mcp")):
        answer = await door.post(HELLO, url=url)
        assert answer.status_code == 401
        assert "token" in answer.json()["error"]["message"]
    answer = await door.post(HELLO, url=f"http://127.0.0.1:{door.http.port}/mcp", authorization="Bearer nonsense")
    assert answer.status_code == 401
    assert len(door.noted) == 3
    await door.still_works()


async def test_the_token_in_a_header_is_as_good(door: Door) -> None:
    token = door.url.split("/")[3]
    plain = f"http://127.0.0.1:{door.http.port}/mcp"
    assert (await door.post(HELLO, url=plain, authorization=f"Bearer {token}")).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example:1"])
async def test_a_foreign_origin_even_with_the_token(door: Door, origin: str) -> None:
    answer = await door.post(HELLO, origin=origin)
    assert answer.status_code == 403
    assert "origin" in answer.json()["error"]["message"]
    await door.still_works()


async def test_our_own_origin_is_let_in(door: Door) -> None:
    assert (await door.post(HELLO, origin=f"http://127.0.0.1:{door.http.port}")).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1"])
async def test_a_host_that_dns_rebinding_would_send(door: Door, host: str) -> None:
    answer = await door.post(HELLO, host=host.format(port=door.http.port))
    assert answer.status_code == 421
    assert "Host" in answer.json()["error"]["message"]
    await door.still_works()


async def test_a_hundred_megabytes_are_refused_before_they_are_read(door: Door) -> None:
    path = "/" + "/".join(door.url.split("/")[3:])
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{door.http.port}\r\nContent-Type: application/json"
    answer = await door.raw(f"{head}\r\nContent-Length: 100000000", b"x" * 1000)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"1 MiB" in answer
    # Without a length: it is counted while it comes, and at most a little over a MiB is ever held.
    reader, writer = await asyncio.open_connection("127.0.0.1", door.http.port)
    writer.write(f"{head}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    sent = 0
    try:
        for _ in range(100):
            writer.write(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")
            await writer.drain()
            sent += 1
    except ConnectionError:
        pass
    else:
        assert (await asyncio.wait_for(reader.read(12), 10)).startswith(b"HTTP/1.1 413")
    writer.close()
    await door.still_works()


async def test_a_sender_who_never_comes_to_an_end(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "BODY_S", 0.2)
    path = "/" + "/".join(door.url.split("/")[3:])
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{door.http.port}\r\nContent-Type: application/json"
    answer = await door.raw(f"{head}\r\nContent-Length: 500", b'{"jsonrpc"')
    assert answer.startswith(b"HTTP/1.1 408")
    await door.still_works()


@pytest.mark.parametrize("head", ["", "POST / HTT"])
async def test_a_head_that_never_comes_to_an_end(door: Door, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "HEAD_S", 0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", door.http.port)
    writer.write(head.encode())
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 408")
    assert int(answer.split(b"Content-Length: ")[1].split(b"\r")[0]) == len(answer.split(b"\r\n\r\n")[1])
    await door.still_works()


async def test_a_kept_connection_is_not_cut_while_it_is_used(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "HEAD_S", 0.5)
    async with Client(door.url) as client:
        for _ in range(30):
            assert (await client.call_tool("status", {})).structured_content["ok"] is True
    await door.still_works()


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"jsonrpc":"2.0","id":1}', b'"click"', b"NaN"]
)
async def test_what_is_no_message(door: Door, body: bytes) -> None:
    answer = await door.post(body)
    assert 400 <= answer.status_code < 500
    assert "error" in answer.json()
    await door.still_works()


async def test_unknown_tools_and_wrong_types(door: Door) -> None:
    async with Client(door.url) as client:
        for name, args, word in (
            ("clikc", {}, "did you mean click"),
            ("click", {"ref": 7}, "is not a ref"),
            ("click", {"ref": {"$ne": None}}, "is not a ref"),
            ("snapshot", {"max_depth": "deep"}, "whole number"),
            ("snapshot", {"__proto__": {}}, "has no argument"),
        ):
            answer = await client.call_tool(name, args)
            assert answer.is_error
            assert answer.structured_content["error"]["code"] == "INVALID_ARGS"
            assert word in answer.structured_content["error"]["message"]
    await door.still_works()


async def test_a_thousand_requests_at_once(door: Door) -> None:
    """Each is answered, or turned away in so many words; none hangs, and the session is as it was."""
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "flood", "version": "1"},
    }
    headers = HEADERS | {"mcp-protocol-version": version, "mcp-method": "tools/call", "mcp-name": "status"}
    limits = httpx2.Limits(max_connections=200)
    async with httpx2.AsyncClient(timeout=60, limits=limits) as client:

        async def one(number: int) -> int:
            params = {"name": "status", "arguments": {}, "_meta": meta}
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            answer = await client.post(door.url, json=message, headers=headers)
            assert answer.status_code in (200, 503), answer.text
            assert answer.status_code == 200 or "wait for an answer" in answer.text
            return answer.status_code

        codes = await asyncio.gather(*(one(n) for n in range(1000)))
    assert len(codes) == 1000
    assert codes.count(200) > 0
    await door.still_works()


async def test_commands_that_wait_are_bounded(tmp_path: Path) -> None:
    hold = asyncio.Event()

    async def slow(command: str, _args: Any) -> dict[str, Any]:
        await hold.wait()
        return {"version": "2.5", "ok": True, "command": command, "data": {}}

    gate = Gate(slow)
    tasks = [asyncio.ensure_future(gate("click", {})) for _ in range(MAX_WAITING + 5)]
    turned_away = await _first_done(tasks, 5)
    assert all(a["error"]["disposition"]["delivery"] == "not_delivered" for a in turned_away)
    hold.set()
    assert sum(1 for a in await asyncio.gather(*tasks) if a["ok"]) == MAX_WAITING


async def _first_done(tasks: list[Any], number: int) -> list[Any]:
    done: set[Any] = set()
    while len(done) < number:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    return [t.result() for t in done]


# Standard streams


@asynccontextmanager
async def pipe(
    world: Simulated,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamReader, asyncio.Task[None]]]:
    """(what the server reads, what it wrote, the serving task)"""
    into, out = asyncio.StreamReader(limit=MAX_LINE), asyncio.StreamReader(limit=1 << 24)

    class Writer:
        def write(self, data: bytes) -> None:
            out.feed_data(data)

        async def drain(self) -> None:
            return None

    serving = asyncio.create_task(serve_lines(world.server(), into, Writer()))
    yield into, out, serving
    if not into.at_eof():
        into.feed_eof()
    await asyncio.wait_for(serving, 10)


def line(method: str, number: int, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


async def shake_hands(into: asyncio.StreamReader, out: asyncio.StreamReader) -> None:
    into.feed_data(json.dumps(HELLO).encode() + b"\n")
    assert json.loads(await out.readline())["result"]["serverInfo"]["name"] == "deskcert"
    into.feed_data(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')


async def test_lines_that_are_no_message_get_an_answer_and_the_next_one_counts(tmp_path: Path) -> None:
    async with simulated(tmp_path, "mcp-stdio") as world, pipe(world) as (into, out, _):
        await shake_hands(into, out)
        into.feed_data(b"{nonsense\n")
        assert json.loads(await out.readline())["error"]["code"] == -32700
        into.feed_data(b'{"id": 7}\n')
        told = json.loads(await out.readline())
        assert (told["id"], told["error"]["code"]) == (7, -32600)
        for _ in range(100):
            into.feed_data(b"x" * (1 << 20))
            await asyncio.sleep(0)
        into.feed_data(b"\n")
        assert "1 MiB" in json.loads(await out.readline())["error"]["message"]
        into.feed_data(line("tools/call", 9, name="status", arguments={}))
        assert json.loads(await out.readline())["result"]["structuredContent"]["ok"] is True
        assert world.delivered() == []


async def test_a_thousand_lines_at_once_are_all_answered(tmp_path: Path) -> None:
    async with simulated(tmp_path, "mcp-stdio") as world, pipe(world) as (into, out, _):
        await shake_hands(into, out)
        for number in range(1000):
            into.feed_data(line("tools/call", number, name="status", arguments={}))
        answers = [json.loads(await asyncio.wait_for(out.readline(), 30)) for _ in range(1000)]
        assert sorted(a["id"] for a in answers) == list(range(1000))
        codes = {a["result"]["structuredContent"].get("error", {}).get("code") for a in answers}
        assert codes <= {None, "APP_UNRESPONSIVE"}


async def test_somebody_who_speaks_another_language_is_let_go(tmp_path: Path) -> None:
    async with simulated(tmp_path, "mcp-stdio") as world, pipe(world) as (into, _out, serving):
        into.feed_data(b"hello?\n" * (MAX_BAD + 1))
        await asyncio.wait_for(serving, 10)
        assert world.delivered() == []


async def test_a_long_wait_is_told_to_whoever_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deskcert.ways.mcp import server as server_module

    monkeypatch.setattr(server_module, "_PROGRESS_EVERY_S", 0.01)
    told: list[tuple[float, str | None]] = []
    heard = asyncio.Event()

    async def note(progress: float, _total: float | None, message: str | None) -> None:
        told.append((progress, message))
        heard.set()

    async def slow(command: str, _args: Any) -> dict[str, Any]:
        await heard.wait()
        return {"version": "2.5", "ok": True, "command": command, "data": {}}

    async with simulated(tmp_path) as world:
        server = server_module.make_server(Gate(slow), world.opened.about, {"status": False})
        async with Client(server) as client:
            answer = await asyncio.wait_for(client.call_tool("status", {}, progress_callback=note), 20)
    assert answer.structured_content["ok"]
    assert told[0] == (1, "status: still at it")
