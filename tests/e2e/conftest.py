"""Campaigns that many tests look at, each run once a session."""

from __future__ import annotations

import pytest
from e2e_campaigns import Campaign, Certify, run_deskcert


@pytest.fixture(scope="session")
def certify(tmp_path_factory: pytest.TempPathFactory) -> Certify:
    """Run `deskcert ci --json` with these arguments; the same arguments are run once."""
    known: dict[tuple[str, ...], Campaign] = {}

    def run(*arguments: str, fresh: bool = False) -> Campaign:
        if fresh or arguments not in known:
            cwd = tmp_path_factory.mktemp("campaign")
            # Options go before a command that stands after "--".
            done = run_deskcert("ci", "--json", "--out", "out", *arguments, cwd=cwd)
            campaign = Campaign(cwd, cwd / "out", done.returncode, done.stdout, done.stderr)
            if fresh:
                return campaign
            known[arguments] = campaign
        return known[arguments]

    return run


@pytest.fixture(scope="session")
def careful(certify: Certify) -> Campaign:
    return certify("--agent", "builtin:careful", "--suite", "builtin:core")
