"""deskcert beside Playwright MCP and agent-browser: the time and the size of a snapshot as an agent gets it, from the
request to the whole answer, and the same traps for all three.

Equal work is checked first: each must name the same buttons and text fields. The two are installed with npm, outside
the checkout. Run it with `make bench`, or by itself with `python -m benchmarks.web_peers [--json FILE] [--only speed]`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final

from benchmarks.peer_probes import PROBES, Pages, probed
from benchmarks.peer_tools import PEERS, Agentic, installed, tools
from deskcert.adapters.web.find_browser import find_browser

ROUNDS: Final = {1_000: 10, 8_000: 5, 20_000: 3}
_ROW: Final = "<tr><td>Order {0}</td><td><input aria-label='Note {0}'><button>Open {0}</button></td></tr>"


def _page(elements: int) -> str:
    # Five elements a row: the row, two cells, two controls.
    rows = "".join(_ROW.format(i) for i in range(elements // 5))
    return f"<!doctype html><meta charset=utf-8><title>Orders</title><table>{rows}</table>"


class _Serving(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = _page(int(self.path.strip("/") or 0)).encode() if self.path.strip("/").isdigit() else b""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


async def speed(three: tuple[Agentic, ...], base: str) -> dict[str, dict[str, dict[str, float]]]:
    """By size of the page and tool: the median in ms, the text in characters, the ratio to deskcert's median."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for size, rounds in ROUNDS.items():
        named = []
        for tool in three:
            await tool.open(f"{base}{size}")
            await tool.snapshot()
            named.append(sorted((role, name) for role, name, _ in tool.controls()))
        assert named[0] == named[1] == named[2], [len(n) for n in named]
        assert len(named[0]) == 2 * (size // 5), len(named[0])
        taken: dict[str, list[int]] = {tool.name: [] for tool in three}
        for i in range(rounds):
            for tool in three[i % 3 :] + three[: i % 3]:
                began = perf_counter_ns()
                await tool.snapshot()
                taken[tool.name].append(perf_counter_ns() - began)
        ours = statistics.median(taken[three[0].name])
        print(f"\nsnapshot of {size} elements ({len(named[0])} controls, the same from all three), {rounds} rounds")
        found[str(size)] = {}
        for tool in three:
            median = statistics.median(taken[tool.name])
            ratio = median / ours
            row = {"ms": round(median / 1e6, 1), "characters": len(tool.text), "times_deskcert": round(ratio, 2)}
            found[str(size)][tool.name] = row
            print(f"  {tool.name:<16} median {row['ms']:9.1f} ms  {ratio:6.2f} x ours  {len(tool.text):8d} characters")
    return found


async def traps(three: tuple[Agentic, ...]) -> dict[str, dict[str, dict[str, Any]]]:
    pages, found = Pages(), dict[str, dict[str, dict[str, Any]]]()
    print("\nthe same traps for all: ✓ right; ○ refused, or not sure; ✗ wrong target, false success or false failure")
    try:
        for number, probe in enumerate(PROBES):
            row = found[f"{number + 1:02d} {probe.name}"] = {}
            print(f"  {probe.name}")
            for tool in three:
                ended = await probed(tool, pages, probe)
                said = " ".join(ended.did.said.split())[:160]
                row[tool.name] = {"sign": ended.sign, "hits": list(ended.hits), "ok": ended.did.ok, "said": said}
                saw = f"page saw {', '.join(ended.hits) or 'nothing'}"
                print(f"    {ended.sign} {tool.name:<15} {ended.seconds:5.1f} s  {saw}; says: {said[:90]}")
    finally:
        pages.close()
    return found


async def measured(only: str | None) -> dict[str, Any]:
    if (missing := await installed()) is not None or shutil.which("node") is None:
        print(f"not measured: {missing or 'node is not installed'}")
        return {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Serving)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    report: dict[str, Any] = {"tools": ["deskcert", *PEERS]}
    async with tools(find_browser()) as three:
        if only in (None, "speed"):
            report["snapshots"] = await speed(three, f"http://127.0.0.1:{server.server_port}/")
        if only in (None, "traps"):
            report["traps"] = await traps(three)
    server.shutdown()
    return report


def main(only: str | None, file: Path | None) -> int:
    report = asyncio.run(measured(only))
    if file is not None:
        file.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    wrong = [name for name, row in report.get("traps", {}).items() if row["deskcert"]["sign"] == "✗"]
    slower = [s for s, row in report.get("snapshots", {}).items() if min(row[n]["times_deskcert"] for n in row) < 1]
    if wrong or slower:
        print(f"\ndeskcert fell for {wrong or 'none'}; it was slower than a peer at {slower or 'no size'}")
    # A false success fails; how a loaded machine divides its time between three tools is printed, not judged.
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("speed", "traps"))
    parser.add_argument("--json", type=Path, metavar="FILE", help="the figures")
    chosen = parser.parse_args()
    sys.exit(main(chosen.only, chosen.json))
