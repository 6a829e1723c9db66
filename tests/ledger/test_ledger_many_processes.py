"""Several processes write one ledger through its socket: one order, no gap, nobody starves."""

from __future__ import annotations

import errno
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable

import pytest

from deskcert_ledger import ProjectKey, RunLedger, recover_run, verify_run
from deskcert_ledger.notary import Following
from deskcert_ledger.socket_client import LedgerClient
from deskcert_ledger.socket_server import LedgerServer
from deskcert_ledger.store import Disk
from deskcert_schema.errors import LedgerUnavailable

WRITERS = 8
SECONDS = float(os.environ.get("DESKCERT_STRESS_SECONDS", "3"))
"""A minute in the evidence."""

_WRITER = """
import json, sys, time
from pathlib import Path
from deskcert_ledger.notary import Following
from deskcert_ledger.socket_client import LedgerClient
client, number, end = LedgerClient(Path(sys.argv[1])), int(sys.argv[2]), float(sys.argv[3])
print(flush=True)
sys.stdin.readline()
taken, seqs, stop = [], [], time.monotonic() + end
while time.monotonic() < stop:
    began = time.perf_counter_ns()
    seqs.append(client.append("claim", {"by": number, "turn": len(seqs)}).seq)
    taken.append((time.perf_counter_ns() - began) // 1000)
print(json.dumps([seqs, taken]))
"""


def test_eight_processes_get_one_gapless_order(
    create: Callable[..., RunLedger], key: ProjectKey, told: Callable[[str], None]
) -> None:
    ledger = create(following=Following.THREAD)
    with LedgerServer(ledger, w="guard", kinds=frozenset({"claim"})) as server:
        command = [sys.executable, "-c", _WRITER, str(server.path)]
        writers = [
            subprocess.Popen(
                [*command, str(number), str(SECONDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for number in range(WRITERS)
        ]
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("\n")
            writer.stdin.flush()
        answers = [json.loads(writer.communicate()[0]) for writer in writers]
    ledger.append("run.end", {})
    ledger.seal()
    lines = [json.loads(line) for line in (ledger.folder / "ledger.jsonl").read_bytes().split(b"\n")[:-1]]
    assert sorted(seq for seqs, _ in answers for seq in seqs) == list(range(1, len(lines) - 1))
    for number, (seqs, _) in enumerate(answers):
        assert seqs == sorted(seqs)
        assert [(lines[seq]["by"], lines[seq]["turn"]) for seq in seqs] == [(number, at) for at in range(len(seqs))]
    counts = [len(seqs) for seqs, _ in answers]
    assert min(counts) * 10 > max(counts), "a writer starved"
    taken = sorted(us for _, times in answers for us in times)
    p50, p99 = statistics.median(taken), taken[len(taken) * 99 // 100]
    told(f"{WRITERS} writers, {sum(counts)} records: p50 {p50:.0f} us, p99 {p99} us, p99/p50 {p99 / p50:.1f}")
    assert verify_run(ledger.folder, pins=[key.vkey], every_signature=True).headline == "complete"


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
