"""Runs an agent: a process of any language that is given the task and one way to reach the application.

JSON lines on standard input and output (formats.md). The agent is not trusted: its lines are bounded, its output is
kept as evidence up to a size, its time is bounded, and its process group is ended at the end. Whatever it does (crash,
hang, end without a claim, write garbage) becomes `agent.event` records and an `AgentEnd`, never an exception.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from deskcert.certify.env_secrets import NOTHING_SECRET, EnvSecrets, StreamScrubber
from deskcert.certify.forks import Forks
from deskcert.certify.kept import Kept
from deskcert.certify.orphans import Orphans
from deskcert.certify.processes import child_environment, sweep
from deskcert.contract.envelope import failure
from deskcert.session.answers import not_delivered
from deskcert.session.jsonlines import MAX_LINE, Task, encode, id_of, parse_message
from deskcert_schema.errors import ContractError
from deskcert_schema.vocabulary import Code

__all__ = ["AgentEnd", "AgentRun", "Ended", "Handle", "Launch", "Note", "expand"]

_MAX_STDERR = 1 << 20
_MAX_BAD_LINES = 20
_CLAIM_GRACE_S = 3.0
"""After `end`, the agent may still say how it ended; nothing else is done for it."""
_EXIT_GRACE_S = 2.0
_LAST_LINES_S = 0.3
"""For what an agent that has exited has already written."""
_SEND_S = 1.0
"""For one message to an agent that may not be reading."""

type Handle = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Command and arguments in, envelope out."""
type Note = Callable[[str, Mapping[str, Any]], Awaitable[None]]
"""Write one `agent.event`: the event, and its details."""


class Ended(StrEnum):
    FINISHED = "finished"
    """It made its claim."""
    EXITED = "exited"
    """It ended with status 0 and no claim."""
    CRASHED = "crashed"
    PROTOCOL = "protocol"
    """It wrote too much that is no message."""
    BUDGET = "budget"
    """Its time was up."""
    NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True)
class AgentEnd:
    how: Ended
    sentence: str


@dataclass(frozen=True, slots=True)
class Launch:
    """How the command is started, where that is not plainly: another way in than its standard streams, a sandbox."""

    placeholders: Mapping[str, str] = field(default_factory=dict)
    """Beside `{task}`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beside the allow-list."""
    wrap: Callable[[Sequence[str]], list[str]] = list
    """The command that is really started."""
    forks: Forks | None = None
    """For a reference agent: starts it sooner."""


def expand(command: Sequence[str], *, task: str, more: Mapping[str, str] | None = None) -> list[str]:
    """Fill the placeholder `{task}`, and those in `more`. Only whole placeholders are replaced: other braces are the
    user's own, and so are those in the task."""
    known = {"task": task, **(more or {})}
    return [_PLACEHOLDER.sub(lambda m: known.get(m[1], m[0]), word) for word in command]


_PLACEHOLDER = re.compile(r"\{(task|mcp_url|mcp_config)\}")


class AgentRun:
    """One agent in one run. `run` does everything; call it once."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        token: str,
        handle: Handle,
        note: Note,
        keep_environment: Sequence[str] = (),
        cwd: Path | None = None,
        launch: Launch | None = None,
        secrets: EnvSecrets = NOTHING_SECRET,
    ) -> None:
        self._launch = launch if launch is not None else Launch()
        self._command, self._folder, self._token, self._cwd = list(command), folder, token, cwd
        self._handle, self._note = handle, note
        self._keep, self._secrets = tuple(keep_environment), secrets
        self._bad_lines = 0
        self._claimed = False

    async def run(self, task: Task) -> AgentEnd:
        Orphans.adopt()
        try:
            process = await Kept.start(
                self._launch.wrap(expand(self._command, task=task.task, more=self._launch.placeholders)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=child_environment(self._token, self._keep) | dict(self._launch.environment),
                cwd=self._cwd,
                limit=MAX_LINE,
                forks=self._launch.forks,
            )
        except (OSError, ValueError) as exc:
            await asyncio.to_thread(Orphans.sweep)
            await self._note("crashed", {"why": f"the command could not be started: {exc}"})
            return AgentEnd(Ended.NOT_STARTED, f"the agent's command could not be started: {exc}")
        # The command itself may hold a user's secrets; `run.start` has its digest.
        started = {"program": Path(self._command[0]).name, "arguments": len(self._command) - 1}
        await self._note("started", started | ({"forked": True} if process.forked else {}))
        stderr = asyncio.create_task(self._keep_stderr(process))
        try:
            end = await self._talk(process, task)
        finally:
            await asyncio.shield(self._end(process, stderr))
            process.close()
        return end

    async def _talk(self, process: Kept, task: Task) -> AgentEnd:
        try:
            async with asyncio.timeout(task.seconds):
                await self._send(process, task.message())
            end = await self._converse(process, task.seconds)
        except TimeoutError:
            end = await self._time_up(process, task)
        reason = {Ended.FINISHED: "finished", Ended.BUDGET: "budget"}.get(end.how, "error")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SEND_S):
                await self._send(process, {"type": "end", "reason": reason})
        return end

    async def _time_up(self, process: Kept, task: Task) -> AgentEnd:
        """Say so; the agent may still make its claim."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SEND_S):
                await self._send(process, {"type": "end", "reason": "budget"})
            await self._converse(process, _CLAIM_GRACE_S)
        if not self._claimed:
            await self._note("hung", {"seconds": task.seconds})
        return AgentEnd(Ended.BUDGET, f"the agent's {task.seconds} s were used up")

    async def _converse(self, process: Kept, seconds: float) -> AgentEnd:
        """Until it claims or ends. Raises `TimeoutError` when `seconds` are over; a command that is being handled
        then is not cut off in the middle of a dispatch: it has its own deadlines."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    line = await _line(process)
            except ValueError:  # asyncio's word for a line over the limit
                await self._note("protocol_error", {"why": "a line of more than 1 MiB"})
                return AgentEnd(Ended.PROTOCOL, "the agent wrote a line of more than 1 MiB")
            if not line:
                return await self._ended_by_itself(process)
            if not line.strip():
                continue
            try:
                message = parse_message(line.removesuffix(b"\n"))
            except ContractError as exc:
                await self._bad_line(process, line, str(exc))
                if self._bad_lines >= _MAX_BAD_LINES:
                    return AgentEnd(Ended.PROTOCOL, f"the agent wrote {_MAX_BAD_LINES} lines that are no message")
                continue
            envelope = await self._handle(message.command, message.args)
            async with asyncio.timeout_at(max(deadline, loop.time() + _SEND_S)):
                await self._send(process, {"id": message.id, **envelope})
            if message.command == "finish" and envelope.get("ok") is True:
                self._claimed = True
                return AgentEnd(Ended.FINISHED, "the agent made its claim")

    async def _bad_line(self, process: Kept, line: bytes, why: str) -> None:
        self._bad_lines += 1
        if self._bad_lines <= _MAX_BAD_LINES:
            start = line[:200].decode(errors="replace").rstrip("\n")
            await self._note("protocol_error", {"why": why, "line": start, "bytes": len(line)})
        number = id_of(line.removesuffix(b"\n"))
        answer = failure("unknown", not_delivered(Code.INVALID_ARGS, why))
        await self._send(process, ({"id": number} if number is not None else {}) | answer)

    async def _ended_by_itself(self, process: Kept) -> AgentEnd:
        """Its output is at an end: it exited, or closed its output and lives on, which is no way to go on."""
        try:
            async with asyncio.timeout(_EXIT_GRACE_S):
                status = await process.exited()
        except TimeoutError:
            await self._note("exited", {"why": "the agent closed its output"})
            return AgentEnd(Ended.EXITED, "the agent closed its output without a claim")
        if process.too_many is not None:
            await self._note("crashed", {"why": f"{process.too_many} processes at a time; all were ended"})
            return AgentEnd(Ended.CRASHED, f"the agent started {process.too_many} processes and was ended")
        if status == 0:
            await self._note("exited", {"status": 0})
            return AgentEnd(Ended.EXITED, "the agent ended without a claim")
        detail = {"signal": -status} if status < 0 else {"status": status}
        await self._note("crashed", detail)
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return AgentEnd(Ended.CRASHED, f"the agent ended {how} without a claim")

    async def _send(self, process: Kept, message: Mapping[str, Any]) -> None:
        """An agent that has gone, or does not read, is noticed elsewhere: by end of file or by the clock."""
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.write(encode(message))
            await process.stdin.drain()

    async def _keep_stderr(self, process: Kept) -> tuple[int, int]:
        """Read to the end, keep the first MiB in `agent.stderr`. Returns (bytes kept, bytes in all)."""
        assert process.stderr is not None
        kept = total = 0
        scrubber = StreamScrubber(self._secrets)
        with (self._folder / "agent.stderr").open("wb") as file:
            while block := await process.stderr.read(65_536):
                total += len(block)
                if kept < _MAX_STDERR:
                    kept += file.write(scrubber.feed(block)[: _MAX_STDERR - kept])
            kept += file.write(scrubber.rest()[: _MAX_STDERR - kept])
        return kept, total

    async def _end(self, process: Kept, stderr: asyncio.Task[tuple[int, int]]) -> None:
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        ended, left = await process.end(polite_s=_EXIT_GRACE_S if self._claimed else 0.5)
        left += await sweep(self._token) + await asyncio.to_thread(Orphans.sweep)
        try:
            kept, total = await asyncio.wait_for(stderr, 2.0)
        except TimeoutError:  # a process that escaped holds the pipe
            kept = total = (self._folder / "agent.stderr").stat().st_size
        digest = hashlib.sha256((self._folder / "agent.stderr").read_bytes()).hexdigest()
        detail = {"stream": "stderr", "file": "agent.stderr", "bytes": kept, "total_bytes": total, "sha256": digest}
        await self._note("output", detail | {"ended_by_itself": ended, "left_over_processes": left})


async def _line(process: Kept) -> bytes:
    """The next line, or nothing when there will be none. A child that outlives the agent may hold its output open, so
    the end of file is not waited for once the agent has exited. Raises `ValueError` for a line over the limit."""
    assert process.stdout is not None
    line = asyncio.ensure_future(process.stdout.readline())
    exited = asyncio.ensure_future(process.exited())
    try:
        await asyncio.wait({line, exited}, return_when=asyncio.FIRST_COMPLETED)
        if not line.done():
            await asyncio.wait({line}, timeout=_LAST_LINES_S)
        return line.result() if line.done() else b""
    finally:
        line.cancel()
        exited.cancel()
