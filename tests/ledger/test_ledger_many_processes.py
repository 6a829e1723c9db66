"""Several processes write one ledger through its socket: one order, no gap, nobody starves."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deskcert_ledger import ProjectKey, RunLedger, recover_run, verify_run
from deskcert_ledger.notary import Following
from deskcert_ledger.socket_client import LedgerClient
from deskcert_ledger.socket_server import LedgerServer
from deskcert_ledger.store import Disk
from deskcert_schema.errors import LedgerUnavailable
from scripts.evidence_writers import WRITERS, write_at_once

DESKCERT = str(Path(sys.executable).with_name("deskcert"))


def test_eight_processes_get_one_gapless_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A minute of it, on a quiet machine, is `make evidence ONLY=writers`."""
    written = write_at_once(tmp_path, 3)
    assert written.wrong is None
    assert min(written.counts) * 10 > max(written.counts), "a writer starved"
    with capsys.disabled():
        print(f"\n{WRITERS} writers, {sum(written.counts)} records: p50 {written.p50_us} us, p99 {written.p99_us} us")


def test_a_stranger_is_not_served(create: Callable[..., RunLedger]) -> None:
    """Another user's process connects to a socket that was opened to all, and is turned away before it can write."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    ledger = create()
    with LedgerServer(ledger, w="guard", kinds=frozenset({"claim"})) as server:
        server.path.parent.chmod(0o755)
        server.path.chmod(0o666)
        code = (
            "import os, sys, socket\n"
            "os.setuid(65534)\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "s.connect(sys.argv[1])\n"
            'try: s.sendall(b\'{"id":1,"kind":"claim","payload":{}}\\n\'); print(s.recv(100))\n'
            "except OSError as error: print(type(error).__name__)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(server.path)], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() in ("b''", "ConnectionResetError", "BrokenPipeError")
        assert LedgerClient(server.path).append("claim", {}).seq == 1
    assert ledger.head[0] == 2


def test_sigterm_seals_what_was_acknowledged(tmp_path: Path) -> None:
    command = [DESKCERT, "ledger", "serve", "run", "--socket", str(tmp_path / "socket")]
    sequencer = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert sequencer.stdout is not None
    told = json.loads(sequencer.stdout.readline())
    client = LedgerClient(tmp_path / "socket")
    seqs = [client.append("claim", {"n": number}).seq for number in range(3)]
    sequencer.send_signal(signal.SIGTERM)
    assert sequencer.wait(20) == 0
    with pytest.raises(LedgerUnavailable):
        client.append("claim", {"n": 3})
    lines = [json.loads(line) for line in (tmp_path / "run" / "ledger.jsonl").read_bytes().split(b"\n")[:-1]]
    assert [lines[seq]["n"] for seq in seqs] == [0, 1, 2]
    assert [line["kind"] for line in lines[4:]] == ["run.end"]
    assert verify_run(tmp_path / "run", pins=[told["vkey"]]).headline == "complete"
    assert not (tmp_path / "socket").exists()


class FullDisk(Disk):
    """Fails in the way it is told."""

    def __init__(self) -> None:
        self.code = 0

    def write(self, fd: int, data: bytes) -> int:
        if self.code in (errno.ENOSPC, errno.EROFS):
            raise OSError(self.code, os.strerror(self.code))
        return super().write(fd, data)

    def datasync(self, fd: int) -> None:
        if self.code == errno.EIO:
            raise OSError(self.code, os.strerror(self.code))
        super().datasync(fd)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_failing_disk_refuses_every_writer_behind_the_socket(
    create: Callable[..., RunLedger], key: ProjectKey, code: int
) -> None:
    disk = FullDisk()
    ledger = create(disk=disk, following=Following.THREAD)
    with LedgerServer(ledger, w="guard", kinds=frozenset({"action.intent"})) as server:
        first, second = LedgerClient(server.path), LedgerClient(server.path)
        acknowledged = [first.append("action.intent", {"n": 1}).seq, second.append("action.intent", {"n": 2}).seq]
        disk.code = code
        with pytest.raises(LedgerUnavailable, match=os.strerror(code)):
            first.append("action.intent", {"n": 3})
        disk.code = 0  # it works again; nobody tries
        for client in (first, second):
            with pytest.raises(LedgerUnavailable):
                client.append("action.intent", {"n": 4})
            assert client.poisoned is not None
    with pytest.raises(LedgerUnavailable):
        ledger.seal()
    done = recover_run(ledger.folder, key)
    records = [json.loads(line) for line in (ledger.folder / "ledger.jsonl").read_bytes().split(b"\n")[:-1]]
    assert [records[seq]["n"] for seq in acknowledged] == [1, 2]
    assert not any(record.get("n") == 4 for record in records)
    assert set(acknowledged) <= set(done.open_intents)
    assert verify_run(ledger.folder, pins=[key.vkey]).open_intents == ()
