"""Starts deskcert's own programs quickly: it has imported them once, and forks for each one that is asked for.

Importing is most of what a short program costs, and a campaign starts three or four for each run: the application, the
reference agent with its keeper, the oracle. Each is a process of its own as before, with its own session, streams,
environment and working folder; this one imports and forks, runs nothing of them, and holds no secret and no file.

Run as `python -m deskcert.certify.forkserver FD`. FD is a socket that keeps messages apart; one message asks for one
program: `{"n", "module", "argv", "env", "cwd", "keep"}` and its descriptors for 0, 1, 2 and, with `keep`, its keeper's
status. The answers are `{"n", "pid"}` with a descriptor of the process, or `{"n", "failed"}`, and when it has ended
`{"n", "exit"}`. At the socket's end this process ends; whoever it started is the reaper's.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, Never

__all__ = ["LONGEST", "PROGRAMS"]

PROGRAMS: Final[Mapping[str, str]] = {
    "deskcert_fixture_app": "deskcert_fixture_app.__main__:main",
    "deskcert.agents": "deskcert.agents.__main__:main",
    "deskcert.certify.oracle": "deskcert.certify.oracle:main",
}
"""What can be forked: `python -m MODULE`, and the function that this calls."""
LONGEST: Final = 100_000
"""Bytes of one message."""
_AHEAD: Final = (
    "deskcert_fixture_app.server",
    "uvicorn.loops.asyncio",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.h11_impl",
    "yaml",
    "sqlite3",
)
"""What they import only when they run. That a module is missing is for the program to say."""
_PR_SET_CHILD_SUBREAPER = 36
_ALL_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD)


def _import_ahead() -> None:
    for name in (*_AHEAD, *(place.partition(":")[0] for place in PROGRAMS.values())):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(ImportError):
        importlib.import_module("deskcert_fixture_app.pages").compile_templates()
        importlib.import_module("deskcert_fixture_app.held").held_files()


def _become(module: str, argv: list[str], env: Mapping[str, str], cwd: str | None) -> Never:
    """In the new process: what `python -m MODULE ARGV…` does, and its exit."""
    status = 1
    try:
        for number in _ALL_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.environ.clear()
        os.environ.update(env)
        if cwd is not None:
            os.chdir(cwd)
        place, _, function = PROGRAMS[module].partition(":")
        sys.argv = [module, *argv]
        answer = getattr(importlib.import_module(place), function)()
        status = answer if isinstance(answer, int) else 0
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _child(wanted: Mapping[str, Any], descriptors: list[int], close: Callable[[], None]) -> Never:
    """In the new process: its streams and session, and then the program, or its keeper."""
    try:
        close()
        os.setsid()
        for stream in (0, 1, 2):
            os.dup2(descriptors[stream], stream)
        for descriptor in descriptors[:3]:
            os.close(descriptor)

        def program() -> Never:
            _become(wanted["module"], wanted["argv"], wanted["env"], wanted["cwd"])

        if wanted["keep"] is None:
            program()
        from deskcert.certify.keeper import forking, keep

        keep(descriptors[3], int(wanted["keep"]), lambda status: forking(program, status))
    except BaseException:
        sys.excepthook(*sys.exc_info())
    os._exit(127)


class _Server:
    def __init__(self, asked: socket.socket) -> None:
        self._asked = asked
        self._wake, write = os.pipe()
        os.set_blocking(write, False)
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self._write = write
        self._numbers: dict[int, int] = {}

    def serve(self) -> None:
        while True:
            ready, _, _ = select.select([self._asked.fileno(), self._wake], [], [])
            if self._wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
                self._bury()
            if self._asked.fileno() in ready and not self._one():
                return

    def _one(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._asked, LONGEST, 4)
        if not message:
            return False
        wanted = json.loads(message)
        try:
            pid = os.fork()
            if pid == 0:
                _child(wanted, descriptors, self._close)
            process = os.pidfd_open(pid)
        except OSError as exc:
            self._say({"n": wanted["n"], "failed": exc.errno})
        else:
            self._numbers[pid] = wanted["n"]
            self._say({"n": wanted["n"], "pid": pid}, [process])
            os.close(process)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _bury(self) -> None:
        """Those that were asked for, and orphans of theirs."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                number = self._numbers.pop(ended[0], None)
                if number is not None:
                    self._say({"n": number, "exit": os.waitstatus_to_exitcode(ended[1])})

    def _say(self, told: Mapping[str, Any], descriptors: list[int] | None = None) -> None:
        with contextlib.suppress(OSError):  # deskcert has gone: the end of the socket says so next
            socket.send_fds(self._asked, [json.dumps(told).encode()], descriptors or [])

    def _close(self) -> None:
        signal.set_wakeup_fd(-1)
        self._asked.close()
        os.close(self._wake)
        os.close(self._write)


def _main(descriptor: int) -> None:
    # What leaves its keeper, or loses it, is still found below this process.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _import_ahead()
    # Not looked through again in each child, and so not copied. They live for one run: little becomes garbage.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    with socket.socket(fileno=descriptor) as asked:
        _Server(asked).serve()


if __name__ == "__main__":
    _main(int(sys.argv[1]))
