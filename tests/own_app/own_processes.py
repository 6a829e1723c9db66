"""deskcert as a user starts it, and who of its family runs, found in /proc without deskcert's own code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DESKCERT = str(Path(sys.executable).with_name("deskcert"))


def environment(more: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("DESKCERT_")} | dict(more)


def deskcert(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DESKCERT, *arguments],
        cwd=cwd,
        env=environment(more),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def records(run: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """Lines of a run's ledger, read with nothing but JSON."""
    found = [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().splitlines()]
    return [r for r in found if kind in (None, r["kind"])]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def naming(words: str) -> set[int]:
    """Running processes whose command line or environment holds these words, but not the test's own."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for file in ("cmdline", "environ"):
            try:
                if words.encode() in Path(f"/proc/{pid}/{file}").read_bytes() and alive(int(pid)):
                    found.add(int(pid))
            except OSError:
                continue
    return found - {os.getpid(), os.getppid()}


def wait_gone(pids: set[int], seconds: float = 5.0) -> set[int]:
    """Who is left of them when they are all gone or the time is over."""
    deadline = time.monotonic() + seconds
    while (left := {p for p in pids if alive(p)}) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def below(root: int) -> set[int]:
    """Every running descendant of a process."""
    parents = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            parents[pid] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found: set[int] = set()
    new = {root}
    while new := {p for p, parent in parents.items() if parent in new} - found:
        found |= new
    return found
