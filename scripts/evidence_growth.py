"""How memory grows with a ledger: writing, recovering and verifying ten times as many records again and again.

Each measurement is a process of its own, and its peak is what the system says of it (`VmHWM`). Ten million records are
5 GB of disk and some ten minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.evidence_parts import ROOT, Outcome, Part, scratch

__all__ = ["PARTS", "grow"]

_AIM_KIB = 4096
_SIZES = (100_000, 1_000_000, 10_000_000)

_HEAD = """
import os, sys
from collections import deque
from hashlib import sha256
from pathlib import Path
from deskcert_ledger import ProjectKey, RunLedger, SystemClock, recover_run, verify_run
folder, count = Path(sys.argv[1]), int(sys.argv[2])
key = ProjectKey.load_or_create(folder / "key")
def told():
    print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
_WRITE = """
ledger = RunLedger.create(folder / "run", origin="deskcert/growth/1", start={}, project_key=key, clock=SystemClock(),
                          rng=os.urandom)
flying = deque()
for number in range(1, count - 2):
    kind = ("action.result", "observation", "action.intent")[number % 3]
    payload = {"of": number - 1, "ok": True, "digest": sha256(b"%d" % number).hexdigest(), "note": "x" * 300}
    flying.append(ledger.submit(kind, payload))
    if len(flying) >= 512:
        flying.popleft().result()
ledger.append("run.end", {"outcome": "finished"})
ledger.abandon()
told()
"""
_RECOVER = """
recover_run(folder / "run", key)
told()
"""
_VERIFY = """
report = verify_run(folder / "run", pins=[key.vkey])
assert report.size >= count - 1 and report.headline in ("complete", "interrupted"), report.headline
told()
"""


def _peak(code: str, folder: Path, count: int) -> int:
    command = [sys.executable, "-c", _HEAD + code, str(folder), str(count)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)


def grow(seed: str, largest: int) -> Outcome:
    """Peaks, KiB, at each size up to `largest`. Nothing in it is drawn."""
    counts: dict[str, int] = {}
    for size in (size for size in _SIZES if size <= largest):
        with tempfile.TemporaryDirectory(prefix="growth-", dir=scratch()) as temporary:
            for name, code in (("write", _WRITE), ("recover", _RECOVER), ("verify", _VERIFY)):
                counts[f"{name}_{size}_kib"] = _peak(code, Path(temporary), size)
                print(f"{name}, {size} records: {counts[f'{name}_{size}_kib']} KiB", flush=True)
    failures = []
    for name in ("write", "recover", "verify"):
        peaks = [counts[f"{name}_{size}_kib"] for size in _SIZES if size <= largest]
        counts[f"{name}_growth_kib"] = peaks[-1] - peaks[0]
        if peaks[-1] - peaks[0] > _AIM_KIB:
            failures.append(f"{seed}: to {name} {largest} records takes {peaks[-1] - peaks[0]} KiB more than 100000")
    return Outcome(largest, counts, failures)


PARTS = [Part("growth", goal=_SIZES[-1], task=_SIZES[-1], work=grow, workers=1)]
