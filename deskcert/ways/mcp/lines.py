"""MCP over a pair of byte streams: standard input and output, or a socket. One message a line, bounded.

The SDK's own stdio transport reads lines of any length and stays silent about what is no JSON; an agent that is not
trusted gets a limit and an answer.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Protocol

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage

from deskcert.session.jsonlines import MAX_LINE

__all__ = ["MAX_BAD", "serve_lines"]

MAX_BAD: Final = 100
"""Lines that are no message; then the client is taken to speak another language."""


class Reader(Protocol):
    """The part of `asyncio.StreamReader` that is used. Its limit must be above `MAX_LINE`."""

    async def readuntil(self, separator: bytes = b"\n") -> bytes: ...
    async def readexactly(self, n: int) -> bytes: ...


class Writer(Protocol):
    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None: ...


async def serve_lines(server: Server[Any], reader: Reader, writer: Writer) -> None:
    """Until the client closes its end, or writes too much that is no message."""
    lock = anyio.Lock()

    async def send(line: bytes) -> None:
        async with lock:
            with suppress(ConnectionError, BrokenPipeError):
                writer.write(line + b"\n")
                await writer.drain()

    into, read_stream = create_context_streams[SessionMessage | Exception](0)
    write_stream, out = create_context_streams[SessionMessage](0)

    async def reading() -> None:
        bad = 0
        async with into:
            async for line in _lines(reader):
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    bad += 1
                    await send(_refusal(line))
                    if bad >= MAX_BAD:
                        return
                    continue
                with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    await into.send(SessionMessage(message))

    async def writing() -> None:
        async with out:
            async for told in out:
                await send(told.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reading)
        tasks.start_soon(writing)
        await server.run(read_stream, write_stream, server.create_initialization_options())
        tasks.cancel_scope.cancel()


def _refusal(line: bytes) -> bytes:
    """JSON-RPC's own errors: not JSON, or not a message. With the id where it can be read."""
    number: Any = None
    if len(line) > MAX_LINE:
        code, why = types.INVALID_REQUEST, "a message may hold at most 1 MiB"
    else:
        try:
            raw = json.loads(line)
        except (ValueError, RecursionError):
            code, why = types.PARSE_ERROR, "a line must be one JSON object"
        else:
            code, why = types.INVALID_REQUEST, "this is no JSON-RPC message"
            found = raw.get("id") if isinstance(raw, dict) else None
            number = found if isinstance(found, int | str) and not isinstance(found, bool) else None
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": why}}).encode()


async def _lines(reader: Reader) -> AsyncIterator[bytes]:
    """Lines until the end; one that is too long comes as blanks of more than `MAX_LINE`, and is never held."""
    import asyncio

    while True:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as exc:
            if exc.partial.strip():
                yield exc.partial
            return
        except asyncio.LimitOverrunError as exc:
            await _skip(reader, exc.consumed)
            line = b" " * (MAX_LINE + 1)
        except ConnectionError:
            return
        if line.strip() or len(line) > MAX_LINE:
            yield line.rstrip(b"\n")


async def _skip(reader: Reader, consumed: int) -> None:
    import asyncio

    while True:
        await reader.readexactly(consumed)
        try:
            await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as exc:
            consumed = exc.consumed
        except asyncio.IncompleteReadError:
            return
        else:
            return


@asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[Reader, Writer]]:
    """This process's standard input and output, as streams. While they serve, whatever else prints goes to standard
    error: a stray line would be taken for a message. Raises `UsageError` when they are no pipes."""
    import asyncio
    import os

    from deskcert_schema.errors import UsageError

    loop = asyncio.get_running_loop()
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    reader = asyncio.StreamReader(limit=MAX_LINE)
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(wire_in, "rb"))
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(wire_out, "wb"))
    except ValueError as exc:
        raise UsageError(
            "deskcert mcp speaks over pipes: let an MCP client start it, or use --http (standard input is a file here)"
        ) from exc
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    try:
        yield reader, writer
    finally:
        transport.close()
        os.dup2(2, 1)
