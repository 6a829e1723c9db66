"""JSON lines between deskcert and an agent (formats.md): one object a line, UTF-8, at most 1 MiB.

`task` comes first, then one answer for each command, `end` last. The agent's lines are untrusted bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol, TypeGuard

from deskcert.contract.envelope import failure
from deskcert.session.answers import not_delivered
from deskcert_schema.errors import ContractError
from deskcert_schema.vocabulary import Code

__all__ = ["MAX_LINE", "EndReason", "Message", "Served", "Task", "encode", "id_of", "parse_message", "serve"]

MAX_LINE: Final = 1 << 20
"""Bytes, without the newline."""
MAX_BAD_LINES: Final = 20
"""Then the agent is taken to speak another language."""
_FIELDS: Final = ("id", "command", "args")
_SEND_S: Final = 2.0
"""For one message to an agent that may not be reading."""


class EndReason(StrEnum):
    BUDGET = "budget"
    FINISHED = "finished"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Task:
    task: str
    start_url: str
    actions: int
    seconds: int

    def message(self) -> dict[str, Any]:
        budget = {"actions": self.actions, "seconds": self.seconds}
        return {"type": "task", "version": 1, "task": self.task, "budget": budget, "start_url": self.start_url}


@dataclass(frozen=True, slots=True)
class Message:
    id: int | str
    command: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Served:
    """How the conversation ended."""

    reason: EndReason
    detail: str
    bad_lines: int


def parse_message(line: bytes) -> Message:
    """Read one line, without its newline. Raises `ContractError` with one sentence, and nothing else."""
    raw = _load(line)
    if not isinstance(raw, dict):
        raise ContractError("a line must be one JSON object")
    if unknown := [k for k in raw if k not in _FIELDS]:
        raise ContractError(f"unknown field {unknown[0][:40]!r}; a message has id, command and args")
    number, command, args = raw.get("id"), raw.get("command"), raw.get("args", {})
    if not _is_id(number):
        raise ContractError("id must be a whole number from 0, or a text of at most 100 characters")
    if not isinstance(command, str):
        raise ContractError("command must be the name of a command")
    if not isinstance(args, dict):
        raise ContractError("args must be an object")
    return Message(number, command, args)


def id_of(line: bytes) -> int | str | None:
    """The id of a line that is no good message, where it can be read."""
    try:
        raw = _load(line)
    except ContractError:
        return None
    number = raw.get("id") if isinstance(raw, dict) else None
    return number if _is_id(number) else None


def _is_id(raw: object) -> TypeGuard[int | str]:
    if isinstance(raw, str):
        return len(raw) <= 100
    return isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < 2**53


def encode(message: Mapping[str, Any]) -> bytes:
    """One line. A page may name its elements with half a surrogate pair, which only an escape can carry."""
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _load(line: bytes) -> Any:
    if len(line) > MAX_LINE:
        raise ContractError("a line may hold at most 1 MiB")
    try:
        return json.loads(line.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise ContractError("a line must be UTF-8") from None
    except (ValueError, RecursionError) as exc:
        raise ContractError(f"a line must be one JSON object ({str(exc)[:100]})") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ContractError("a key stands twice in one object")
    return found


def _no_constant(word: str) -> Any:
    raise ContractError(f"{word} is no JSON")


class Writer(Protocol):
    """The part of `asyncio.StreamWriter` that is used."""

    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None: ...


async def serve(
    handle: Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]],
    reader: asyncio.StreamReader,
    writer: Writer,
    task: Task,
) -> Served:
    """Talk until the claim is made, the agent leaves, or its seconds are over. The reader's limit must be above
    `MAX_LINE`. A command that is being handled when time runs out is not cut off: it has its own deadlines."""
    bad_lines = 0
    served = Served(EndReason.ERROR, "the agent left without a claim", 0)
    try:
        await _send(writer, task.message())
        async for line in _lines(reader, task.seconds):
            try:
                message = parse_message(line)
            except ContractError as exc:
                bad_lines += 1
                await _send(writer, _refusal(line, exc))
                if bad_lines >= MAX_BAD_LINES:
                    served = Served(EndReason.ERROR, f"{bad_lines} lines were no messages", bad_lines)
                    break
                continue
            answer = await handle(message.command, message.args)
            await _send(writer, {"id": message.id, **answer})
            if message.command == "finish" and answer.get("ok") is True:
                served = Served(EndReason.FINISHED, "the claim was made", bad_lines)
                break
    except TimeoutError:
        served = Served(EndReason.BUDGET, f"the {task.seconds} s were used up", bad_lines)
    except (ConnectionError, BrokenPipeError):
        served = Served(EndReason.ERROR, "the agent closed its end", bad_lines)
    with contextlib.suppress(ConnectionError, TimeoutError):
        await _send(writer, {"type": "end", "reason": served.reason.value})
    return Served(served.reason, served.detail, bad_lines)


async def _lines(reader: asyncio.StreamReader, seconds: float) -> AsyncIterator[bytes]:
    """Lines until the stream ends. Raises `TimeoutError` once `seconds` are over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        async with asyncio.timeout_at(deadline):
            try:
                line = await reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as exc:
                if exc.partial.strip():
                    yield exc.partial
                return
            except asyncio.LimitOverrunError as exc:
                await _skip_line(reader, exc.consumed)
                line = b" " * (MAX_LINE + 1)
        if line.strip() or len(line) > MAX_LINE:
            yield line.removesuffix(b"\n")


async def _skip_line(reader: asyncio.StreamReader, consumed: int) -> None:
    """Drop the rest of a line that is too long, without ever holding it."""
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


def _refusal(line: bytes, exc: ContractError) -> dict[str, Any]:
    number = id_of(line)
    answer = failure("unknown", not_delivered(Code.INVALID_ARGS, str(exc)))
    return ({"id": number} if number is not None else {}) | answer


async def _send(writer: Writer, message: Mapping[str, Any]) -> None:
    writer.write(encode(message))
    async with asyncio.timeout(_SEND_S):
        await writer.drain()
