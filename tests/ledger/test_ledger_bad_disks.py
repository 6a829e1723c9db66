"""A disk that is full, read-only or broken while a run is being recovered: said, nothing acknowledged lost, and another
recovery on a disk that works again does it all. Injected at every call, and on a real small file system."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import StepClock, seeded

from deskcert_ledger import Blob, ProjectKey, RunLedger, recover_run, verify_run
from deskcert_ledger.recovery import Outcome
from deskcert_ledger.store import Disk
from deskcert_schema.errors import LedgerUnavailable

Create = Callable[..., RunLedger]


class FailsAt(Disk):
    """The call with this number fails, and all after it, until it is told otherwise."""

    def __init__(self, number: int, error: int) -> None:
        self.left, self.error = number, error

    def _maybe(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(self.error, os.strerror(self.error))

    def write(self, fd: int, data: bytes) -> int:
        self._maybe()
        return super().write(fd, data)

    def datasync(self, fd: int) -> None:
        self._maybe()
        super().datasync(fd)

    def sync(self, fd: int) -> None:
        self._maybe()
        super().sync(fd)

    def truncate(self, fd: int, size: int) -> None:
        self._maybe()
        super().truncate(fd, size)

    def rename(self, old: Path, new: Path) -> None:
        self._maybe()
        super().rename(old, new)


@pytest.fixture
def torn(create: Create) -> Path:
    """Crashed with an open intent, half a line after it, and half a note."""
    ledger = create()
    ledger.append("observation", {"tree": Blob({"nodes": [1]})})
    ledger.append("action.intent", {"action": 1})
    folder = ledger.folder.with_name("torn")
    shutil.copytree(ledger.folder, folder)
    with (folder / "ledger.jsonl").open("ab") as file:
        file.write(b'{"v":1,"seq":3,"t":')
    with (folder / "checkpoints").open("ab") as file:
        file.write(b"deskcert/test/run-1\n4\n")
    return folder


def acknowledged(folder: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (folder / "ledger.jsonl").read_bytes().split(b"\n")[:3]]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.__getitem__)
def test_a_recovery_whose_disk_fails_at_any_call_says_so_and_can_be_done_again(
    torn: Path, key: ProjectKey, error: int, tmp_path: Path
) -> None:
    number, failed = 0, True
    while failed:
        run = tmp_path / f"copy-{number}"
        shutil.copytree(torn, run)
        said = ""
        try:
            recover_run(run, key, clock=StepClock(), rng=seeded("first"), disk=FailsAt(number, error))
        except LedgerUnavailable as refusal:
            said = str(refusal)
        failed = said != ""
        assert not failed or os.strerror(error) in said
        assert verify_run(run, pins=[key.vkey]).headline == "interrupted", number
        again = recover_run(run, key, clock=StepClock(), rng=seeded("second"))
        assert (again.outcome is Outcome.NOTHING_TO_DO) or failed
        assert acknowledged(run) == ["run.start", "observation", "action.intent"]
        report = verify_run(run, pins=[key.vkey], every_signature=True)
        assert (report.words, report.open_intents, report.problems) == (("interrupted", "unfinished"), (), ()), number
        shutil.rmtree(run)
        number += 1
    assert number > 20


_ON_A_SMALL_DISK = """
import json, os, shutil, subprocess, sys
from pathlib import Path
from deskcert_ledger import ProjectKey, recover_run, verify_run
from deskcert_schema.errors import LedgerUnavailable
torn, key, small = Path(sys.argv[1]), ProjectKey.load(Path(sys.argv[2])), Path(sys.argv[3])
PAGE = 4096
def mount(*words):
    return subprocess.run(["mount", *words, str(small)], capture_output=True).returncode == 0
if not mount("-t", "tmpfs", "-o", "size=256k", "tmpfs"):
    sys.exit(77)
def tell(what, room, run):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    try:
        recover_run(run, key)
        said = ""
    except LedgerUnavailable as error:
        said = str(error)
    same = before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    print(json.dumps([what, room, said, same, verify_run(run, pins=[key.vkey]).headline]))
for room in range(0, 14):
    run = small / "run"
    shutil.copytree(torn, run)
    filler = small / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(PAGE))
        except OSError:
            pass
    os.truncate(filler, max(0, filler.stat().st_size - room * PAGE))
    tell("full", room, run)
    filler.unlink()
    tell("again", room, run)
    shutil.rmtree(run)
shutil.copytree(torn, small / "run")
assert mount("-o", "remount,ro")
tell("read-only", 0, small / "run")
assert mount("-o", "remount,rw")
tell("again", 0, small / "run")
"""


def test_a_recovery_on_a_full_and_on_a_read_only_file_system(torn: Path, key: ProjectKey, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    key_file = tmp_path / ".deskcert" / "key"
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can mount a file system")
    command = ["unshare", "-m", sys.executable, "-c", _ON_A_SMALL_DISK, str(torn), str(key_file), str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip("this system lets nobody mount a file system")
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert {headline for *_, headline in told} == {"interrupted"}
    full = {room: said for what, room, said, *_ in told if what == "full"}
    assert "No space left" in full[0]
    assert full[13] == "", "there was room enough"
    assert not any(said for what, _, said, *_ in told if what == "again")
    ((said, same),) = [(said, same) for what, _, said, same, _ in told if what == "read-only"]
    assert "Read-only file system" in said
    assert same
