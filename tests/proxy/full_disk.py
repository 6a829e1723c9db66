"""Run inside a mount namespace: a ledger on a small file system, a proxy, and writes until it is full and beyond.

`python full_disk.py SMALL`: prints one JSON line with what the clients were told, what the origin got, and what the
ledger holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path

from proxy_rig import POLICY, Origin, make_ledger, request_bytes, send_raw

from deskcert_proxy.supervisor import ProxyRun

JSON = [("Content-Type", "application/json")]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


async def main(small: Path) -> None:
    ledger, origin = make_ledger(small), Origin()
    filler = (small / "filler").open("wb", buffering=0)
    statuses: list[int] = []
    async with await ProxyRun.start(ledger, POLICY, folder=small / "proxy") as proxy:

        async def post(path: str) -> int:
            data = request_bytes("POST", origin.url + path, b'{"a":1}', JSON)
            return (await asyncio.to_thread(send_raw, proxy.port, data)).status

        assert await post("/api/orders/first") == 200
        with contextlib.suppress(OSError):
            while True:
                filler.write(b"x" * 512)
        for one in LETTERS:
            for two in LETTERS:
                statuses.append(await post(f"/api/orders/{one}{two}"))
                if statuses[-5:] == [403] * 5:
                    break
            if statuses[-5:] == [403] * 5:
                break
        forbidden = await post("/api/payouts/now")
        filler.close()
        (small / "filler").unlink()
        later = await post("/api/orders/later")
    # Whole lines only: the last one may be torn, which recovery cuts off.
    lines = (small / "run" / "ledger.jsonl").read_bytes().split(b"\n")[:-1]
    records = [record for record in map(json.loads, lines) if record["kind"] == "net.allowed"]
    told = {
        "statuses": statuses,
        "forbidden": forbidden,
        "later": later,
        "poisoned": ledger.poisoned,
        "arrived": [hit.path for hit in origin.hits],
        "recorded": [r["url_class"].partition(origin.url)[2] for r in records],
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
