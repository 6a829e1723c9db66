"""Whoever is killed with `kill -9`, the processes of the campaign go with him, and nobody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from deskcert.certify.reaper import TOKEN_VARIABLE, Reaper, holders

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

PARENT = """
import os, subprocess, sys
from deskcert.certify.reaper import Reaper
token = sys.argv[1]
environment = os.environ | {"DESKCERT_RUN_TOKEN": token + ".run-1"}
# In a session of its own, as an agent's process is, with a child that has another environment, as Chromium's has.
inner = "import subprocess, sys; subprocess.Popen(['sleep', '600'], env={}); print('up', flush=True); input()"
child = subprocess.Popen([sys.executable, "-c", inner], env=environment, start_new_session=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
reaper = Reaper(token)
print(child.pid, flush=True)
input()
"""


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pids: list[int]) -> bool:
    """Waits on the processes themselves, by their descriptors; the limit only keeps a failing test from hanging."""
    import select

    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        select.select([descriptor], [], [], 10)
        os.close(descriptor)
    return not any(alive(p) for p in pids)


def test_after_kill_9_nothing_with_the_token_is_left(tmp_path: Path) -> None:
    token = f"test{os.getpid()}"
    bystander = subprocess.Popen(["sleep", "600"], env=os.environ | {TOKEN_VARIABLE: token + "0"})
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT), token], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        family = [child, *children(child)]
        assert len(family) == 2
        assert holders(token) == {child}
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        assert gone(family)
        assert alive(bystander.pid)
    finally:
        bystander.kill()
        bystander.wait()


def test_a_reaper_that_is_closed_has_done_its_round() -> None:
    token = f"closed{os.getpid()}"
    reaper = Reaper(token)
    child = subprocess.Popen(["sleep", "600"], env=os.environ | {TOKEN_VARIABLE: token})
    reaper.close()
    assert child.wait(timeout=10) == -signal.SIGKILL


def test_the_token_of_one_run_does_not_name_another() -> None:
    token = f"one{os.getpid()}"
    child = subprocess.Popen(["sleep", "600"], env=os.environ | {TOKEN_VARIABLE: f"{token}.run-1"})
    try:
        # Popen returns after the exec, so that the environment is the child's own.
        assert holders(token) == holders(f"{token}.run-1") == {child.pid}
        assert holders(f"{token}.run") == set()
        assert holders(f"{token}.run-10") == set()
    finally:
        child.kill()
        child.wait()
