"""Shards as tasks of a Ray cluster that exists. The nodes see the project's folder and the output folder under the same
paths (one machine, or a shared file system), so no key and no evidence goes through the cluster's own store.

A task is never tried again: a shard that was run twice would be inconclusive, and rightly.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from deskcert_schema.errors import HarnessError, UsageError

__all__ = ["Part", "run_shards"]

_SAID = 20_000
_REACH_S = 10.0


@dataclass(frozen=True, slots=True)
class Part:
    code: int
    """Exit code of its `deskcert ci`."""
    said: str
    """The end of what it wrote to standard error."""


def run_shards(
    address: str,
    words: Sequence[str],
    *,
    shards: int,
    attempt: str,
    out: Path,
    cwd: Path,
    say: Callable[[str], None],
) -> dict[int, Part]:
    """By number. Raises `UsageError` where Ray is not installed, `HarnessError` when there is no cluster at `address`.
    A shard whose task was lost has no entry."""
    try:
        ray: Any = import_module("ray")
    except ImportError:
        raise UsageError("--ray needs Ray: pip install 'deskcert[ray]'; or take --shard and deskcert merge") from None
    _reach(address)
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except Exception as exc:  # of Ray's many kinds no common one is public
        raise HarnessError(f"there is no Ray cluster at {address}: {exc}") from exc
    keep = {name: value for name, value in os.environ.items() if name.startswith("DESKCERT_")}
    try:
        task = ray.remote(max_retries=0, num_cpus=1)(_one)
        pending = {
            task.remote(_command(number, shards, attempt, out / str(number), words), str(cwd), keep): number
            for number in range(1, shards + 1)
        }
        done: dict[int, Part] = {}
        while pending:
            (ready, *_), _ = ray.wait(list(pending), num_returns=1)
            number = pending.pop(ready)
            try:
                done[number] = Part(*ray.get(ready))
                say(f"shard {number}/{shards}: recorded (exit {done[number].code})")
            except ray.exceptions.RayError as exc:
                say(f"shard {number}/{shards}: lost: {type(exc).__name__}")
        return done
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Ray itself asks for minutes where nobody listens."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()
        except (OSError, OverflowError) as exc:
            raise HarnessError(f"there is no Ray cluster at {address}: {exc}") from exc


def _command(number: int, count: int, attempt: str, out: Path, words: Sequence[str]) -> list[str]:
    shard = ["--shard", f"{number}/{count}", "--attempt", attempt, "--out", str(out)]
    return [sys.executable, "-m", "deskcert.cli.main", "ci", *shard, *words]


def _one(command: list[str], cwd: str, environment: Mapping[str, str]) -> tuple[int, str]:
    """In a worker of the cluster. A plain process: what a shard leaves is on disk, not in this one's memory."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=None
    )
    return done.returncode, done.stderr[-_SAID:]
