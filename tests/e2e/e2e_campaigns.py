"""Whole campaigns, as a user runs them: the installed program, a real browser, a real server, a real ledger.

A campaign takes seconds, so each is run once a session and looked at by many tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

DESKCERT = str(Path(sys.executable).with_name("deskcert"))


def run_deskcert(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DESKCERT, *arguments],
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if not k.startswith("DESKCERT_")} | dict(env or {}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@dataclass
class Campaign:
    """What one `deskcert ci --json` left behind."""

    cwd: Path
    out: Path
    exit_code: int
    stdout: str
    stderr: str
    _extra: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def verdict(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stdout)
        return found

    @property
    def runs(self) -> list[Path]:
        return sorted((self.out / "runs").iterdir())

    def run_of(self, scenario: str) -> Path:
        return next(r for r in self.runs if r.name.startswith(f"{scenario}-t"))

    def effects_of(self, run: Path) -> list[dict[str, Any]]:
        return effects(self.out, run)


def effects(out: Path, run: Path) -> list[dict[str, Any]]:
    """The application's own log of one run."""
    text = (out / "app" / run.name / "effects.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def records(run: Path) -> list[dict[str, Any]]:
    """Every line of a run's ledger, read with nothing but JSON."""
    return [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().splitlines()]


def of_kind(run: Path, kind: str) -> list[dict[str, Any]]:
    return [r for r in records(run) if r["kind"] == kind]


type Certify = Callable[..., Campaign]
"""Arguments of `deskcert ci` in, what it left behind out; the same arguments are run once a session."""


def core(certify: Certify, agent: str) -> Campaign:
    """A reference agent on the core suite."""
    # Two at a time: most of a run is waiting, and the whole suite has 15 minutes. `careful` is the fixture's campaign.
    workers = () if agent == "careful" else ("--workers", "2")
    return certify("--agent", f"builtin:{agent}", "--suite", "builtin:core", *workers)
