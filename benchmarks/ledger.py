"""The ledger's bars, each as a ratio taken in one run, in turns, with equal work checked. Run it with `make bench`.

    append      one durable record at a time, against `write` + `fdatasync` of the same bytes: in process and by socket
    in flight   two writers with 64 records in flight, against one `write` + `fdatasync` for 64 of the same lines
    verify      full verification, against L = 1/(1/raw SHA-256 rate + 1/orjson parse rate): best of the turns, CPU time
                with one process and time on the wall with two
    proof       making and checking an inclusion proof
    memory      growth of the peak between two sizes

Numbers of milliseconds say more about the machine than about the code; the ratios travel.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import secrets
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter_ns, process_time_ns, sleep
from typing import Any

import orjson

from benchmarks.limits import hashing_ns, round_trip_us, two_processes
from benchmarks.pairs import Pair, show
from benchmarks.records import payload
from deskcert_ledger import ProjectKey, RunLedger, SystemClock, read_records, verify_run
from deskcert_ledger.merkle import check_inclusion, inclusion_proof, leaf_hash
from deskcert_ledger.proof import Prover
from deskcert_ledger.socket_client import LedgerClient
from deskcert_ledger.socket_server import Writable

APPENDS = 600
BLOCK = 20
PAYLOAD = {"of": 0, "ok": True, "delivery": "delivered_unverified", "retry": "unsafe", "note": "x" * 380}
KIND = "action.result"


def _ledger(folder: Path, key: ProjectKey) -> RunLedger:
    clock, rng = SystemClock(), secrets.token_bytes
    return RunLedger.create(folder, origin="deskcert/bench", start={}, project_key=key, clock=clock, rng=rng)


def _line(folder: Path, seq: int) -> bytes:
    return (folder / "ledger.jsonl").read_bytes().splitlines(keepends=True)[seq]


@contextmanager
def _elsewhere(run: Path, key_file: Path) -> Iterator[LedgerClient]:
    """A client of a sequencer in a process of its own, as a proxy or a second guard has it."""
    code = (
        "import sys; from pathlib import Path; from deskcert_ledger import ProjectKey\n"
        "from deskcert_ledger.standalone import serve\n"
        "serve(Path(sys.argv[1]), None, origin='deskcert/bench', start={}, w='guard',\n"
        "      project_key=ProjectKey.load(Path(sys.argv[2])), ready=lambda path: print(path, flush=True))\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code, str(run), str(key_file)], stdin=pipe, stdout=pipe) as server:
        assert server.stdout is not None
        client = LedgerClient(Path(server.stdout.readline().decode().strip()))
        yield client
        client.close()
        server.communicate()
    assert server.returncode == 0


@contextmanager
def _here(run: Path, key_file: Path) -> Iterator[RunLedger]:
    ledger = _ledger(run, ProjectKey.load(key_file))
    yield ledger
    ledger.seal()


def appends(folder: Path, key_file: Path, *, over_socket: bool) -> float:
    """The ratio raw / ours of the medians: 1 is as fast as the disk lets one be.

    In blocks, in turns: within a block of ours the notes are written beside it, as in a run; between two blocks there
    is a moment, so that what still follows a block of ours does not fall upon a raw one.
    """
    where = "over the socket" if over_socket else "in process"
    run, raw_file = folder / f"appends {where}", folder / f"raw {where}"
    taken: dict[str, list[int]] = {"ours": [], "raw": []}
    raw = os.open(raw_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with (_elsewhere if over_socket else _here)(run, key_file) as writer:
        line = _line(run, writer.append(KIND, PAYLOAD).seq)

        def plainly() -> None:
            os.write(raw, line)
            os.fdatasync(raw)

        for turn in range(APPENDS // BLOCK + 1):
            sides: list[tuple[str, Callable[[], object]]] = [
                ("ours", lambda: writer.append(KIND, PAYLOAD)),
                ("raw", plainly),
            ]
            for name, work in sides[:: 1 if turn % 2 else -1]:
                for _ in range(BLOCK):
                    began = perf_counter_ns()
                    work()
                    if turn:  # the first turn is to get warm
                        taken[name].append((perf_counter_ns() - began) // 1000)
                sleep(0.005)
    os.close(raw)
    written = sum(record.kind == KIND for record in read_records(run))
    assert written == APPENDS + BLOCK + 1
    assert raw_file.stat().st_size == (APPENDS + BLOCK) * len(line)
    goal = 0.7 if over_socket else 0.9
    pair = Pair(tuple(taken["ours"]), tuple(taken["raw"]))
    names = (f"deskcert: append {where}", "raw: write + fdatasync")
    show(f"one durable record of {len(line)} bytes, {where}", names, pair, aim=f"<= {1 / goal:.2f}, {goal} of raw")
    print(f"  deskcert adds {median(pair.ours_us) - median(pair.theirs_us):.0f} us")
    if over_socket:
        bare = round_trip_us(line, b"x" * 40)
        print(f"  of that a bare round trip between two processes: {bare:.0f} us, when neither has slept long")
    return 1 / pair.ratio


def _fly(ledger: Writable, count: int) -> None:
    flying: deque[Any] = deque()
    for _ in range(count):
        flying.append(ledger.submit(KIND, PAYLOAD))
        if len(flying) >= 64:
            flying.popleft().result()
    for future in flying:
        future.result()


def in_flight(folder: Path, key: ProjectKey, *, turns: int = 7, count: int = 1536) -> float:
    """Two writers, 64 in flight each, against raw batches of 64: durable records a second, ours over raw."""
    ledger = _ledger(folder / "flying", key)
    line = _line(folder / "flying", ledger.append(KIND, PAYLOAD).seq)
    raw = os.open(folder / "raw flying", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ours, theirs = [], []
    for _ in range(turns):
        began = perf_counter_ns()
        threads = [threading.Thread(target=_fly, args=(ledger, count // 2)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ours.append(perf_counter_ns() - began)
        began = perf_counter_ns()
        for _ in range(count // 64):
            os.write(raw, line * 64)
            os.fdatasync(raw)
        theirs.append(perf_counter_ns() - began)
    os.close(raw)
    assert ledger.seal().size == turns * count + 2
    return median(theirs) / median(ours)


def _filled(folder: Path, key: ProjectKey, records: int) -> None:
    """A sealed run of records as sessions write them; no blobs, which are hashed at the raw rate."""
    ledger, choose = _ledger(folder, key), random.Random(records)
    flying: deque[Any] = deque()
    for number in range(1, records - 1):
        kind, content = payload(number, choose)
        flying.append(ledger.submit(kind, content))
        if len(flying) >= 512:
            flying.popleft().result()
    ledger.append("run.end", {"outcome": "finished"})
    ledger.seal()


def _best(turns: int, clock: Callable[[], int], *works: Callable[[], object]) -> list[float]:
    """Least time of each, in turns, nanoseconds."""
    best = [float("inf")] * len(works)
    for _ in range(turns):
        for index, work in enumerate(works):
            re.purge()  # expressions that the last turn made do not help this one
            began = clock()
            work()
            best[index] = min(best[index], clock() - began)
    return best


def verify(run: Path, key: ProjectKey, records: int) -> tuple[float, float]:
    """Our rate over L: with one process (CPU time), and with two (time on the wall, as L then is too)."""
    whole = (run / "ledger.jsonl").read_bytes()
    lines = whole.splitlines()
    for jobs in (1, 2):
        report = verify_run(run, pins=[key.vkey], jobs=jobs)
        assert (report.size, report.problems) == (records, ())
        assert report.headline in {"complete", "interrupted"}  # the last intent of the sample may have no result
    assert len(lines) == records

    def hashing() -> None:
        for at in range(0, len(whole), 1 << 20):
            sha256(whole[at : at + (1 << 20)]).digest()

    def parsing() -> None:
        for line in lines:
            orjson.loads(line)

    raw, parse, ours = _best(9, process_time_ns, hashing, parsing, lambda: verify_run(run, pins=[key.vkey]))
    one = (raw + parse) / ours
    hashed = hashing_ns(lines)
    print(f"verify: the tree's hashes alone, a leaf and a node a line, take {hashed / (raw + parse):.2f} of 1/L;")
    print(f"  deskcert takes {(ours - hashed) / (raw + parse):.2f} of it for reading, checking and following")
    raw, parse, ours = _best(9, perf_counter_ns, hashing, parsing, lambda: verify_run(run, pins=[key.vkey], jobs=2))
    machine = two_processes(lines[: len(lines) // 2], orjson.loads)
    print(f"verify: two processes that share nothing get {machine:.2f} times as much done here as one")
    return one, (raw + parse) / ours


def proofs(run: Path, records: int) -> tuple[float, float, int]:
    """Milliseconds to make a path and to check one (medians; signatures are not in it), bytes of the largest proof."""
    lines = (run / "ledger.jsonl").read_bytes().split(b"\n")
    makes, checks, largest = [], [], 0
    with Prover(run) as prover:
        size, root = prover.checkpoint.size, prover.checkpoint.root
        for number in range(300):
            seq = number * 7919 % records
            began = process_time_ns()
            path = inclusion_proof(seq, size, prover._read)
            makes.append(process_time_ns() - began)
            began = process_time_ns()
            check_inclusion(seq, size, leaf_hash(lines[seq]), path, root)
            checks.append(process_time_ns() - began)
            largest = max(largest, len(prover.prove(seq, lines[seq], plain=True)))
    return median(makes) / 1e6, median(checks) / 1e6, largest


def peak_kib(run: Path, key: ProjectKey) -> int:
    """Peak resident memory of a process that verifies `run` and nothing else."""
    code = (
        "import sys; from pathlib import Path; from deskcert_ledger import verify_run\n"
        "assert verify_run(Path(sys.argv[1]), pins=[sys.argv[2]]).size > 0\n"
        # getrusage would tell the peak of the process that started this one, if that was larger.
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run), key.vkey], capture_output=True, text=True, check=True)
    return int(done.stdout)


def _bar(title: str, value: float, goal: float, unit: str, *, at_least: bool) -> None:
    met = value >= goal if at_least else value <= goal
    missed = "" if met else f"  missed, by a factor of {max(value, goal) / max(min(value, goal), 1e-9):.2f}"
    print(f"{title:<58} {value:8.3f} {unit:<12} aim {'>=' if at_least else '<='} {goal}{missed}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="a folder on a real file system (default: the checkout)")
    parser.add_argument("--records", type=int, default=120_000, help="of the ledger that is verified")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder or Path(__file__).parent, prefix=".bench-") as temporary:
        folder = Path(temporary)
        key = ProjectKey.load_or_create(folder / "key")
        alone = appends(folder, folder / "key", over_socket=False)
        socket = appends(folder, folder / "key", over_socket=True)
        flying = in_flight(folder, key)
        small, large = folder / "small", folder / "large"
        _filled(small, key, asked.records // 10)
        _filled(large, key, asked.records)
        speed, both = verify(large, key, asked.records)
        make, check, size = proofs(large, asked.records)
        growth = (peak_kib(large, key) - peak_kib(small, key)) / 1024
    print("\nbars")
    _bar("durable append in process, of raw write + fdatasync", alone, 0.9, "", at_least=True)
    _bar("durable append over the socket, of the same", socket, 0.7, "", at_least=True)
    _bar("two writers, 64 in flight, of raw batches of 64", flying, 0.25, "", at_least=True)
    _bar("full verification, one core", speed, 0.8, "L", at_least=True)
    _bar("full verification, two cores", both, 1.5, "L", at_least=True)
    _bar(f"memory, {asked.records // 10} to {asked.records} records", growth, 4, "MiB", at_least=False)
    _bar("inclusion proof, make", make, 0.2, "ms of CPU", at_least=False)
    _bar("inclusion proof, check", check, 0.05, "ms of CPU", at_least=False)
    _bar("inclusion proof, size", size / 1024, 1.5, "KiB", at_least=False)
    return 0 if alone >= 0.3 else 1


if __name__ == "__main__":
    sys.exit(main())
