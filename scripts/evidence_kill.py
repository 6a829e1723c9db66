"""Real SIGKILLs of processes that write a ledger: the writer, the sequencer behind its socket, both, and a recovery.

A writer does what the guard does: intent, durable; then the effect (a line in a file of its own, written before the
result); then the result, durable. What it was told is acknowledged goes through a pipe to the judge. Nothing sleeps:
the moment of the kill is a number of acknowledgements, and within them whatever the scheduler makes of it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from deskcert_ledger import Ack, ProjectKey, RunLedger, SystemClock, recover_run, verify_run
from deskcert_ledger.note import Signer
from deskcert_ledger.socket_client import LedgerClient
from deskcert_ledger.socket_server import LedgerServer, Writable
from deskcert_ledger.store import Disk
from deskcert_schema.errors import LedgerUnavailable
from scripts.evidence_parts import Outcome

__all__ = ["kill_recoveries", "kill_writers"]

KEY = ProjectKey(Signer("deskcert/evidence", bytes(range(32))))
MODES = ("writer", "sequencer", "both", "alone")
"""Who is killed; `alone` is a writer that has its ledger in its own process."""
_KINDS = frozenset({"action.intent", "action.result", "observation"})


def _child(work: Callable[[], None]) -> int:
    """Fork; the child does `work` and is gone, whatever happens."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except LedgerUnavailable:
            os._exit(3)
        except BaseException:
            os._exit(4)
        os._exit(0)
    return pid


def _ledger(folder: Path, disk: Disk | None = None) -> RunLedger:
    return RunLedger.create(
        folder,
        origin="deskcert/evidence/kill",
        start={},
        project_key=KEY,
        clock=SystemClock(),
        rng=os.urandom,
        disk=disk,
    )


def _act(ledger: Writable, told: int, effects: int) -> None:
    """Actions without end; every acknowledgement is told."""
    number = 0
    while True:
        number += 1
        ledger.submit("observation", {"n": number, "text": "x" * (number * 37 % 900)}, ack=Ack.ORDERED)
        seq = ledger.submit("action.intent", {"n": number}).result().seq
        os.write(told, f"intent {seq}\n".encode())
        os.write(effects, f"{number}\n".encode())
        seq = ledger.submit("action.result", {"of": seq, "ok": True, "n": number}).result().seq
        os.write(told, f"result {seq}\n".encode())


def _sequence(folder: Path, ready: int, until: int) -> None:
    with LedgerServer(_ledger(folder), w="guard", kinds=_KINDS) as server:
        os.write(ready, f"{server.path}\n".encode())
        os.read(until, 1)  # end of file: the judge is done with it


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _one(folder: Path, mode: str, acknowledgements: int, found: Counter[str]) -> str | None:
    """Run, kill, recover, judge."""
    folder.mkdir()
    run, effects_file = folder / "run", folder / "effects"
    effects = os.open(effects_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    told_read, told = os.pipe()
    until_read, until = os.pipe()
    server = 0
    if mode == "alone":
        writer = _child(lambda: _act(_ledger(run), told, effects))
    else:
        ready_read, ready = os.pipe()

        def sequence() -> None:
            os.close(until)
            os.close(told)
            _sequence(run, ready, until_read)

        server = _child(sequence)
        os.close(ready)
        path = Path(os.read(ready_read, 4096).decode().strip())
        os.close(ready_read)
        writer = _child(lambda: _act(LedgerClient(path), told, effects))
    os.close(told)
    os.close(effects)
    with os.fdopen(told_read) as lines:
        acknowledged = [lines.readline() for _ in range(acknowledgements)]
        victims = {"alone": [writer], "writer": [writer], "sequencer": [server], "both": [writer, server]}[mode]
        for victim in victims:
            _kill(victim)
        acknowledged += list(lines)
    _, writer_status = os.waitpid(writer, 0)
    os.close(until)
    os.close(until_read)
    if server:
        os.waitpid(server, 0)
        shutil.rmtree(path.parent, ignore_errors=True)
    if mode == "sequencer" and os.waitstatus_to_exitcode(writer_status) != 3:
        return f"a writer without its sequencer ended with {writer_status}, not with a refusal"
    recover_run(run, KEY)
    return _judge(run, [line.split() for line in acknowledged if line.endswith("\n")], effects_file, found)


def _judge(run: Path, acknowledged: list[list[str]], effects: Path, found: Counter[str]) -> str | None:
    records = [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().split(b"\n")[:-1]]
    found["acknowledged_records"] += len(acknowledged)
    if [record["seq"] for record in records] != list(range(len(records))):
        return "the numbers have a gap"
    for kind, seq in acknowledged:
        if int(seq) >= len(records) or records[int(seq)]["kind"] != f"action.{kind}":
            found["lost_records"] += 1
            return f"acknowledged record {seq} is lost"
    intents = {record["seq"]: record for record in records if record["kind"] == "action.intent"}
    done = {int(line) for line in effects.read_text().split()}
    if not done <= {record["n"] for record in intents.values()}:
        found["dispatches_without_intent"] += 1
        return "an effect without its intent"
    results = {record["of"]: record for record in records if record["kind"] == "action.result"}
    if set(intents) - set(results):
        return "an intent without a result"
    unknown = [record for record in results.values() if record["w"] == "recovery"]
    found["intents_made_unknown"] += len(unknown)
    if any((record["delivery"], record["retry"]) != ("unknown", "never_automatic") for record in unknown):
        return "an open intent does not read unknown"
    report = verify_run(run, pins=[KEY.verifier], every_signature=True)
    if report.headline != "interrupted" or report.problems or report.open_intents:
        return f"it reads {report.headline}: {[item.text for item in report.problems]}"
    return None


def kill_writers(seed: str, count: int) -> Outcome:
    """Kill `count` times, the modes in turn."""
    choose, found = Random(seed), Outcome(0)
    counts = Counter(dict.fromkeys(("lost_records", "dispatches_without_intent"), 0))
    with tempfile.TemporaryDirectory(prefix="deskcert-evidence-") as temporary:
        for turn in range(count):
            mode = MODES[turn % len(MODES)]
            folder = Path(temporary) / str(turn)
            wanted = choose.randrange(1, 40)
            try:
                wrong = _one(folder, mode, wanted, counts)
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            if wrong is not None:
                found.failures.append(f"{seed} turn {turn}, {mode} after {wanted}: {wrong}")
            counts[f"killed_{mode}"] += 1
            found.done += 1
            shutil.rmtree(folder)
    found.counts = dict(counts)
    return found


class _Suicide(Disk):
    """Kills its own process at the call with a given number."""

    def __init__(self, at: int) -> None:
        self.left = at

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, fd: int, data: bytes) -> int:
        if self.left == 0 and len(data) > 1:
            super().write(fd, data[: len(data) // 2])  # a write that got half way
        self._count()
        return super().write(fd, data)

    def datasync(self, fd: int) -> None:
        self._count()
        super().datasync(fd)

    def sync(self, fd: int) -> None:
        self._count()
        super().sync(fd)

    def truncate(self, fd: int, size: int) -> None:
        self._count()
        super().truncate(fd, size)

    def rename(self, old: Path, new: Path) -> None:
        self._count()
        super().rename(old, new)


def _crashed(folder: Path, choose: Random) -> int:
    """A run left open, with a torn end, and perhaps a torn note. Returns its number of records."""
    ledger = _ledger(folder)
    for number in range(choose.randrange(1, 5)):
        ledger.append("action.intent", {"n": number})
    ledger.append("action.result", {"of": 1, "ok": True, "n": 0})
    size = ledger.head[0]
    ledger.abandon()
    with (folder / "ledger.jsonl").open("ab") as file:
        file.write(choose.choice([b"", b'{"v":1,"seq"', bytes(700)]))
    with (folder / "checkpoints").open("ab") as file:
        file.write(choose.choice([b"", b"deskcert/evidence/kill\n9\n", bytes(90)]))
    return size


def kill_recoveries(seed: str, count: int) -> Outcome:
    """Kill a recovery at each of its calls in turn, recover again (killed too, now and then), judge the end."""
    choose, found, counts = Random(seed), Outcome(0), Counter({"lost_records": 0})
    with tempfile.TemporaryDirectory(prefix="deskcert-evidence-") as temporary:
        while found.done < count:
            base = Path(temporary) / "base"
            shutil.rmtree(base, ignore_errors=True)
            size = _crashed(base, choose)
            at = 0
            while found.done < count:
                folder = Path(temporary) / "run"
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(base, folder)
                wrong = _interrupted_recovery(folder, at, choose, size, counts)
                if wrong == "":
                    break
                found.done += 1
                if wrong is not None:
                    found.failures.append(f"{seed}, killed at call {at}: {wrong}")
                at += 1
            counts["crashed_runs"] += 1
    found.counts = dict(counts)
    return found


def _interrupted_recovery(folder: Path, at: int, choose: Random, size: int, counts: Counter[str]) -> str | None:
    """None when all is well, "" when the recovery was done before it came to call `at`."""
    for point in (at, *(choose.randrange(20) for _ in range(choose.randrange(3)))):
        pid = _child(lambda point=point: recover_run(folder, KEY, disk=_Suicide(point)) and None)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status == 0 and point == at:
            return ""
        if status not in (0, -signal.SIGKILL):
            return f"a recovery after a killed one failed ({status})"
        counts["killed"] += status != 0
    recover_run(folder, KEY)
    effects = folder / "none"
    effects.write_text("")
    records = [["intent" if seq < size - 1 else "result", str(seq)] for seq in range(1, size)]
    return _judge(folder, records, effects, counts)
