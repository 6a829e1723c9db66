"""deskcert's side of the fork server (`forkserver.py`): programs of its own, started without importing them again.

Only deskcert's own programs, and only where nothing has to be put in front of them: a user's agent, an agent in a
sandbox and a user's application are started as ever. Where the server is missing or has ended, so are ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from deskcert.certify.forkserver import LONGEST, PROGRAMS
from deskcert.certify.processes import child_environment

__all__ = ["Forked", "Forks", "Program", "start_program"]

_END_S: Final = 2.0
_PIPE: Final = asyncio.subprocess.PIPE


class Forked:
    """As much of `asyncio.subprocess.Process` as is used here."""

    def __init__(self) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._process = -1
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()
        self._reading: list[asyncio.BaseTransport] = []

    def began(self, pid: int, process: int) -> None:
        self.pid, self._process = pid, process
        if not self._begun.done():
            self._begun.set_result(None)

    def failed(self, number: int) -> None:
        if not self._begun.done():
            self._begun.set_exception(OSError(number, os.strerror(number)))

    def ended(self, status: int) -> None:
        if self.returncode is None:
            self.returncode = status
            self._ended.set()
            if self._process >= 0:
                os.close(self._process)
                self._process = -1

    async def begun(self) -> None:
        await asyncio.shield(self._begun)

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        if self._process >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def close(self) -> None:
        for transport in self._reading:
            transport.close()

    async def communicate(self, given: bytes) -> tuple[bytes, bytes]:
        assert self.stdin is not None
        assert self.stdout is not None
        assert self.stderr is not None
        with contextlib.suppress(OSError):
            self.stdin.write(given)
            await self.stdin.drain()
        self.stdin.close()
        out, err = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await self.wait()
        return out, err

    async def connect(self, kind: int, end: int, limit: int) -> None:
        """Take our end of the pipe to its stream 0, 1 or 2."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=limit)
        protocol = asyncio.StreamReaderProtocol(reader)
        if kind == 0:
            writing, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(end, "wb", 0))
            self.stdin = asyncio.StreamWriter(writing, protocol, None, loop)
            return
        reading, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(end, "rb", 0))
        self._reading.append(reading)
        if kind == 1:
            self.stdout = reader
        else:
            self.stderr = reader


type Program = Forked | asyncio.subprocess.Process


class Forks:
    """Make it with `started`."""

    def __init__(self, asked: socket.socket) -> None:
        self._asked = asked
        self._number = 0
        self._forked: dict[int, Forked] = {}
        self._gone = False
        asyncio.get_running_loop().add_reader(asked, self._hear)

    @classmethod
    @asynccontextmanager
    async def started(cls, token: str) -> AsyncIterator[Forks | None]:
        """None where the system has no such thing."""
        if not (hasattr(os, "pidfd_open") and hasattr(socket, "SOCK_SEQPACKET") and sys.platform == "linux"):
            yield None
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "deskcert.certify.forkserver", str(theirs.fileno())),
                stdin=asyncio.subprocess.DEVNULL,
                env=child_environment(token),
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
        ours.setblocking(False)
        forks = cls(ours)
        try:
            yield forks
        finally:
            forks.close()
            try:
                await asyncio.wait_for(process.wait(), _END_S)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    def can(self, words: Sequence[str]) -> bool:
        """Is this command `python -m` of one of our programs, with this Python?"""
        own = len(words) > 2 and tuple(words[:2]) == (sys.executable, "-m") and words[2] in PROGRAMS
        return own and not self._gone

    async def start(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | str | None,
        stdin: int,
        stdout: int,
        stderr: int,
        limit: int = 1 << 16,
        keep: tuple[int, int] | None = None,
    ) -> Forked:
        """A command that it `can`, in a session of its own. Streams as in `asyncio.create_subprocess_exec`. `keep`:
        under a keeper (`keeper.py`), with its status descriptor and the most processes. Raises `OSError`."""
        forked, number = Forked(), self._number + 1
        self._number = number
        told: dict[str, Any] = {"n": number, "module": words[2], "argv": list(words[3:]), "env": dict(env)}
        told |= {"cwd": None if cwd is None else str(cwd), "keep": None if keep is None else keep[1]}
        message = json.dumps(told).encode()
        if len(message) > LONGEST:
            raise OSError(7, os.strerror(7))
        theirs: list[int] = []
        try:
            for kind, stream in enumerate((stdin, stdout, stderr)):
                theirs.append(await _end_of(forked, kind, stream, limit))
            self._forked[number] = forked
            status = [] if keep is None else [keep[0]]
            try:
                socket.send_fds(self._asked, [message], [*theirs, *status])
            except OSError:
                self._lost()
                raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        await forked.begun()
        return forked

    def _hear(self) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._asked, LONGEST, 1)
        except BlockingIOError:
            return
        except OSError:
            message, descriptors = b"", []
        if not message:
            self._lost()
            return
        told = json.loads(message)
        forked = self._forked[told["n"]]
        if "pid" in told:
            forked.began(told["pid"], descriptors[0])
        elif "failed" in told:
            del self._forked[told["n"]]
            forked.failed(told["failed"])
        else:
            del self._forked[told["n"]]
            forked.ended(told["exit"])

    def _lost(self) -> None:
        """The server has ended: nobody tells us about its children any more, so none may live on."""
        if not self._gone:
            self._gone = True
            asyncio.get_running_loop().remove_reader(self._asked)
            for forked in self._forked.values():
                forked.kill()
                forked.failed(3)
                forked.ended(-signal.SIGKILL)
            self._forked.clear()

    def close(self) -> None:
        self._lost()
        self._asked.close()


async def _end_of(forked: Forked, kind: int, stream: int, limit: int) -> int:
    """The descriptor for the program; where it is one of a pipe, the other one is connected."""
    if stream == asyncio.subprocess.DEVNULL:
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    if stream != _PIPE:
        return os.dup(stream)
    reading, writing = os.pipe()
    theirs, ours = (reading, writing) if kind == 0 else (writing, reading)
    try:
        await forked.connect(kind, ours, limit)
    except BaseException:
        os.close(theirs)
        raise
    return theirs


async def start_program(forks: Forks | None, module: str, *argv: str, **given: Any) -> Program:
    """`python -m MODULE ARGV…` in a session of its own, forked where that is possible. Raises `OSError`."""
    words = (sys.executable, "-m", module, *argv)
    if forks is not None and forks.can(words):
        with contextlib.suppress(OSError):
            return await forks.start(words, **given)
    return await asyncio.create_subprocess_exec(*words, start_new_session=True, **given)
