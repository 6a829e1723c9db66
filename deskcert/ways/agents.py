"""Starts the agent under test over any way in, in a sandbox or not: what the runner calls in each run.

jsonl       JSON lines on its standard input and output
mcp-http    an address in DESKCERT_MCP_URL and {mcp_url}
mcp-stdio   a client configuration in DESKCERT_MCP_CONFIG and {mcp_config}, whose server command reaches this run
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from deskcert.certify.agent_process import AgentEnd, AgentRun, Ended, Handle, Launch, Note
from deskcert.certify.env_secrets import NOTHING_SECRET, EnvSecrets, StreamScrubber
from deskcert.certify.forks import Forks
from deskcert.certify.kept import Kept
from deskcert.session.jsonlines import MAX_LINE, Task
from deskcert.ways.guarding import About, Gate
from deskcert.ways.isolation import RELAY, Sandbox
from deskcert.ways.sockets import private_listener

__all__ = ["McpAgentRun", "agent_run"]

_MAX_STDOUT: Final = 1 << 20
_NOTED: Final = 20
"""Attempts of one sort that are recorded each; then only counted."""


def agent_run(
    transport: str,
    command: Sequence[str],
    *,
    sandbox: Sandbox,
    about: About,
    folder: Path,
    token: str,
    handle: Handle,
    note: Note,
    keep_environment: Sequence[str] = (),
    cwd: Path | None = None,
    secrets: EnvSecrets = NOTHING_SECRET,
    forks: Forks | None = None,
) -> AgentRun:
    """An agent in one run, not started yet. `forks`: for a reference agent, where nothing stands in front of it."""
    given: dict[str, Any] = {"folder": folder, "token": token, "note": note, "cwd": cwd}
    given |= {"keep_environment": keep_environment, "secrets": secrets}
    if transport == "jsonl":
        launch = Launch(wrap=sandbox.command, forks=forks)
        return AgentRun(command, handle=handle, launch=launch, **given)
    return McpAgentRun(command, transport=transport, sandbox=sandbox, about=about, handle=handle, **given)


class McpAgentRun(AgentRun):
    """The agent is an MCP client. Its claim, its exit or the clock ends the run; its output is evidence."""

    def __init__(
        self, command: Sequence[str], *, transport: str, sandbox: Sandbox, about: About, handle: Handle, **given: Any
    ) -> None:
        super().__init__(command, handle=self._handled, **given)
        self._transport, self._sandbox, self._about = transport, sandbox, about
        self._inner = handle
        self._claim_made = asyncio.Event()
        self._output: asyncio.Task[dict[str, Any]] | None = None
        self._seen: dict[str, int] = {}
        self._notes: set[asyncio.Task[None]] = set()

    async def run(self, task: Task) -> AgentEnd:
        about = replace(self._about, task=task.task, start_url=task.start_url)
        gate = Gate(self._handled)
        with _private_folder() as place:
            serve = self._over_http if self._transport == "mcp-http" else self._over_stdio
            async with serve(gate, about, place) as launch:
                self._launch = replace(launch, environment={**launch.environment, "DESKCERT_TASK": task.task})
                return await super().run(task)

    async def _handled(self, command: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        envelope = await self._inner(command, args)
        if command == "finish" and envelope.get("ok") is True:
            self._claimed = True
            self._claim_made.set()
        return envelope

    async def _talk(self, process: Kept, task: Task) -> AgentEnd:
        assert process.stdin is not None
        process.stdin.close()
        self._output = asyncio.create_task(self._keep_stdout(process))
        exited = asyncio.ensure_future(process.exited())
        claimed = asyncio.ensure_future(self._claim_made.wait())
        try:
            await asyncio.wait({exited, claimed}, timeout=task.seconds, return_when=asyncio.FIRST_COMPLETED)
            if self._claimed:
                # It may have more to say to its own user; the answer to its claim must reach it in any case.
                await asyncio.wait({exited}, timeout=1.0)
                return AgentEnd(Ended.FINISHED, "the agent made its claim")
            if exited.done():
                return await self._ended_by_itself(process)
            await self._note("hung", {"seconds": task.seconds})
            return AgentEnd(Ended.BUDGET, f"the agent's {task.seconds} s were used up")
        finally:
            exited.cancel()
            claimed.cancel()
            if self._notes:
                await asyncio.wait(set(self._notes), timeout=1.0)

    async def _end(self, process: Kept, stderr: asyncio.Task[tuple[int, int]]) -> None:
        await super()._end(process, stderr)
        if self._output is not None:
            try:
                await self._note("output", await asyncio.wait_for(self._output, 2.0))
            except TimeoutError:  # a process that escaped holds the pipe
                await self._note("output", {"stream": "stdout", "file": "agent.stdout", "why": "it did not end"})

    async def _keep_stdout(self, process: Kept) -> dict[str, Any]:
        """The first MiB, in `agent.stdout`; what to record of it when it ends."""
        assert process.stdout is not None
        kept = total = 0
        digest, scrubber = hashlib.sha256(), StreamScrubber(self._secrets)
        with (self._folder / "agent.stdout").open("wb") as file:
            while True:
                block = await process.stdout.read(65_536)
                total += len(block)
                if kept < _MAX_STDOUT:
                    part = (scrubber.feed(block) if block else scrubber.rest())[: _MAX_STDOUT - kept]
                    kept += file.write(part)
                    digest.update(part)
                    file.flush()
                if not block:
                    break
        return {
            "stream": "stdout",
            "file": "agent.stdout",
            "bytes": kept,
            "total_bytes": total,
            "sha256": digest.hexdigest(),
        }

    def _refused(self, why: str) -> None:
        """Something at the door that is no command: a wrong token, a foreign Host, a message without end."""
        self._seen[why] = self._seen.get(why, 0) + 1
        if self._seen[why] <= _NOTED:
            task = asyncio.ensure_future(self._noted(why))
            self._notes.add(task)
            task.add_done_callback(self._notes.discard)

    async def _noted(self, why: str) -> None:
        await self._note("protocol_error", {"why": why})

    @asynccontextmanager
    async def _over_http(self, gate: Gate, about: About, place: Path) -> AsyncIterator[Launch]:
        from deskcert.ways.mcp.http import McpHttp
        from deskcert.ways.mcp.server import make_server
        from deskcert.ways.mcp.serving import client_config, write_private
        from deskcert.ways.opening import offered

        path = place / "mcp.sock"
        unix = private_listener(path)
        http = McpHttp(more=(unix,), refused=self._refused)
        async with http.running():
            endpoint = await http.add(make_server(gate, about, offered(desktop=about.desktop)), refused=self._refused)
            url = http.url(endpoint)
            config = place / "mcp.json"
            write_private(config, json.dumps(client_config(url)))
            yield Launch(
                placeholders={"mcp_url": url, "mcp_config": str(config)},
                environment={"DESKCERT_MCP_URL": url, "DESKCERT_MCP_CONFIG": str(config)},
                wrap=lambda command: self._sandbox.command(command, shared=place, listen=(http.port, path)),
            )

    @asynccontextmanager
    async def _over_stdio(self, gate: Gate, about: About, place: Path) -> AsyncIterator[Launch]:
        from deskcert.ways.mcp.lines import serve_lines
        from deskcert.ways.mcp.server import make_server
        from deskcert.ways.mcp.serving import write_private
        from deskcert.ways.opening import offered

        path, config = place / "mcp.sock", place / "mcp.json"
        server = make_server(gate, about, offered(desktop=about.desktop))
        tasks: set[asyncio.Task[Any]] = set()

        async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            current = asyncio.current_task()
            assert current is not None
            tasks.add(current)
            try:
                await serve_lines(server, reader, writer)
            finally:
                tasks.discard(current)
                writer.close()

        command = [sys.executable, "-I", "-S", str(RELAY), "stdio", str(path)]
        entry = {"type": "stdio", "command": command[0], "args": command[1:]}
        write_private(config, json.dumps({"mcpServers": {"deskcert": entry}}))
        listening = await asyncio.start_unix_server(client, sock=private_listener(path), limit=MAX_LINE)
        try:
            yield Launch(
                placeholders={"mcp_config": str(config), "mcp_url": ""},
                environment={"DESKCERT_MCP_CONFIG": str(config)},
                wrap=lambda words: self._sandbox.command(words, shared=place),
            )
        finally:
            listening.close()
            for task in list(tasks):
                task.cancel()
            if tasks:
                await asyncio.wait(set(tasks), timeout=2.0)


@contextlib.contextmanager
def _private_folder() -> Any:
    # In /tmp whatever TMPDIR says: the path of a socket may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="deskcert-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)
