"""What a piece of evidence is made of: parts, each a goal and a function that does some of it from a seed."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Outcome", "Part", "commit", "machine", "scratch", "seed_of"]

ROOT = Path(__file__).resolve().parents[1]


@dataclass(slots=True)
class Outcome:
    """What one task found. Sent from process to process."""

    done: int
    """How many of the part's units were judged."""
    counts: dict[str, int] = field(default_factory=dict)
    """Summed over all tasks; names that begin with `max_` keep the largest."""
    failures: list[str] = field(default_factory=list)
    """One sentence each, with what is needed to repeat it."""


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    goal: int
    """Units that are wanted in full evidence."""
    task: int
    """Units one call of `work` does, about a few seconds of them."""
    work: Callable[[str, int], Outcome]
    """(seed, units) → outcome; the same for the same seed where the system allows it."""
    workers: int = 2
    """Tasks that may run at once."""


def scratch() -> Path:
    """A folder on the checkout's own file system for what is thrown away afterwards."""
    folder = ROOT / ".evidence"
    folder.mkdir(exist_ok=True)
    return folder


def seed_of(seed: int, part: str, task: int) -> str:
    return f"{seed}/{part}/{task}"


def commit(root: Path = ROOT) -> str:
    """The commit that is checked out, and whether the code differs from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "ledger", "schema", "scripts")
    return git("rev-parse", "HEAD") + (" and uncommitted changes" if changed else "")


def machine() -> dict[str, object]:
    """What may matter for the numbers, and nothing that says whose machine it is."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "cpus": os.cpu_count(),
        "model": model,
        "python": platform.python_version(),
        "kernel": f"{platform.system()} {platform.release()}",
    }
