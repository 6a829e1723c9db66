"""Stands between deskcert and a program that it starts, so that nothing which the program starts can leave it.

It is the reaper of its orphans (Linux, `PR_SET_CHILD_SUBREAPER`): a descendant that took a session of its own, cleared
its environment and lost its parent becomes its child, and is found there. It is also what the program sees as its
parent: whoever kills, stops or signals its parent meets this process, not deskcert.

Standard library only, run as `python -I -S keeper.py STATUS_FD MOST -- COMMAND…`. It writes to STATUS_FD, one line
each: `started` or `failed <errno>`, then `exit <status>` when the command itself has ended (negative: a signal), and
`many <n>` when there were more than MOST processes and all were ended. It stays until none of them is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

TYPE_CHECKING = False  # importing typing would be most of the time to start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Never

__all__ = ["forking", "keep"]

_PR_SET_CHILD_SUBREAPER = 36
_EVERY_S = 0.2
_IGNORED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGPIPE,
)


def _say(fd: int, words: str) -> None:
    with contextlib.suppress(OSError):  # deskcert has gone
        os.write(fd, f"{words}\n".encode())


def forking(program: Callable[[], Never], status: int) -> int:
    """Begin a program that this process has imported already (`forkserver.py`)."""
    pid = os.fork()
    if pid == 0:
        os.close(status)
        program()
    return _begun(pid, status)


def _spawning(command: list[str], status: int) -> int:
    try:
        pid = os.posix_spawnp(
            command[0],
            command,
            os.environ,
            setsigdef=[*_IGNORED, signal.SIGXFSZ, signal.SIGCHLD],
            setsigmask=[],
        )
    except OSError as exc:
        _say(status, f"failed {exc.errno}")
        sys.exit(127)
    return _begun(pid, status)


def _begun(pid: int, status: int) -> int:
    _say(status, "started")
    # Whoever waits for the end of its output must not wait for us.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    return pid


def keep(status: int, most: int, begin: Callable[[int], int]) -> Never:
    """`begin` starts the program, tells `status`, and returns its process. Ends when nothing below is left."""
    from deskcert.certify.reaper import descendants, end_below

    os.set_inheritable(status, False)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    first = begin(status)
    while True:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == first:
                    _say(status, f"exit {os.waitstatus_to_exitcode(ended[1])}")
        except ChildProcessError:
            os._exit(0)
        if (many := len(descendants(os.getpid()))) > most:
            _say(status, f"many {many}")
            end_below(os.getpid())
        signal.sigtimedwait([signal.SIGCHLD], _EVERY_S)


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2]))
    keep(int(sys.argv[1]), int(sys.argv[2]), lambda status: _spawning(sys.argv[4:], status))
