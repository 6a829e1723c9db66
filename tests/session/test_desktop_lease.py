"""One input at a time on one desktop, across processes, whatever becomes of the holder."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deskcert.session.desktop_lease import DesktopLease, lease_path
from deskcert_schema.errors import HarnessError

HOLDER = """
import asyncio, sys
from pathlib import Path
from deskcert.session.desktop_lease import DesktopLease
async def main():
    print(await DesktopLease(Path(sys.argv[1])).take(5000), flush=True)
    sys.stdin.read()
asyncio.run(main())
"""


async def test_another_process_waits_and_gets_it_when_the_holder_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "run" / "input.lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:  # noqa: ASYNC220 - it is only started
        assert holder.stdout is not None
        assert await asyncio.to_thread(holder.stdout.readline) == "(True, 0)\n"
        lease = DesktopLease(path)
        assert await lease.take(50) == (False, 1)
        waiting = asyncio.ensure_future(lease.take(20_000))
        await asyncio.sleep(0)
        assert not waiting.done()
        holder.kill()
        assert (await waiting)[0]
    lease.release()
    assert (await DesktopLease(path).take(0))[0]


async def test_a_program_started_by_the_holder_does_not_keep_it(tmp_path: Path) -> None:
    lease, other = DesktopLease(tmp_path / "lock"), DesktopLease(tmp_path / "lock")
    assert (await lease.take(0))[0]
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:  # noqa: ASYNC220 - it is only started
        lease.release()
        assert (await other.take(0))[0]
        child.kill()
    other.release()


async def test_within_one_process_it_is_one_too(tmp_path: Path) -> None:
    lease = DesktopLease(tmp_path / "lock")
    assert await lease.take(0) == (True, 0)
    assert await lease.take(10) == (False, 1)
    lease.release()
    assert await lease.take(0) == (True, 0)
    lease.release()


@pytest.mark.parametrize("spoil", ["link", "folder", "writable"])
async def test_a_lock_file_that_is_not_ours_is_not_used(tmp_path: Path, spoil: str) -> None:
    path = tmp_path / "lock"
    match spoil:
        case "link":
            path.symlink_to(tmp_path / "elsewhere")
        case "folder":
            path.mkdir()
        case _:
            path.touch()
            path.chmod(0o666)
    lease = DesktopLease(path)
    with pytest.raises(HarnessError):
        await lease.take(0)
    assert not (tmp_path / "elsewhere").exists()


def test_each_desktop_has_its_own(tmp_path: Path) -> None:
    bus = "unix:path=/run/bus"
    one = lease_path(":1", bus + ",guid=1", str(tmp_path))
    assert one == lease_path(":1", bus + ",guid=2", str(tmp_path))
    assert one != lease_path(":2", bus, str(tmp_path))
    assert str(os.getuid()) in str(lease_path(":1", bus, None))
