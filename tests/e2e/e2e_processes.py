"""Who belongs to a campaign, found in /proc without deskcert's own code."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

TOKEN_VARIABLE = "DESKCERT_RUN_TOKEN"


def token_of(pid: int) -> str | None:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    for entry in environment.split(b"\0"):
        name, _, value = entry.decode(errors="replace").partition("=")
        if name == TOKEN_VARIABLE:
            return value.split(".")[0]
    return None


def below(root: int) -> set[int]:
    """Every running descendant of a process."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            parents[int(pid)] = int(fields[1])
    found, more = {root}, True
    while more:
        new = {p for p, parent in parents.items() if parent in found} - found
        found, more = found | new, bool(new)
    return found - {root}


def running(pids: set[int]) -> set[int]:
    alive = set()
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                alive.add(pid)
        except OSError:
            continue
    return alive


def with_token(token: str) -> set[int]:
    return running({int(p) for p in filter(str.isdigit, os.listdir("/proc")) if token_of(int(p)) == token})


def wait_gone(family: set[int], token: str) -> set[int]:
    """Waits for each process's own end, at most 5 s in all, as the contract has it; returns who is left."""
    deadline = time.monotonic() + 5
    for pid in family:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        os.close(descriptor)
    return running(family) | with_token(token)
