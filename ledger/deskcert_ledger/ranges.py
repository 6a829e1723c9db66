"""Scanning one ledger in several processes.

The file is cut at line ends into ranges; each process scans every n-th of them and sends its stretches, which are taken
in the order of the file. Where a range begins, its first line is believed its number only until the range before has
been counted; when that disagrees, `NotInParts` is raised, and the caller reads again in one process.
"""

from __future__ import annotations

import os
import re
import threading
from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import BinaryIO

from deskcert_ledger.checkpoint import note_sizes
from deskcert_ledger.files import open_regular
from deskcert_ledger.line import MAX_LINE_BYTES
from deskcert_ledger.scan import scan
from deskcert_ledger.store import CHECKPOINTS, LEDGER
from deskcert_ledger.stretch import Bounds, Options, Stretch

__all__ = ["NotInParts", "in_parts", "scan_in_parts"]

_RANGE = 4 << 20
_MIN_BYTES = 16 << 20
"""A smaller ledger is read in less time than the processes cost."""
_MAX_NOTES = 64 << 20
"""Bytes of `checkpoints`; the sizes in it are kept while the ranges are read, eight bytes each."""
_NUMBER = re.compile(rb'\{"v":1,"seq":([1-9][0-9]{0,14}),')


class NotInParts(Exception):
    """This ledger has to be read in one process."""


def in_parts(folder: Path, jobs: int) -> bool:
    """Is it worth while, and can it be done? Threads in this process forbid the fork."""
    if jobs < 2 or threading.active_count() > 1 or not hasattr(os, "fork"):
        return False
    try:
        small_notes = (folder / CHECKPOINTS).stat().st_size <= _MAX_NOTES
        return small_notes and (folder / LEDGER).stat().st_size >= _MIN_BYTES
    except OSError:
        return False


def scan_in_parts(file: BinaryIO, options: Options, extra: Sequence[int], jobs: int) -> Generator[Stretch, None, None]:
    """The stretches of the whole ledger, in order, as `scan` gives them. `extra`: sizes at which a note is due too.

    Raises `NotInParts`.
    """
    bounds = _bounds(file)
    sizes = note_sizes(options.folder / CHECKPOINTS)
    sizes.extend(extra)
    due = sorted(sizes)
    context = get_context("fork")
    with ExitStack() as stack:
        ends = []
        for number in range(jobs):
            ours, theirs = context.Pipe(duplex=False)
            work = (theirs, bounds[number::jobs], options, due)
            process = context.Process(target=_work, args=work, daemon=True)
            process.start()
            theirs.close()
            stack.callback(process.join)
            stack.callback(process.terminate)
            stack.callback(ours.close)
            ends.append(ours)
        size = 0
        for number in range(len(bounds)):
            for stretch in _received(ends[number % jobs]):
                if stretch.first != size:
                    raise NotInParts
                size += stretch.count
                yield stretch
                if stretch.bad is not None:
                    return


def _received(end: Connection) -> Iterator[Stretch]:
    """Of one range."""
    try:
        while (stretch := end.recv()) is not None:
            yield stretch
    except EOFError as error:  # the process died
        raise NotInParts from error


def _work(end: Connection, parts: Sequence[Bounds], options: Options, due: Sequence[int]) -> None:
    """What one process does."""

    def after(size: int) -> int | None:
        at = bisect_right(due, size)
        return due[at] if at < len(due) else None

    try:
        with open_regular(options.folder / LEDGER) as file:
            for part in parts:
                for stretch in scan(file, part, options, after):
                    end.send(stretch)
                end.send(None)
    except OSError:  # of the file: reading in one process will say it; or nobody listens any more
        pass
    finally:
        end.close()


def _bounds(file: BinaryIO) -> list[Bounds]:
    """Ranges that begin with a line that names its number."""
    size = file.seek(0, os.SEEK_END)
    starts: list[tuple[int, int]] = [(0, 0)]
    for near in range(_RANGE, size, _RANGE):
        file.seek(near)
        piece = file.read(MAX_LINE_BYTES + 64)
        newline = piece.find(b"\n")
        found = _NUMBER.match(piece, newline + 1) if newline >= 0 else None
        if found is None:  # no matter: the range before becomes longer
            continue
        if near + newline + 1 > starts[-1][0]:
            starts.append((near + newline + 1, int(found[1])))
    ends = [start for start, _ in starts[1:]]
    return [Bounds(start, end, number) for (start, number), end in zip(starts, [*ends, None], strict=True)]
