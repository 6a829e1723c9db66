"""What the machine and the interpreter leave: the least that a bar's work costs here, without any of ours around it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from hashlib import sha256
from statistics import median
from time import perf_counter_ns, process_time_ns

from deskcert_ledger.merkle import leaf_hashes, subtrees

__all__ = ["hashing_ns", "round_trip_us", "two_processes"]


def hashing_ns(lines: Sequence[bytes], turns: int = 5) -> int:
    """CPU time of one leaf hash a line and the nodes above: what the tree costs before anything is looked at."""
    best = 1 << 62
    for _ in range(turns):
        began = process_time_ns()
        for at in range(0, len(lines), 128):
            for _node in subtrees(at, leaf_hashes(lines[at : at + 128])):
                pass
        best = min(best, process_time_ns() - began)
    return best


def two_processes(lines: Sequence[bytes], parse: Callable[[bytes], object], turns: int = 5) -> float:
    """How much more two processes get done than one, here and now: hashing and parsing, nothing shared, no result."""
    best = [1 << 62, 1 << 62]
    for _ in range(turns):
        for count in (1, 2):
            best[count - 1] = min(best[count - 1], _together(count, lines, parse))
    return 2 * best[0] / best[1]


def _together(count: int, lines: Sequence[bytes], parse: Callable[[bytes], object]) -> int:
    """Time on the wall until so many processes have each done all of it."""
    began = perf_counter_ns()
    children = []
    for _ in range(count):
        child = os.fork()
        if child == 0:
            for line in lines:
                parse(line)
                sha256(line).digest()
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return perf_counter_ns() - began


def round_trip_us(request: bytes, answer: bytes, count: int = 600) -> float:
    """Median: send, have another process wake up and answer, wake up. Nothing is parsed, nothing is written."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    child = os.fork()
    if child == 0:
        ours.close()
        while theirs.recv(1 << 16):
            theirs.sendall(answer)
        os._exit(0)
    theirs.close()
    taken = []
    for _ in range(count):
        began = perf_counter_ns()
        ours.sendall(request)
        ours.recv(1 << 16)
        taken.append((perf_counter_ns() - began) / 1000)
    ours.close()
    os.waitpid(child, 0)
    return median(taken)
