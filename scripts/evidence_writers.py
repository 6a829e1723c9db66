"""Eight processes write one ledger at once, through the socket of a sequencer that is a process of its own.

What is judged: the order is total, the numbers have no gap, every acknowledged record stands where its receipt says,
the ledger verifies. What is measured: the time to a durable acknowledgement. Its 99th percentile within five times the
median is the aim on a machine that does nothing else; a busy one says more about its other work.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from deskcert_ledger import verify_run
from scripts.evidence_parts import ROOT, Outcome, Part, scratch

__all__ = ["PARTS", "WRITERS", "Written", "write_at_once"]

WRITERS = 8
_AIM = 5

_WRITER = """
import json, sys, time
from pathlib import Path
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
_SEQUENCER = "from deskcert.cli.main import main; main()"


@dataclass(frozen=True, slots=True)
class Written:
    counts: tuple[int, ...]
    """Records of each writer."""
    p50_us: int
    p99_us: int
    wrong: str | None


def write_at_once(folder: Path, seconds: float) -> Written:
    """Let the writers write for so long into a ledger in `folder`, then judge it."""
    command = [sys.executable, "-c", _SEQUENCER, "ledger", "serve", "run"]
    sequencer = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert sequencer.stdout is not None
    told = json.loads(sequencer.stdout.readline())
    answers = _together([sys.executable, "-c", _WRITER, told["socket"]], seconds)
    checkpoint = sequencer.communicate()[0]
    taken = sorted(us for _, times in answers for us in times)
    wrong = _judge(folder / "run", told["vkey"], checkpoint, [seqs for seqs, _ in answers])
    return Written(
        tuple(len(seqs) for seqs, _ in answers),
        int(statistics.median(taken)),
        taken[len(taken) * 99 // 100],
        wrong if sequencer.returncode == 0 else f"the sequencer ended with {sequencer.returncode}",
    )


def _together(command: list[str], seconds: float) -> list[tuple[list[int], list[int]]]:
    """Numbers and microseconds of each of the writers, which begin at one moment."""
    pipe = subprocess.PIPE
    writers = [
        subprocess.Popen([*command, str(number), str(seconds)], stdin=pipe, stdout=pipe, text=True, cwd=ROOT)
        for number in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    return [json.loads(writer.communicate()[0]) for writer in writers]


def _judge(run: Path, vkey: str, checkpoint: str, receipts: list[list[int]]) -> str | None:
    lines = [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().split(b"\n")[:-1]]
    if [line["seq"] for line in lines] != list(range(len(lines))):
        return "the numbers have a gap"
    if sorted(seq for seqs in receipts for seq in seqs) != list(range(1, len(lines) - 1)):
        return "two writers were told one number, or a record nobody was told of stands in the ledger"
    for number, seqs in enumerate(receipts):
        told = [(number, turn) for turn in range(len(seqs))]
        if [(lines[seq]["by"], lines[seq]["turn"]) for seq in seqs] != told:
            return f"what writer {number} was told does not stand where it was told"
    report = verify_run(run, pins=[vkey], every_signature=True)
    if (report.headline, report.checkpoint) != ("complete", checkpoint):
        return f"the ledger reads {report.headline}"
    return None


def write_for(seed: str, seconds: int) -> Outcome:
    """One go. Nothing in it is drawn."""
    with tempfile.TemporaryDirectory(prefix="writers-", dir=scratch()) as temporary:
        written = write_at_once(Path(temporary), seconds)
    counts = {
        "writers": WRITERS,
        "records": sum(written.counts),
        "least_of_a_writer": min(written.counts),
        "most_of_a_writer": max(written.counts),
        "p50_us": written.p50_us,
        "p99_us": written.p99_us,
        "p99_in_percent_of_p50": written.p99_us * 100 // max(written.p50_us, 1),
        "p99_within_aim": int(written.p99_us <= _AIM * written.p50_us),
    }
    print(f"{seconds} s: {counts}")
    return Outcome(seconds, counts, [] if written.wrong is None else [f"{seed}: {written.wrong}"])


PARTS = [Part("eight_processes", goal=60, task=60, work=write_for, workers=1)]
