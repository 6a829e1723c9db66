"""A skip that nobody listed is a failure in CI, and only there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROBE = "import pytest\n\ndef test_hidden():\n    pytest.skip('the widget is missing')\n"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_probe.py").write_text(PROBE)
    (tmp_path / "conftest.py").write_text((HERE / "conftest.py").read_text())
    (tmp_path / "skips.txt").write_text("# none\n")
    return tmp_path


def run(suite: Path, ci: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CI": ci}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(suite)]
    return subprocess.run(command, env=env, cwd=suite, capture_output=True, text=True, check=False)


def test_an_unlisted_skip_fails_in_ci(suite: Path) -> None:
    result = run(suite, "true")
    assert result.returncode == 1
    assert "skipped in CI without being listed in tests/skips.txt: Skipped: the widget is missing" in result.stdout


def test_a_whole_module_that_skips_itself_fails_in_ci(suite: Path) -> None:
    (suite / "test_probe.py").write_text("import pytest\n\npytest.importorskip('no_such_package_here')\n")
    result = run(suite, "true")
    assert result.returncode != 0
    assert "without being listed in tests/skips.txt" in result.stdout


def test_a_listed_skip_with_its_reason_passes_in_ci(suite: Path) -> None:
    (suite / "skips.txt").write_text("test_probe.py::test_hidden | the widget is missing\n")
    assert run(suite, "true").returncode == 0


def test_a_listed_skip_with_another_reason_fails_in_ci(suite: Path) -> None:
    (suite / "skips.txt").write_text("test_probe.py::test_hidden | another reason\n")
    assert run(suite, "true").returncode == 1


def test_a_skip_is_only_a_skip_elsewhere(suite: Path) -> None:
    assert run(suite, "").returncode == 0
