"""deskcert and two other tools for agents, each driven from outside as an agent drives it: deskcert and Playwright MCP
as MCP servers on standard streams, agent-browser by its own command. One browser each, the same executable."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["PEERS", "Agentic", "Did", "installed", "tools"]

PEERS: Final = ("@playwright/mcp@0.0.83", "agent-browser@0.41.2")
_FOLDER: Final = Path(tempfile.gettempdir()) / "deskcert-peers"
_LONGEST: Final = 1 << 26
_PATIENCE_S: Final = 60
_CONTROL: Final = re.compile(r'^\s*(?:- )?(button|textbox) "((?:[^"\\]|\\.)*)".*?(?:ref=|\s)((?:f\d+)?e\d+)\b')


@dataclass(frozen=True, slots=True)
class Did:
    """What a tool said of an act."""

    ok: bool
    said: str


class Agentic:
    """One tool with one page open."""

    name: str
    text: str = ""
    """Of the last snapshot, as a model is given it."""

    async def open(self, url: str) -> None:
        raise NotImplementedError

    async def snapshot(self) -> str:
        raise NotImplementedError

    async def click(self, ref: str) -> Did:
        raise NotImplementedError

    async def fill(self, ref: str, text: str) -> Did:
        raise NotImplementedError

    def controls(self) -> list[tuple[str, str, str]]:
        """Role, name and ref of each button and text field in the last snapshot."""
        found = (_CONTROL.match(line) for line in self.text.splitlines())
        return [(m[1], json.loads(f'"{m[2]}"'), m[3]) for m in found if m]


class _Server:
    """An MCP server on standard streams, with no more of a client than this needs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out, self._last, self._process = process.stdin, process.stdout, 0, process

    @classmethod
    async def start(cls, *command: str, cwd: Path) -> _Server:
        pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        made = cls(
            await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=null, limit=_LONGEST, cwd=cwd, env=os.environ
            )
        )
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        await made._ask("initialize", about)
        made._in.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return made

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        line = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self._in.write(json.dumps(line).encode() + b"\n")
        await self._in.drain()
        async with asyncio.timeout(_PATIENCE_S):
            while line_back := await self._out.readline():
                answer: dict[str, Any] = json.loads(line_back)
                if answer.get("id") == self._last:
                    return answer
        raise EOFError(method)

    async def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self._ask("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            return {"isError": True, "content": [{"text": str(answer["error"].get("message"))}]}
        found: dict[str, Any] = answer["result"]
        return found

    async def call(self, tool: str, **arguments: Any) -> tuple[bool, str]:
        """Whether the tool reports no error, and its text."""
        result = await self.result(tool, **arguments)
        return not result.get("isError"), _text(result)

    async def close(self) -> None:
        self._in.close()
        try:
            await asyncio.wait_for(self._process.wait(), 20)
        except TimeoutError:
            self._process.kill()


class Deskcert(Agentic):
    name = "deskcert"

    def __init__(self, folder: Path) -> None:
        self._folder, self._server = folder, None

    _server: _Server | None

    async def open(self, url: str) -> None:
        policy = self._folder / "policy.yaml"
        policy.write_text("version: 1\ndeny:\n  - {id: no-delete, name: Delete account, reason: irreversible}\n")
        await self.close()
        command = (str(Path(sys.executable).with_name("deskcert")), "mcp", "--url", url, "--policy", str(policy))
        self._server = await _Server.start(*command, "--out", str(self._folder / "runs"), cwd=self._folder)

    async def _envelope(self, tool: str, **arguments: Any) -> dict[str, Any]:
        assert self._server is not None
        result = await self._server.result(tool, **arguments)
        self._said = _text(result)
        found: dict[str, Any] = result["structuredContent"]
        return found

    async def snapshot(self) -> str:
        answer = await self._envelope("snapshot", budget_ms=30_000)
        self.text = self._said
        self._id = answer["data"]["snapshot_id"]
        return self.text

    async def click(self, ref: str) -> Did:
        return _did(await self._envelope("click", ref=ref))

    async def fill(self, ref: str, text: str) -> Did:
        return _did(await self._envelope("set-value", ref=ref, value=text))

    def controls(self) -> list[tuple[str, str, str]]:
        return [(role, name, f"@{self._id}:{ref}") for role, name, ref in super().controls()]

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()


def _text(result: dict[str, Any]) -> str:
    return "\n".join(part.get("text", "") for part in result["content"])


def _did(answer: dict[str, Any]) -> Did:
    if answer["ok"]:
        return Did(True, answer["data"]["disposition"]["delivery"])
    error = answer["error"]
    return Did(False, f"{error['code']} ({error['disposition']['delivery']}): {error['message']}")


class PlaywrightMcp(Agentic):
    name = "Playwright MCP"

    def __init__(self, folder: Path, browser: Path) -> None:
        self._folder, self._browser = folder, browser
        self._server: _Server | None = None

    async def open(self, url: str) -> None:
        if self._server is None:
            options = ("--headless", "--isolated", "--no-sandbox", "--codegen", "none", "--executable-path")
            run = (str(_FOLDER / "node_modules/.bin/playwright-mcp"), *options, str(self._browser))
            self._server = await _Server.start(*run, "--output-dir", str(self._folder), cwd=self._folder)
        ok, said = await self._server.call("browser_navigate", url=url)
        assert ok, said

    async def snapshot(self) -> str:
        assert self._server is not None
        self.text = (await self._server.call("browser_snapshot"))[1]
        return self.text

    async def click(self, ref: str) -> Did:
        assert self._server is not None
        return Did(*await self._server.call("browser_click", element="it", target=ref))

    async def fill(self, ref: str, text: str) -> Did:
        assert self._server is not None
        return Did(*await self._server.call("browser_type", element="it", target=ref, text=text))

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()


class AgentBrowser(Agentic):
    name = "agent-browser"

    def __init__(self, browser: Path) -> None:
        session = f"deskcert-bench-{os.getpid()}"
        self._env = os.environ | {
            "AGENT_BROWSER_EXECUTABLE_PATH": str(browser),
            "AGENT_BROWSER_ARGS": "--no-sandbox",
            "AGENT_BROWSER_NO_VERSION_CHECK": "1",
            "AGENT_BROWSER_SESSION": session,
            "AGENT_BROWSER_NAMESPACE": session,
        }

    async def _run(self, *arguments: str) -> tuple[bool, str]:
        pipe = asyncio.subprocess.PIPE
        command = str(_FOLDER / "node_modules/.bin/agent-browser")
        process = await asyncio.create_subprocess_exec(command, *arguments, stdout=pipe, stderr=pipe, env=self._env)
        async with asyncio.timeout(_PATIENCE_S):
            out, err = await process.communicate()
        return process.returncode == 0, (out or err).decode()

    async def open(self, url: str) -> None:
        ok, said = await self._run("open", url)
        assert ok, said

    async def snapshot(self) -> str:
        self.text = (await self._run("snapshot"))[1]
        return self.text

    async def click(self, ref: str) -> Did:
        return Did(*await self._run("click", f"@{ref}"))

    async def fill(self, ref: str, text: str) -> Did:
        return Did(*await self._run("fill", f"@{ref}", text))

    async def close(self) -> None:
        with suppress(TimeoutError):
            await self._run("close")


async def installed() -> str | None:
    """Installs the two where they are missing, outside the checkout; why they could not be."""
    mark = _FOLDER / ".installed"
    if mark.is_file() and mark.read_text() == " ".join(PEERS):
        return None
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    _FOLDER.mkdir(parents=True, exist_ok=True)
    quiet = ("--silent", "--no-audit", "--no-fund", "--no-package-lock", "--prefix", str(_FOLDER))
    process = await asyncio.create_subprocess_exec(npm, "install", *quiet, *PEERS)
    if await process.wait() != 0:
        return "npm could not install them"
    mark.write_text(" ".join(PEERS))
    return None


@asynccontextmanager
async def tools(browser: Path) -> AsyncIterator[tuple[Deskcert, PlaywrightMcp, AgentBrowser]]:
    with tempfile.TemporaryDirectory(prefix="deskcert-bench-") as name:
        folder = Path(name)
        three = Deskcert(folder), PlaywrightMcp(folder, browser), AgentBrowser(browser)
        try:
            yield three
        finally:
            for tool in three:
                await tool.close()
