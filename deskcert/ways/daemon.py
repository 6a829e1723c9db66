"""The process behind `deskcert session start`: one guarded session, reached over a private Unix socket.

It keeps what one-shot commands cannot: the browser, the snapshots with their retained elements, the retry gate. It ends
after the claim, on `session end`, on SIGTERM, and when nobody has asked for anything for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from deskcert.session.jsonlines import MAX_LINE, encode, id_of, parse_message
from deskcert.ways.guarding import Gate
from deskcert.ways.opening import Opened, SessionHost, Wanted, load_policy
from deskcert.ways.registry import Entry, forget, remember, runtime_folder, started_at
from deskcert.ways.sockets import peer_uid, private_listener
from deskcert_schema.errors import ContractError, DeskcertError
from deskcert_schema.vocabulary import Mode

__all__ = ["Daemon", "main"]

_EXIT_AFTER_CLAIM_S: Final = 0.2
"""For the reply to be read."""


class Daemon:
    def __init__(self, opened: Opened, *, idle_s: float) -> None:
        self._opened, self._idle_s = opened, idle_s
        self._gate = Gate(opened.handle)
        self._ended = asyncio.Event()
        self._touched = asyncio.get_running_loop().time()
        self._busy = 0
        self.why = "the session was ended"

    def end(self, why: str) -> None:
        self.why = why
        self._ended.set()

    async def until_ended(self) -> str:
        """Why it ended."""
        loop = asyncio.get_running_loop()
        while not self._ended.is_set():
            left = self._touched + self._idle_s - loop.time()
            if left <= 0 and not self._busy:
                self.end(f"nobody asked for anything for {self._idle_s:.0f} s")
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), max(left, 0.05))
        return self.why

    async def client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: messages in, answers out, one after the other. A client that leaves does not stop what it
        asked for: what is dispatched is recorded with its result."""
        try:
            if peer_uid(writer.get_extra_info("socket")) != os.getuid():
                return
            while line := await _line(reader):
                answer = await self._answer(line)
                with contextlib.suppress(ConnectionError):
                    writer.write(encode(answer))
                    await writer.drain()
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> Mapping[str, Any]:
        self._busy += 1
        try:
            return await self._answered(line)
        finally:
            self._busy -= 1
            self._touched = asyncio.get_running_loop().time()

    async def _answered(self, line: bytes) -> Mapping[str, Any]:
        word = _control(line)
        if word == "info":
            status = await self._gate("status", {})
            return {"id": 1, "run": self._opened.about.run, "status": status.get("data")}
        if word == "end":
            self.end("the user ended the session")
            return {"id": 1, "ended": True}
        try:
            message = parse_message(line)
        except ContractError as exc:
            return _refused(line, str(exc))
        envelope = await self._gate(message.command, message.args)
        if self._opened.claimed:
            asyncio.get_running_loop().call_later(_EXIT_AFTER_CLAIM_S, self.end, "the claim was made")
        return {"id": message.id, **envelope}


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Empty at the end. A line that is too long ends the connection: nobody who may connect sends one by mistake."""
    try:
        return (await reader.readuntil(b"\n")).rstrip(b"\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        return b""


def _control(line: bytes) -> str | None:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return None
    word = raw.get("control") if isinstance(raw, dict) and raw.keys() <= {"id", "control"} else None
    return word if isinstance(word, str) else None


def _refused(line: bytes, why: str) -> dict[str, Any]:
    from deskcert.contract.envelope import failure
    from deskcert.session.answers import not_delivered
    from deskcert_schema.vocabulary import Code

    number = id_of(line)
    answer = failure("unknown", not_delivered(Code.INVALID_ARGS, why))
    return ({"id": number} if number is not None else {}) | answer


async def _serve(name: str, wanted: Wanted, idle_s: float) -> None:
    async with SessionHost.for_wanted(wanted, _log) as host:
        opened = await host.open(wanted)
        daemon = Daemon(opened, idle_s=idle_s)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, daemon.end, "deskcert was told to end")
        listener = private_listener(runtime_folder() / f"{name}.sock")
        pid = os.getpid()
        entry = Entry(name, pid, started_at(pid), wanted.url, str(opened.folder), str(wanted.base))
        server = await asyncio.start_unix_server(daemon.client, sock=listener, limit=MAX_LINE + 2)
        remember(entry)
        try:
            _ready({"session": name, "url": wanted.url, "ledger": str(opened.folder), "pid": pid})
            why = await daemon.until_ended()
        finally:
            server.close()
            forget(name)
        await opened.close("finished", why)


def _ready(told: Mapping[str, Any]) -> None:
    """The one line on standard output; then it is let go, for whoever started us reads to its end."""
    os.write(1, json.dumps(told).encode() + b"\n")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)


def _log(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def main() -> int:
    """Reads what is wanted from standard input, as one JSON object; says on standard output that it is ready, or why
    it is not."""
    raw = json.load(sys.stdin)
    try:
        wanted = Wanted(
            url=raw["url"],
            policy=load_policy(Path(raw["policy"])),
            way="cli",
            out=Path(raw["out"]),
            base=Path(raw["base"]),
            task=raw["task"],
            actions=raw["actions"],
            seconds=raw["seconds"],
            mode=Mode(raw["mode"]),
            uploads=tuple(Path(folder) for folder in raw["uploads"]),
            cdp=raw["cdp"],
        )
        asyncio.run(_serve(raw["name"], wanted, raw["idle_s"]))
    except (DeskcertError, OSError) as exc:
        _ready({"error": str(exc), "usage": type(exc).__name__ in ("ConfigError", "UsageError")})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
