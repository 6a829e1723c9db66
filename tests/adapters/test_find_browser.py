"""Which browser is found, without one being started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deskcert.adapters.web import find_browser as module
from deskcert.adapters.web.find_browser import find_browser, is_headless_shell
from deskcert_schema.errors import HarnessError


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_USUAL", ())


def test_what_was_asked_for_comes_first(tmp_path: Path) -> None:
    own = program(tmp_path / "mine")
    program(tmp_path / "bin" / "chromium")
    assert find_browser({"DESKCERT_BROWSER": str(own), "PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}) == own


def test_what_was_asked_for_must_be_a_program(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no")
    with pytest.raises(HarnessError, match="DESKCERT_BROWSER"):
        find_browser({"DESKCERT_BROWSER": str(tmp_path / "text"), "PATH": os.environ["PATH"]})


def test_playwrights_own_build_comes_before_the_systems(tmp_path: Path) -> None:
    revision = module._revisions()["chromium-headless-shell"]
    builds = tmp_path / ".cache" / "ms-playwright"
    program(builds / "chromium_headless_shell-1" / "chrome-linux" / "headless_shell")
    own = program(builds / f"chromium_headless_shell-{revision}" / "chrome-linux" / "headless_shell")
    program(tmp_path / "bin" / "chromium")
    assert find_browser({"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}) == own


def test_the_headless_shell_comes_before_the_full_browser(tmp_path: Path) -> None:
    full = program(tmp_path / "bin" / "chromium")
    env = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    assert find_browser(env) == full
    shell = program(tmp_path / "bin" / "chromium-headless-shell")
    assert find_browser(env) == shell
    assert (is_headless_shell(shell), is_headless_shell(full)) == (True, False)


def test_none_is_one_sentence_with_the_two_ways(tmp_path: Path) -> None:
    with pytest.raises(HarnessError) as caught:
        find_browser({"PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert "playwright install" in str(caught.value)
    assert "apt-get install" in str(caught.value)


def test_the_command_exits_2_with_the_sentence(tmp_path: Path) -> None:
    env = {"DESKCERT_BROWSER": str(tmp_path / "absent"), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-m", module.__name__], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1
    own = program(tmp_path / "mine")
    done = subprocess.run(
        [sys.executable, "-m", module.__name__],
        env=env | {"DESKCERT_BROWSER": str(own)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{own}\n")
