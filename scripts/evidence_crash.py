"""Crash states, by the hundred thousand: record what a run does to its disk, crash anywhere, recover, judge.

Each state is judged by the ledger's own recovery and verification, on a folder in memory: nothing acknowledged is lost,
every intent has a result or gets the result `unknown`, a crash is never taken for tampering, and what is recovered
verifies. A third of the states are crashes of a recovery: of a crashed state, recovered and crashed again.

Making the certificate takes longer than all the rest, and crashes in it are in the traces anyway: the recovery of one
state in ten makes one.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import shake_256
from pathlib import Path
from random import Random
from typing import Any

from deskcert_ledger import Ack, Blob, ProjectKey, RunLedger, Secret, checkpoint, note, run, verify_run
from deskcert_ledger.notary import Following
from deskcert_ledger.note import Signer, Verifier
from deskcert_ledger.recovery import Outcome as Recovery
from deskcert_ledger.recovery import recover_open, recover_run
from deskcert_schema.errors import DeskcertError
from scripts.evidence_memory import MemoryFiles, folder_of, look_into_memory
from scripts.evidence_parts import Outcome
from scripts.evidence_trace import Trace, TracingDisk, crash_state

__all__ = ["crash_states", "judge", "record_run"]

KEY = ProjectKey(Signer("deskcert/evidence", bytes(range(32))))
STATES_A_TRACE = 250
SHARED_MEMORY = next((path for path in ("/dev/shm",) if Path(path).is_dir()), None)
"""Where there is no disk to wait for; a trace is recorded there, and the model says what a crash leaves of it."""
_NEWLINE = b"\n"


class Clock:
    """Now and then a second passes, and `checkpoint` is written anew."""

    def __init__(self, choose: Random | None = None) -> None:
        self.us, self.choose = 0, choose

    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC) + timedelta(microseconds=self.us)

    def monotonic_us(self) -> int:
        self.us += 1_000_000 if self.choose is not None and self.choose.random() < 0.1 else 100
        return self.us


class Draws:
    def __init__(self, seed: str) -> None:
        self.seed, self.calls = seed, 0

    def __call__(self, count: int) -> bytes:
        self.calls += 1
        return shake_256(f"{self.seed}/{self.calls}".encode()).digest(count)


def remember() -> None:
    """Parsing a note, checking a signature, making one: twice gives one answer, and most of the time would go there."""
    if hasattr(checkpoint.parse_checkpoint, "cache_info"):
        return
    look_into_memory()
    modules: Any = (checkpoint, note)
    modules[0].parse_checkpoint = lru_cache(maxsize=4096)(checkpoint.parse_checkpoint)
    modules[1].key_id = lru_cache(maxsize=4096)(note.key_id)
    accepts, line_of = Verifier.accepts, Signer.signature_line
    signers: dict[Verifier, Signer] = {}

    @lru_cache(maxsize=4096)
    def accepted(verifier: Verifier, message: bytes, signature: bytes) -> bool:
        return accepts(verifier, message, signature)

    @lru_cache(maxsize=4096)
    def line(verifier: Verifier, text: str) -> str:
        return line_of(signers[verifier], text)

    def signature_line(self: Signer, text: str) -> str:
        signers.clear()
        signers[self.verifier] = self
        return line(self.verifier, text)

    Verifier.accepts = accepted  # type: ignore[method-assign]
    Signer.signature_line = signature_line  # type: ignore[method-assign]


class _Run:
    """A short run with what runs have: secrets, blobs, records of many pages, both acknowledgements.

    Two threads take part in a run, the one that commits and the one that writes the notes. Here one thread plays both:
    at any call to the disk the other may do a piece of its work. That way a seed gives one trace.
    """

    def __init__(self, choose: Random, ledger: RunLedger, disk: TracingDisk) -> None:
        self.choose, self.ledger, self.disk = choose, ledger, disk
        self.opened: list[int] = []
        self.number = 0
        self.signing = self.within = False

    def act(self) -> None:
        choose, number, opened = self.choose, self.number, self.opened
        self.number += 1
        text = "x" * choose.choice((0, 10, 300, 900, 4000))
        what = choose.random()
        if what < 0.4 or not opened:
            payload = {"action": number, "args": {"value": Secret(text[:20])}, "a": text, "b": text}
            receipt = self.ledger.append("action.intent", payload)
            opened.append(receipt.seq)
        elif what < 0.75:
            of = opened.pop(choose.randrange(len(opened)))
            receipt = self.ledger.append("action.result", {"of": of, "ok": True, "n": number, "a": text})
        else:
            tree = Blob({"nodes": [text]}) if choose.random() < 0.4 else text
            ack = choose.choice((Ack.ORDERED, Ack.ORDERED, Ack.DURABLE))
            receipt = self.ledger.append("observation", {"n": number, "tree": tree}, ack=ack)
            if ack is Ack.ORDERED:
                return  # numbered only: it may be lost
        self.disk.acknowledged(receipt.seq)

    def sign(self) -> None:
        self.signing = True
        self.ledger.follow()
        self.signing = False

    def meanwhile(self) -> None:
        """The disk is about to be called: now and then the other thread gets there first."""
        if self.within or self.choose.random() > 0.15:
            return
        self.within = True
        if self.signing:
            self.act()
        else:
            self.ledger.follow()
        self.within = False

    def play(self) -> None:
        self.disk.meanwhile = self.meanwhile
        for _ in range(self.choose.randint(2, 8)):
            self.act()
            if self.choose.random() < 0.6:
                self.sign()
        self.disk.meanwhile = lambda: None

    def end(self) -> None:
        ending = self.choose.random()
        if ending < 0.5:
            for of in self.opened if ending < 0.4 else ():
                self.disk.acknowledged(self.ledger.append("action.result", {"of": of, "ok": True}).seq)
            self.disk.acknowledged(self.ledger.append("run.end", {"outcome": "finished"}).seq)
        if ending < 0.4:
            self.ledger.seal()
        else:
            self.ledger.abandon()


def record_run(choose: Random, seed: str) -> Trace:
    """What a short run does to its disk."""
    trace = Trace()
    with tempfile.TemporaryDirectory(prefix="deskcert-evidence-", dir=SHARED_MEMORY) as temporary:
        folder = Path(temporary) / "run"
        disk = TracingDisk(folder, trace)
        ledger = RunLedger.create(
            folder,
            origin=f"deskcert/evidence/{choose.randrange(1000)}",
            start={"run": "r", "note": "s" * choose.choice((0, 700, 4000))},
            project_key=KEY,
            clock=Clock(choose),
            rng=Draws(seed),
            disk=disk,
            following=Following.BY_HAND,
        )
        disk.acknowledged(0)
        run = _Run(choose, ledger, disk)
        run.play()
        run.end()
    return trace


def record_recovery(state: dict[str, bytes], acknowledged: list[int], seed: str) -> Trace | None:
    """What the recovery of a crashed state does to its disk."""
    trace = Trace(begin=dict(state))
    with tempfile.TemporaryDirectory(prefix="deskcert-evidence-", dir=SHARED_MEMORY) as temporary:
        folder = Path(temporary)
        for name, data in state.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
        disk = TracingDisk(folder, trace)
        for seq in acknowledged:
            disk.acknowledged(seq)
        try:
            recover_run(folder, KEY, clock=Clock(), rng=Draws(f"{seed}/recovery"), disk=disk)
        except DeskcertError:
            return None
        finally:
            shutil.rmtree(folder / "torn", ignore_errors=True)
    return trace


def _records(ledger: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in ledger.split(_NEWLINE)[:-1]]


def _no_certificate(*_: object) -> dict[str, bytes]:
    return {}


def judge(
    state: dict[str, bytes], acknowledged: list[bytes], counts: Counter[str], *, certify: bool = True
) -> str | None:
    """None when recovery and verification treat `state` as they promise; else what is wrong.

    `acknowledged`: the lines a caller was told are durable, in order, from the first on.
    """
    remember()
    files = dict(state)
    promised = b"".join(line + _NEWLINE for line in acknowledged)
    if not files.get("ledger.jsonl", b"").startswith(promised):
        return "the model lost what was synced: the trace is not what the code does"
    if acknowledged:
        before = verify_run(folder_of(files), pins=[KEY.verifier])
        counts[f"before_{before.headline.partition('(')[0]}"] += 1
        if before.headline == "tampered":
            return f"verify takes a crash for tampering: {before.problems[0].text}"
    module: Any = run
    make = module.certify_run
    module.certify_run = make if certify else _no_certificate
    try:
        done = recover_open(folder_of(files), MemoryFiles(files), KEY, Clock(), Draws("second"))
    finally:
        module.certify_run = make
    counts[f"recovery_{done.outcome.value}"] += 1
    if done.outcome is Recovery.EMPTY:
        return "recovery found nothing, and a record was acknowledged" if acknowledged else None
    ledger = files["ledger.jsonl"]
    if not ledger.startswith(promised):
        return "an acknowledged record is lost"
    records = _records(ledger)
    if [record["seq"] for record in records] != list(range(len(records))):
        return "the numbers have a gap"
    results = {record["of"]: record for record in records if record["kind"] == "action.result"}
    for record in records:
        if record["kind"] == "action.intent":
            result = results.get(record["seq"])
            if result is None:
                return f"intent {record['seq']} has no result"
            if result["w"] == "recovery":
                counts["intents_made_unknown"] += 1
                if (result["delivery"], result["retry"]) != ("unknown", "never_automatic"):
                    return f"open intent {record['seq']} does not read unknown"
    after = verify_run(folder_of(files), pins=[KEY.verifier])
    expected = {"interrupted"} if done.outcome is Recovery.RECOVERED else {"interrupted", "complete"}
    if after.headline not in expected or after.problems or after.open_intents:
        return f"what was recovered reads {after.headline}: {[item.text for item in after.problems]}"
    return None


def _lines(trace: Trace) -> list[bytes]:
    written = trace.begin.get("ledger.jsonl", b"") + b"".join(
        step.data for step in trace.steps if step.what == "write" and step.name == "ledger.jsonl"
    )
    return written.split(_NEWLINE)[:-1]


def _one(
    trace: Trace, lines: list[bytes], choose: Random, found: Outcome, name: str
) -> tuple[dict[str, bytes], list[int]]:
    end = choose.randint(0, len(trace.steps))
    state, seqs = crash_state(trace, end, choose)
    counts: Counter[str] = Counter()
    try:
        wrong = judge(state, lines[: max(seqs) + 1] if seqs else [], counts, certify=found.done % 10 == 0)
    except DeskcertError as error:
        wrong = f"{type(error).__name__}: {error}"
    except Exception as error:
        wrong = f"not a documented error, {type(error).__name__}: {error}"
    found.done += 1
    counts["acknowledged_records"] += max(seqs) + 1 if seqs else 0
    counts["lost_records"] += int(wrong == "an acknowledged record is lost")
    for key, count in counts.items():
        found.counts[key] = found.counts.get(key, 0) + count
    if wrong is not None:
        found.failures.append(f"{name}, after step {end}: {wrong}")
    return state, seqs


def crash_states(seed: str, count: int) -> Outcome:
    """Judge `count` states."""
    remember()
    found = Outcome(0)
    number = 0
    while found.done < count:
        name = f"{seed}/{number}"
        choose = Random(name)
        trace = record_run(choose, name)
        lines = _lines(trace)
        share = min(STATES_A_TRACE, count - found.done)
        last: tuple[dict[str, bytes], list[int]] = ({}, [])
        for _ in range(share * 2 // 3 + 1):
            state = _one(trace, lines, choose, found, name)
            last = state if state[1] else last
        recovery = record_recovery(*last, name) if last[1] else None
        if recovery is not None:
            for _ in range(min(share // 3, count - found.done)):
                _one(recovery, _lines(recovery), choose, found, f"{name}/recovery")
                found.counts["states_of_a_recovery"] = found.counts.get("states_of_a_recovery", 0) + 1
        number += 1
        found.counts["traces"] = found.counts.get("traces", 0) + 1 + (recovery is not None)
    return found
