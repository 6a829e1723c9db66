"""What each way in costs over the Python API, an action; and what starting a one-shot command costs.

The same guarded clicks in a simulated application with a real ledger, so that what is compared is the way and not the
browser. Equal work is checked: every session must have delivered every click once. Run it with `make bench`, or by
itself with `python -m benchmarks.ways`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.pairs import Pair, alternate, show
from deskcert.adapters.simulator import Element, Simulator, World
from deskcert.session.jsonlines import MAX_LINE, Task, serve
from deskcert.session.lease import Lease
from deskcert.ways.guarding import Gate
from deskcert.ways.isolation import RELAY
from deskcert.ways.mcp.http import McpHttp
from deskcert.ways.mcp.lines import serve_lines
from deskcert.ways.mcp.server import make_server
from deskcert.ways.opening import Opened, Wanted, offered, open_on

CLICKS, WARM, STARTS = 150, 10, 20
POLICY = {"version": 1, "deny": [{"id": "no-delete", "name": "Delete account", "reason": "irreversible"}]}

type Ask = Callable[..., Awaitable[dict[str, Any]]]


async def opened_world(folder: Path) -> tuple[World, Opened]:
    buttons = [Element(f"n{i}", f"thing-{i}", "button", f"Do {i}") for i in range(CLICKS + WARM)]
    world = World(buttons)
    wanted = Wanted("http://127.0.0.1:1/", POLICY, "python", folder, folder, timeout_ms=0)
    return world, await open_on(Simulator(world), wanted, lease=Lease(), custody="owned", browser=None)


@asynccontextmanager
async def python(opened: Opened) -> AsyncIterator[Ask]:
    async def ask(command: str, **args: Any) -> dict[str, Any]:
        return dict(await opened.handle(command, args))

    yield ask


@asynccontextmanager
async def json_lines(opened: Opened) -> AsyncIterator[Ask]:
    """Through a pair of sockets, as through pipes."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours, limit=MAX_LINE)
    serving = asyncio.create_task(serve(opened.handle, reader, writer, Task("bench", "http://127.0.0.1:1/", 9999, 600)))
    answers, out = await asyncio.open_connection(sock=theirs, limit=MAX_LINE)
    await answers.readline()

    async def ask(command: str, **args: Any) -> dict[str, Any]:
        out.write(json.dumps({"id": 1, "command": command, "args": args}).encode() + b"\n")
        found: dict[str, Any] = json.loads(await answers.readline())
        return found

    yield ask
    out.close()
    await serving
    writer.close()


@asynccontextmanager
async def mcp_http(opened: Opened) -> AsyncIterator[Ask]:
    from mcp import Client

    http = McpHttp()
    async with http.running():
        endpoint = await http.add(make_server(Gate(opened.handle), opened.about, offered()))
        async with Client(http.url(endpoint)) as client:
            yield _tool(client)


@asynccontextmanager
async def mcp_stdio(opened: Opened) -> AsyncIterator[Ask]:
    """With the relay process that an agent starts as its server."""
    from mcp import Client, StdioServerParameters

    path = opened.folder / "s"

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve_lines(make_server(Gate(opened.handle), opened.about, offered()), reader, writer)

    server = await asyncio.start_unix_server(one, path=str(path), limit=MAX_LINE)
    arguments = ["-I", "-S", str(RELAY), "stdio", str(path)]
    async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
        yield _tool(client)
    server.close()


def _tool(client: Any) -> Ask:
    async def ask(command: str, **args: Any) -> dict[str, Any]:
        found: dict[str, Any] = (await client.call_tool(command, args)).structured_content
        return found

    return ask


async def compare(name: str, way: Any, aim_ms: float, folder: Path) -> tuple[str, float, float]:
    """(way, overhead in milliseconds, aim)"""
    async with AsyncExitStack() as stack:
        sides = []
        for which, open_way in (("other", way), ("python", python)):
            world, opened = await opened_world(folder / name / which)
            stack.push_async_callback(opened.close)
            ask = await stack.enter_async_context(open_way(opened))
            seen = (await ask("snapshot"))["data"]["snapshot_id"]
            sides.append((world, ask, seen))

        def clicks(side: Any) -> Callable[[int], Awaitable[object]]:
            _, ask, seen = side

            async def click(i: int) -> None:
                answer = await ask("click", ref=f"@{seen}:e{i + 1}")
                assert answer["ok"], answer

            return click

        pair = await alternate(clicks(sides[0]), clicks(sides[1]), pairs=CLICKS, warm=WARM)
        for world, _, _ in sides:
            assert len(world.delivered) == CLICKS + WARM, "not the same work"
    overhead = _overhead_ms(pair)
    show(f"A guarded click over {name}", (name, "Python API"), pair, aim=f"{aim_ms:g} ms more than the Python API")
    return name, overhead, aim_ms


def _overhead_ms(pair: Pair) -> float:
    """Median of the differences, pair by pair: both sides of a pair met the same machine."""
    return statistics.median(a - b for a, b in zip(pair.ours_us, pair.theirs_us, strict=True)) / 1000


async def starts() -> None:
    """A one-shot command that finds no session, against a bare import of click."""
    folder = tempfile.TemporaryDirectory(prefix="deskcert-bench-")
    environment = os.environ | {"XDG_RUNTIME_DIR": folder.name}

    async def started(*words: str) -> None:
        process = await asyncio.create_subprocess_exec(
            *words, env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        await process.wait()

    program = str(Path(sys.executable).with_name("deskcert"))
    pair = await alternate(
        lambda _: started(program, "status"),
        lambda _: started(sys.executable, "-c", "import click"),
        pairs=STARTS,
        warm=2,
    )
    show("Starting a one-shot command", ("deskcert status", 'python -c "import click"'), pair, aim="at most 2")
    folder.cleanup()


async def main() -> None:
    ways = {"JSON lines": (json_lines, 2.0), "MCP over HTTP": (mcp_http, 10.0), "MCP over stdio": (mcp_stdio, 10.0)}
    with tempfile.TemporaryDirectory(prefix="deskcert-bench-") as folder:
        found = [await compare(name, way, aim, Path(folder)) for name, (way, aim) in ways.items()]
    print("\nOver the Python API, an action (median of the differences)")
    for name, overhead, aim in found:
        print(f"  {name:<44} {overhead:+9.2f} ms   (aim: at most {aim:g} ms)")
    await starts()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    asyncio.run(main())
