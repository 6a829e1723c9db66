"""Every parser of the ledger, fuzzed with coverage guidance: a minute each, fourteen minutes together.

A unit is a second. Memory is bounded by libFuzzer's own limit; one that grows past it is a failure like any other.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zlib
from functools import partial
from pathlib import Path

from scripts.evidence_parts import ROOT, Outcome, Part
from scripts.fuzz_ledger import TARGETS, write_samples

__all__ = ["PARTS", "fuzz"]

_MEMORY_MIB = 512
_MAX_INPUT = 60_000
_EXECUTED = re.compile(rb"stat::number_of_executed_units:\s+(\d+)")
_PEAK = re.compile(rb"stat::peak_rss_mb:\s+(\d+)")
_COVERED = re.compile(rb"cov: (\d+)")


def fuzz(target: str, seed: str, seconds: int) -> Outcome:
    """One target for that long, from fresh samples."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_samples(folder)
        corpus = folder / "found"
        corpus.mkdir()
        options = [
            f"-max_total_time={seconds}",
            f"-rss_limit_mb={_MEMORY_MIB}",
            f"-max_len={_MAX_INPUT}",
            "-timeout=20",
            f"-seed={zlib.crc32(seed.encode()) or 1}",
            f"-artifact_prefix={folder}/",
            "-print_final_stats=1",
            str(corpus),
            str(folder / target),
        ]
        command = [sys.executable, "-m", "scripts.fuzz_ledger", target, str(folder), *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=seconds * 4 + 300)
        executed, peak = _EXECUTED.search(done.stderr), _PEAK.search(done.stderr)
        covered = [int(found) for found in _COVERED.findall(done.stderr)]
        outcome = Outcome(seconds, {"inputs": int(executed[1]) if executed else 0})
        outcome.counts["max_peak_mib"] = int(peak[1]) if peak else 0
        outcome.counts["max_branches_reached"] = max(covered, default=0)
        if done.returncode != 0 or executed is None:
            kept = [
                path.read_bytes().hex()[:4000]
                for path in folder.iterdir()
                if path.name.startswith(("crash", "oom", "timeout", "slow"))
            ]
            outcome.failures.append(f"{target}: {done.stderr[-1500:].decode(errors='replace')} input {kept}")
        return outcome


PARTS = [Part(target, 60, 60, partial(fuzz, target), workers=1) for target in TARGETS]
