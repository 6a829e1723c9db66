from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ways_world import Application, application


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """One process for all tests here; each starts its page anew and looks at its own effects."""
    with application(tmp_path_factory.mktemp("app")) as running:
        yield running


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text('version: 1\ndeny:\n  - {id: no-delete, name: "Delete account", reason: "irreversible"}\n')
    return path
