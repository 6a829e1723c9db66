"""Ends every process of a campaign when deskcert itself is gone, however it went: also after `kill -9`.

Started first, before the browser and the application under test. It holds the reading end of a pipe whose only
writing end is deskcert's; the kernel closes that end when deskcert ends, and the reaper wakes up at end of file. Then
it kills, with SIGKILL, every process that was started with this campaign's token in its environment, and those that
belong to them (see `Family`). It has a session of its own, so that Ctrl-C in the terminal passes it by.

Standard library only, run as `python -I -S reaper.py TOKEN`: it must not depend on anything that can break.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "TOKEN_VARIABLE",
    "Family",
    "Reaper",
    "descendants",
    "end_below",
    "holders",
    "kill_all",
    "running_processes",
]

TOKEN_VARIABLE = "DESKCERT_RUN_TOKEN"
"""In the environment of every process of a run. Its value is `<campaign>` or `<campaign>.<run id>`: a mark, not a
secret."""

_PROC = Path("/proc")
_EVERY_S = 0.5
"""How often it looks who belongs to the campaign, while deskcert lives."""
_LONGEST_S = 2.0
_QUIET_LOOKS = 3
_BLOCK = 65_536
"""Bytes read at a time."""


def holders(token: str, *, proc: Path = _PROC) -> set[int]:
    """Process ids whose starting environment holds `token`, exactly or as the part before a dot."""
    mark = f"\0{TOKEN_VARIABLE}={token}".encode()
    whole, part = mark + b"\0", mark + b"."
    found = set()
    for pid in _pids(proc):
        try:
            environment = b"\0%b\0" % _content(f"{proc}/{pid}/environ")
        except OSError:  # ended meanwhile, or another user's
            continue
        if whole in environment or part in environment:
            found.add(pid)
    return found - {os.getpid()}


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    session: int
    started: bytes
    """In clock ticks since boot: with it, a number that is used again names nobody."""


def _pids(proc: Path) -> list[int]:
    return [int(name) for name in os.listdir(proc) if name.isdigit()]  # noqa: PTH208 - see _content


def _content(path: str) -> bytes:
    """Of a file of the kernel's. Every process of the machine is looked at, several times in a run: a `Path` and a
    file object for each would cost ten times as much as the reading. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = b""
        while block := os.read(descriptor, _BLOCK):  # the kernel may give less than is there
            content += block
        return content
    finally:
        os.close(descriptor)


def running_processes(proc: Path) -> dict[int, _Process]:
    """Every process that runs now; a zombie does not."""
    found = {}
    for pid in _pids(proc):
        try:
            # The name in parentheses may hold anything, also spaces and parentheses: count after the last one.
            fields = _content(f"{proc}/{pid}/stat").rpartition(b")")[2].split()
            if fields[0] not in b"ZX":
                found[pid] = _Process(pid, int(fields[1]), int(fields[3]), fields[19])
        except (OSError, ValueError, IndexError):
            continue
    return found


class Family:
    """The processes of a campaign: those with its token, all below them, all in a session that one of them leads.

    What was once seen to belong stays known, because a process can lose its parent and, as Chromium's do, its
    environment.
    """

    def __init__(self, token: str, *, proc: Path = _PROC) -> None:
        self._token, self._proc = token, proc
        self._known: set[_Process] = set()
        self._sessions: set[int] = set()

    def look(self) -> set[int]:
        """Who of them runs now."""
        running = running_processes(self._proc)
        marked = holders(self._token, proc=self._proc)
        members = {p for p in running.values() if p.pid in marked or _same(p, self._known)}
        while True:
            pids = {p.pid for p in members}
            self._sessions |= {p.session for p in members if p.session == p.pid}
            more = {
                p for p in running.values() if p not in members and (p.parent in pids or p.session in self._sessions)
            }
            if not more:
                break
            members |= more
        self._known = {p for p in members if p.pid != os.getpid()}
        return {p.pid for p in self._known}


def _same(process: _Process, known: set[_Process]) -> bool:
    return any(k.pid == process.pid and k.started == process.started for k in known)


def kill_all(family: Family) -> set[int]:
    """One pass. Returns whom it signalled."""
    signalled = set()
    for pid in family.look():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
            signalled.add(pid)
    return signalled


def descendants(root: int) -> set[int]:
    """All below a process, asked of the kernel's own lists: quick enough for processes that live a moment."""
    found: set[int] = set()
    todo = [root]
    while todo:
        pid = todo.pop()
        tasks = f"{_PROC}/{pid}/task"
        with contextlib.suppress(OSError):
            for thread in os.listdir(tasks):  # noqa: PTH208 - see _content
                with contextlib.suppress(OSError):
                    new = [int(word) for word in _content(f"{tasks}/{thread}/children").split()]
                    todo += [child for child in new if child not in found]
                    found.update(new)
    return found


def end_below(root: int, *, longest_s: float = _LONGEST_S) -> int:
    """Kill everything below `root`, which is the reaper of its orphans, so that what a killed process was just
    starting turns up as its child. Returns how many were ended. The zombies are the parents' to bury."""
    ended: set[int] = set()
    deadline, quiet = time.monotonic() + longest_s, 0
    while quiet < _QUIET_LOOKS and time.monotonic() < deadline:
        alive = {pid for pid in descendants(root) if _alive(pid)}
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended |= alive
        quiet = 0 if alive else quiet + 1
        if not alive:
            time.sleep(0.002)
    return len(ended)


def _alive(pid: int) -> bool:
    try:
        return _content(f"{_PROC}/{pid}/stat").rpartition(b")")[2].split()[0] not in b"ZX"
    except (OSError, IndexError):
        return False


def _is_keeper(pid: int) -> bool:
    try:
        command = (_PROC / str(pid) / "cmdline").read_bytes()
        return b"keeper.py\0" in command or b"deskcert.certify.forkserver\0" in command
    except OSError:
        return False


def _reap(family: Family) -> None:
    """Until several passes in a row find nobody, because a process may be starting another while it is killed. First
    what is below a keeper, while it still holds its orphans."""
    for pid in [p for p in family.look() if _is_keeper(p)]:
        end_below(pid)
    deadline, quiet = time.monotonic() + _LONGEST_S, 0
    while quiet < _QUIET_LOOKS and time.monotonic() < deadline:
        quiet = 0 if kill_all(family) else quiet + 1
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
    family = Family(token)
    family.look()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not select.select([0], [], [], _EVERY_S)[0] or os.read(0, 64):
        family.look()
    _reap(family)


if __name__ == "__main__":
    _main(sys.argv[1])
