"""Durable appends against raw `write` + `fdatasync` of the same bytes on the same file system, and a full verify.

Equal work is checked: the raw file ends with the same number of bytes in lines as the ledger wrote, and the ledger
verifies afterwards. Run it with `make bench`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import tempfile
from pathlib import Path
from time import process_time_ns

from benchmarks.pairs import alternate, show
from deskcert_ledger import ProjectKey, RunLedger, SystemClock, read_records, verify_run

APPENDS = 1_000
WARM = 50
PAYLOAD = {"of": 7, "ok": True, "delivery": "delivered_unverified", "retry": "unsafe", "note": "x" * 380}


async def appends(folder: Path) -> float:
    key = ProjectKey.load_or_create(folder / "key")
    ledger = RunLedger.create(
        folder / "run",
        origin="deskcert/bench/appends",
        start={},
        project_key=key,
        clock=SystemClock(),
        rng=secrets.token_bytes,
    )
    first = ledger.append("agent.event", PAYLOAD).seq
    line = (folder / "run" / "ledger.jsonl").read_bytes().splitlines(keepends=True)[first]
    raw = os.open(folder / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def ours(_: int) -> None:
        ledger.append("agent.event", PAYLOAD)

    async def theirs(_: int) -> None:
        os.write(raw, line)
        os.fdatasync(raw)

    pair = await alternate(ours, theirs, pairs=APPENDS, warm=WARM)
    os.close(raw)
    ledger.seal()
    written = [record for record in read_records(folder / "run") if record.kind == "agent.event"]
    assert len(written) == APPENDS + WARM + 1
    assert (folder / "raw").stat().st_size == (APPENDS + WARM) * len(line)
    show(
        f"one durable record of {len(line)} bytes",
        ("deskcert: append, signed note included", "raw: write + fdatasync"),
        pair,
        aim="<= 1.11 (0.9 of raw)",
    )
    began = process_time_ns()
    report = verify_run(folder / "run", pins=[key.vkey])
    took = (process_time_ns() - began) / 1e9
    assert report.size == APPENDS + WARM + 2, report
    print(f"  verify of these {report.size} records, each under its own note: {took * 1000:.0f} ms of CPU time")
    return pair.ratio


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="a folder on a real file system (default: the checkout)")
    chosen = parser.parse_args().folder
    with tempfile.TemporaryDirectory(dir=chosen or Path(__file__).parent, prefix=".bench-") as temporary:
        sys.exit(0 if asyncio.run(appends(Path(temporary))) <= 3 else 1)
