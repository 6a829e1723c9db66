"""A program that deskcert starts and ends with all that it started (`keeper.py` says how)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from deskcert.certify.forks import Forked, Forks, Program
from deskcert.certify.processes import exit_of
from deskcert.certify.reaper import end_below

__all__ = ["MOST_PROCESSES", "Kept"]

MOST_PROCESSES: Final = 512
"""That one program may have at a time, as a stop to one that starts them without end."""
_KEEPER: Final = Path(__file__).with_name("keeper.py")
_START_S: Final = 20.0


class Kept:
    """Make it with `start`, end it with `end`."""

    def __init__(self, keeper: Program) -> None:
        self._keeper = keeper
        self.stdin, self.stdout, self.stderr = keeper.stdin, keeper.stdout, keeper.stderr
        self.status: int | None = None
        """Of the program itself once it has ended; negative: the signal that ended it."""
        self.too_many: int | None = None
        """How many processes it had when they were ended for being too many."""
        self._ended = asyncio.Event()
        self._begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._watch: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | str | None,
        stdin: int,
        stdout: int,
        stderr: int,
        limit: int = 1 << 16,
        forks: Forks | None = None,
    ) -> Self:
        """In a session of its own, forked with `forks` where that is possible. Raises `OSError` or `ValueError` when
        there is no such program."""
        reading, writing = os.pipe()
        given: dict[str, Any] = {"stdin": stdin, "stdout": stdout, "stderr": stderr, "env": dict(env), "cwd": cwd}
        try:
            keeper = await _keeper(words, writing, forks, limit=limit, **given)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        kept = cls(keeper)
        kept._watch = asyncio.create_task(kept._read(reading))
        try:
            word = await asyncio.wait_for(asyncio.shield(kept._begun), _START_S)
        except TimeoutError:
            word = ""
        except BaseException:
            await asyncio.shield(kept.end(polite_s=0.0))
            raise
        if word != "started":
            await kept.end(polite_s=0.0)
            number = int(word.removeprefix("failed ")) if word.startswith("failed ") else 0
            raise OSError(number, os.strerror(number) if number else "its keeper did not start", words[0])
        return kept

    @property
    def forked(self) -> bool:
        return isinstance(self._keeper, Forked)

    @property
    def gone(self) -> bool:
        """Neither the program nor anything that it started is there any more."""
        return self._keeper.returncode is not None

    async def exited(self) -> int:
        """The program's status, as soon as it has ended, whatever still holds its output open."""
        await self._ended.wait()
        return -signal.SIGKILL if self.status is None else self.status

    async def end(self, *, polite_s: float, ask: signal.Signals | None = None) -> tuple[bool, int]:
        """End the program and all that it started. `ask`: a signal for its group first. Returns whether it ended by
        itself within `polite_s`, and how many other processes had to be ended. Again: no harm."""
        if ask is not None and self._keeper.returncode is None:
            self._signal(ask)
        by_itself = True
        try:
            async with asyncio.timeout(polite_s):
                await self._ended.wait()
        except TimeoutError:
            by_itself = False
        left = 0
        if self._keeper.returncode is None:
            left = await asyncio.to_thread(end_below, self._keeper.pid)
        self._signal(signal.SIGKILL)
        await exit_of(self._keeper)
        if self._watch is not None:
            await asyncio.wait({self._watch}, timeout=1.0)
        return by_itself, max(0, left - (0 if by_itself else 1))

    def close(self) -> None:
        """Its pipes, with what nobody has read of them: a line without end would keep its pipe open."""
        if isinstance(self._keeper, Forked):
            self._keeper.close()
        else:  # asyncio has no public way
            self._keeper._transport.close()  # type: ignore[attr-defined]

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._keeper.pid, number)

    async def _read(self, reading: int) -> None:
        """What the keeper says. Its end, whoever caused it, is the program's."""
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", 0)
        )
        try:
            while line := await reader.readline():
                word, _, number = line.decode().strip().partition(" ")
                match word:
                    case "exit":
                        self.status = int(number)
                        self._ended.set()
                    case "many":
                        self.too_many = int(number)
                    case _ if not self._begun.done():
                        self._begun.set_result(f"{word} {number}".strip())
                    case _:
                        pass
        finally:
            transport.close()
            self._ended.set()
            if not self._begun.done():
                self._begun.set_result("")


async def _keeper(words: Sequence[str], status: int, forks: Forks | None, **given: Any) -> Program:
    if forks is not None and forks.can(words):
        with contextlib.suppress(OSError):
            return await forks.start(words, keep=(status, MOST_PROCESSES), **given)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(_KEEPER), str(status), str(MOST_PROCESSES), "--", *words),
        start_new_session=True,
        pass_fds=(status,),
        **given,
    )
