"""Ends every process of a campaign when deskcert itself is gone, however it went: also after `kill -9`.

Started first, before the browser and the application under test. It holds the reading end of a pipe whose only
writing end is deskcert's; the kernel closes that end when deskcert ends, and the reaper wakes up at end of file. Then
it kills, with SIGKILL, every process that was started with this campaign's token in its environment, and their
descendants (Chromium writes over its children's environment). Own session, so that Ctrl-C in the terminal passes it by.

Standard library only, run as `python -I -S reaper.py TOKEN`: it must not depend on anything that can break.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["TOKEN_VARIABLE", "Reaper", "descendants", "holders", "kill_holders"]

TOKEN_VARIABLE = "DESKCERT_RUN_TOKEN"
"""In the environment of every process of a run. Its value is `<campaign>` or `<campaign>.<run id>`: a mark, not a
secret."""

_LONGEST_S = 2.0
_QUIET_LOOKS = 3


def holders(token: str, *, proc: Path = Path("/proc")) -> set[int]:
    """Process ids whose starting environment holds `token`, exactly or as the part before a dot."""
    mark = f"{TOKEN_VARIABLE}={token}".encode()
    found = set()
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:  # ended meanwhile, or another user's
            continue
        if any(entry == mark or entry.startswith(mark + b".") for entry in environment.split(b"\0")):
            found.add(int(folder.name))
    found.discard(os.getpid())
    return found


def descendants(roots: set[int], *, proc: Path = Path("/proc")) -> set[int]:
    """`roots` and everything below them."""
    children: dict[int, list[int]] = {}
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name in parentheses may hold anything, also spaces and parentheses: fields are counted after the last.
            parent = int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        children.setdefault(parent, []).append(int(folder.name))
    found, todo = set(roots), list(roots)
    while todo:
        for child in children.get(todo.pop(), []):
            if child not in found:
                found.add(child)
                todo.append(child)
    found.discard(os.getpid())
    return found


def kill_holders(token: str) -> set[int]:
    """One pass. Returns whom it signalled; a zombie counts as gone."""
    signalled = set()
    for pid in descendants(holders(token)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
            signalled.add(pid)
    return signalled


def _reap(token: str) -> None:
    """Until several passes in a row find nobody, because a process may be starting another while it is killed."""
    deadline, quiet = time.monotonic() + _LONGEST_S, 0
    while quiet < _QUIET_LOOKS and time.monotonic() < deadline:
        quiet = 0 if kill_holders(token) else quiet + 1
        time.sleep(0.02)


class Reaper:
    """The started reaper, seen from deskcert. Linux only; elsewhere nothing is started and `active` is False."""

    def __init__(self, token: str) -> None:
        self.active = Path("/proc/self/environ").exists()
        self._process: subprocess.Popen[bytes] | None = None
        if self.active:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, token],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env={"PATH": os.defpath},
            )
            assert self._process.stdout is not None
            if self._process.stdout.readline() != b"ready\n":
                raise OSError("the reaper process did not start")

    def close(self) -> None:
        """Let it do its last round; returns when it is done."""
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait(timeout=_LONGEST_S + 3)
            self._process.stdout.close()
            self._process = None


def _main(token: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while os.read(0, 64):
        pass
    _reap(token)


if __name__ == "__main__":
    _main(sys.argv[1])
