"""What a run, and a recovery, did to its disk: recorded call by call, and the states a crash can leave of it.

The model of the disk: what was synced is there. Of what was written since the last sync of a file, any part may be:
the size may have grown without the data (zeros), pages reach the disk in any order, a sector may be torn. A rename is
there or not until the folder is synced. Bytes that were synced stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from deskcert_ledger.store import Disk

__all__ = ["Step", "Trace", "TracingDisk", "crash_state"]

SECTOR = 512


@dataclass(frozen=True, slots=True)
class Step:
    """One call: write (data), sync, truncate (size), rename (to, data), or an acknowledgement the caller was given."""

    what: str
    name: str = ""
    data: bytes = b""
    number: int = 0
    """Truncate: the size. Acknowledged: the record."""


@dataclass(slots=True)
class Trace:
    begin: dict[str, bytes] = field(default_factory=dict)
    """The files before, all of them durable."""
    steps: list[Step] = field(default_factory=list)


class TracingDisk(Disk):
    """Does everything but sync, and writes down what was asked."""

    def __init__(self, folder: Path, trace: Trace) -> None:
        self.folder, self.trace = folder.resolve(), trace
        self.meanwhile: Callable[[], None] = lambda: None
        """Called before each call: what another thread does at that moment."""

    def _name(self, fd: int) -> str:
        self.meanwhile()
        return os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), self.folder)  # noqa: PTH115 - it is asked for often

    def write(self, fd: int, data: bytes) -> int:
        self.trace.steps.append(Step("write", self._name(fd), bytes(data)))
        return super().write(fd, data)

    def datasync(self, fd: int) -> None:
        self.sync(fd)

    def sync(self, fd: int) -> None:
        self.trace.steps.append(Step("sync", self._name(fd)))

    def truncate(self, fd: int, size: int) -> None:
        self.trace.steps.append(Step("truncate", self._name(fd), number=size))
        super().truncate(fd, size)

    def rename(self, old: Path, new: Path) -> None:
        """The content is synced by then: the code under test does that, and the trace would show it if not."""
        self.meanwhile()
        assert next(step.what for step in reversed(self.trace.steps) if step.name == old.name) == "sync"
        self.trace.steps.append(Step("rename", new.name, old.read_bytes()))
        super().rename(old, new)

    def acknowledged(self, seq: int) -> None:
        self.trace.steps.append(Step("ack", number=seq))


@dataclass(slots=True)
class _File:
    durable: bytes
    pending: bytes = b""
    cut: int | None = None
    """A truncation that is not synced."""
    other: bytes | None = None
    """What it becomes if a rename is durable."""
    born: bool = False
    """It was not there before that rename."""


def _replay(trace: Trace, end: int) -> tuple[dict[str, _File], list[int]]:
    files = {name: _File(data) for name, data in trace.begin.items()}
    acknowledged: list[int] = []
    for step in trace.steps[:end]:
        if step.what == "ack":
            acknowledged.append(step.number)
            continue
        if step.what == "sync" and step.name == ".":
            for name, file in files.items():
                if file.other is not None:
                    files[name] = replace(file, durable=file.other, pending=b"", other=None, born=False)
            continue
        if step.what == "sync" and step.name not in files:
            continue  # a folder, or a file that nothing was written to
        file = files.setdefault(step.name, _File(b"", born=step.what == "rename"))
        if step.what == "write":
            file.pending += step.data
        elif step.what == "truncate":
            file.cut = step.number
        elif step.what == "rename":
            file.other = step.data
        elif step.what == "sync":
            whole = file.durable + file.pending
            files[step.name] = _File(whole if file.cut is None else whole[: file.cut], other=file.other)
    return files, acknowledged


def _torn(base: int, pending: bytes, choose: Random) -> bytes:
    """What may be on the disk of `pending`, written from offset `base` on."""
    how = choose.random()
    if how < 0.12:
        return pending
    if how < 0.2:
        return b""
    size = choose.randint(0, len(pending)) if how < 0.75 else len(pending)
    if how < 0.4:
        return pending[:size]  # in order, cut anywhere
    out = bytearray(size)  # grown, and zero where no data came
    keep = choose.random()
    at = 0
    while at < size:
        end = min(size, (base + at) // SECTOR * SECTOR + SECTOR - base)
        if choose.random() < keep:
            stop = end if choose.random() < 0.85 else choose.randint(at, end)  # a torn sector
            out[at:stop] = pending[at:stop]
        at = end
    return bytes(out)


def crash_state(trace: Trace, end: int, choose: Random) -> tuple[dict[str, bytes], list[int]]:
    """One state that a crash after `end` steps can leave, and the records that were acknowledged by then."""
    files, acknowledged = _replay(trace, end)
    state: dict[str, bytes] = {}
    for name, file in files.items():
        if name == "." or name.endswith(".tmp") or name.startswith(("torn", "..")):
            continue
        if file.other is not None and choose.random() < 0.5:
            state[name] = file.other
        elif file.cut is not None and choose.random() < 0.5:
            state[name] = (file.durable + file.pending)[: file.cut]
        elif not file.born:
            state[name] = file.durable + _torn(len(file.durable), file.pending, choose)
    return state, acknowledged
