"""`deskcert mcp`: opens the session, serves it, ends it in order whatever ends the client."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deskcert.ways.guarding import Gate
from deskcert.ways.opening import Opened, SessionHost, Wanted, offered
from deskcert_schema.errors import UsageError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from deskcert.ways.mcp.http import Endpoint, McpHttp

__all__ = ["client_config", "need_sdk", "serve_http", "serve_stdio", "server_of", "write_private"]


def need_sdk() -> None:
    """Raises `UsageError` where the SDK is not installed."""
    from importlib.util import find_spec

    if find_spec("mcp") is None or find_spec("uvicorn") is None:
        raise UsageError("the MCP server needs the official SDK: pip install 'deskcert[mcp]'")


def server_of(opened: Opened) -> Server[Any]:
    from deskcert.ways.mcp.server import make_server

    return make_server(Gate(opened.handle), opened.about, offered())


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


async def serve_stdio(wanted: Wanted) -> int:
    from deskcert.ways.mcp.lines import serve_lines, standard_streams

    async with standard_streams() as (reader, writer), SessionHost.for_wanted(wanted, _say) as host:
        opened = await host.open(wanted)
        _say(f"deskcert: guarding {wanted.url}; the ledger is {opened.folder}")
        work = asyncio.create_task(serve_lines(server_of(opened), reader, writer))
        stopped = await _until(work)
        if stopped:
            await opened.close("interrupted", "deskcert was told to end")
        else:
            await opened.close("finished", "the client closed its end")
    return 0


async def serve_http(wanted: Wanted, *, port: int, clients: int, config: Path | None, idle_s: float = 900) -> int:
    """Until every session has ended (by its claim, or because nobody asked for anything) or this process is told to
    end."""
    from deskcert.ways.mcp.http import McpHttp

    sessions: list[Opened] = []

    def at_the_door(why: str) -> None:
        for opened in sessions:
            notes[opened.about.run](why)

    notes: dict[str, Callable[[str], None]] = {}
    try:
        http = McpHttp(port=port, refused=at_the_door)
    except OSError as exc:
        raise UsageError(f"port {port} of 127.0.0.1 cannot be used ({exc.strerror}); leave --port out") from exc
    async with SessionHost.for_wanted(wanted, _say) as host, http.running():
        urls, watched = [], []
        told: list[str] = []
        for _ in range(clients):
            opened = await host.open(wanted)
            notes[opened.about.run] = _noting(opened)
            sessions.append(opened)
            endpoint = await http.add(server_of(opened), refused=notes[opened.about.run])
            urls.append(http.url(endpoint))
            watched.append(_until_ended(http, endpoint, opened, idle_s))
            told.append(json.dumps({"url": http.url(endpoint), "run": opened.about.run, "ledger": str(opened.folder)}))
        if config is not None:
            write_private(config, json.dumps(client_config(urls[0]), indent=1) + "\n")
        if await _until(asyncio.ensure_future(asyncio.gather(*watched)), lambda: print(*told, sep="\n", flush=True)):
            await host.close("interrupted", "deskcert was told to end")
    return 0


async def _until_ended(http: McpHttp, endpoint: Endpoint, opened: Opened, idle_s: float) -> None:
    """Ends one client's session in order: a connection that would say that it has gone does not exist over HTTP."""
    loop = asyncio.get_running_loop()
    while True:
        patience = _AFTER_CLAIM_S if opened.claimed else idle_s
        left = endpoint.touched + patience - loop.time()
        if left <= 0 and not endpoint.busy:
            break
        await asyncio.sleep(min(max(left, 0.05), 1.0))
    why = "the claim was made" if opened.claimed else f"nobody asked for anything for {idle_s:.0f} s"
    await http.remove(endpoint)
    await opened.close("finished", why)


_AFTER_CLAIM_S: Final = 2.0


def client_config(url: str) -> dict[str, Any]:
    """The form that MCP clients share."""
    return {"mcpServers": {"deskcert": {"type": "http", "url": url}}}


def write_private(path: Path, text: str) -> None:
    """For this user only: an address with a token is a key."""
    path.touch(0o600)
    path.chmod(0o600)
    path.write_text(text, "utf-8")


def _noting(opened: Opened) -> Callable[[str], None]:
    """At most a few lines in the ledger, however often it happens."""
    seen: dict[str, int] = {}
    tasks: set[asyncio.Task[None]] = set()

    def note(why: str) -> None:
        seen[why] = seen.get(why, 0) + 1
        if seen[why] <= 3:
            task = asyncio.create_task(opened.note("protocol_error", {"why": why}))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    return note


async def _until(work: asyncio.Future[Any], ready: Callable[[], None] = lambda: None) -> bool:
    """Until `work` is over, or this process is told to end. True for the latter. `ready` is called when a signal would
    be heard: whoever is told that all is up may send one at once."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, told.set)
    waiting = asyncio.ensure_future(told.wait())
    try:
        ready()
        await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            await asyncio.wait({work})
            if not work.cancelled():
                work.exception()  # a gathering ends as one that failed, and would be printed if nobody asked
            return True
        work.result()
        return False
    finally:
        waiting.cancel()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)
