"""Campaigns that many tests look at, each run once, whichever process of the test run looks."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from pathlib import Path

import pytest
from e2e_campaigns import Campaign, Certify, run_deskcert


@pytest.fixture(scope="session")
def certify(tmp_path_factory: pytest.TempPathFactory) -> Certify:
    """Run `deskcert ci --json` with these arguments; the same arguments are run once, and nobody changes what they
    left behind."""
    base = tmp_path_factory.getbasetemp()
    # With several processes each has a folder of its own in one that is this test run's.
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "campaigns"
    shared.mkdir(exist_ok=True)
    known: dict[tuple[str, ...], Campaign] = {}

    def run(*arguments: str) -> Campaign:
        if arguments not in known:
            known[arguments] = _once(shared / hashlib.sha256("\0".join(arguments).encode()).hexdigest()[:16], arguments)
        return known[arguments]

    return run


def _once(cwd: Path, arguments: tuple[str, ...]) -> Campaign:
    told = cwd.with_suffix(".json")
    with cwd.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            cwd.mkdir()
            # Options go before a command that stands after "--".
            done = run_deskcert("ci", "--json", "--out", "out", *arguments, cwd=cwd)
            told.write_text(json.dumps([done.returncode, done.stdout, done.stderr]))
    return Campaign(cwd, cwd / "out", *json.loads(told.read_text()))


@pytest.fixture(scope="session")
def careful(certify: Certify) -> Campaign:
    return certify("--agent", "builtin:careful", "--suite", "builtin:core")
