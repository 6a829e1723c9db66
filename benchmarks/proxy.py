"""A request through the second line against the same request through plain mitmproxy, 8 at once, p50.

Both proxies run as programs of their own, in front of the same server; 8 clients ask one and then the other, batch by
batch, in alternating order. Equal work is checked: the server got every request from both, and every write is in the
ledger. Run it with `make bench`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from multiprocessing import Process, Queue, Value
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

from deskcert_ledger import ProjectKey, RunLedger, SystemClock, read_records
from deskcert_proxy.supervisor import ProxyRun

AT_ONCE = 8
ROUNDS = 25
BATCHES = 6
WARM = 10
POLICY = {
    "version": 1,
    "network": {
        "hosts": ["127.0.0.1"],
        "writes": [
            {"id": "net-payout", "method": ["POST", "PUT", "PATCH", "DELETE"], "url": "**/api/payouts/**"},
            {"id": "net-mutation", "graphql": {"operation": "mutation", "name": {"glob": "delete*"}}},
            {"id": "net-op", "json": {"pointer": "/op", "equals": "delete"}},
        ],
    },
}
_PLAIN = """
import asyncio, sys
from mitmproxy.options import Options
from mitmproxy.tools.dump import DumpMaster
class Tell:
    def running(self): print(master.addons.get("proxyserver").listen_addrs()[0][1], flush=True)
async def main():
    global master
    options = Options(listen_host="127.0.0.1", listen_port=0, confdir=sys.argv[1])
    master = DumpMaster(options, with_termlog=False, with_dumper=False)  # as `mitmdump -q`
    master.addons.add(Tell())
    await master.run()
asyncio.run(main())
"""


class _Answer(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while line := self.rfile.readline():
            length = 0
            while (header := self.rfile.readline()) not in (b"\r\n", b""):
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            self.rfile.read(length)
            with self.server.hits.get_lock():  # type: ignore[attr-defined]
                self.server.hits.value += 1  # type: ignore[attr-defined]
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Type: text/plain\r\n\r\n1")
            del line


def _serve(listener: socket.socket, hits: Synchronized[int]) -> None:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Answer, bind_and_activate=False)
    server.daemon_threads = True
    server.socket = listener
    server.hits = hits  # type: ignore[attr-defined]
    server.serve_forever()


def _ask(client: socket.socket, data: bytes) -> int:
    began = perf_counter_ns()
    client.sendall(data)
    answer = b""
    while b"\r\n\r\n1" not in answer:
        more = client.recv(4096)
        assert more, answer
        answer += more
    took = perf_counter_ns() - began
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
    return took


def _client(port: int, data: bytes, rounds: int, times: list[int], start: threading.Barrier) -> None:
    with socket.create_connection(("127.0.0.1", port)) as client:
        start.wait()
        times += [_ask(client, data) for _ in range(rounds + WARM)][WARM:]


def _batch(port: int, data: bytes, rounds: int) -> list[int]:
    times: list[int] = []
    start = threading.Barrier(AT_ONCE)
    threads = [threading.Thread(target=_client, args=(port, data, rounds, times, start)) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(times) == rounds * AT_ONCE
    return times


def _measure(ports: tuple[int, int], data: bytes, rounds: int, out: Any) -> None:
    """In a process of its own: the clients must not take turns with the ledger."""
    times: tuple[list[int], list[int]] = ([], [])
    for number in range(BATCHES):
        for which in (0, 1) if number % 2 else (1, 0):
            times[which].extend(_batch(ports[which], data, rounds))
    out.put((median(times[0]) / 1e6, median(times[1]) / 1e6))


def _measured(ports: tuple[int, int], data: bytes, rounds: int) -> tuple[float, float]:
    out: Any = Queue()
    process = Process(target=_measure, args=(ports, data, rounds, out))
    process.start()
    found: tuple[float, float] = out.get(timeout=300)
    process.join()
    return found


def _start_plain(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", _PLAIN, str(folder / "ca")], stdout=subprocess.PIPE, text=True)


async def _main(folder: Path, rounds: int) -> bool:
    hits: Synchronized[int] = Value("q", 0)
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    server = Process(target=_serve, args=(listener, hits), daemon=True)
    server.start()
    ledger = RunLedger.create(
        folder / "run",
        origin="deskcert/bench/proxy",
        start={},
        project_key=ProjectKey.load_or_create(folder / "key"),
        clock=SystemClock(),
        rng=os.urandom,
    )
    plain = _start_plain(folder)
    assert plain.stdout is not None
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    host = f"Host: {url[7:]}\r\n"
    body = b'{"order":1001,"note":"' + secrets.token_hex(100).encode() + b'"}'
    write = f"POST {url}/api/orders/1001 HTTP/1.1\r\n{host}Content-Type: application/json\r\n"
    write += f"Content-Length: {len(body)}\r\n\r\n"
    met = True
    try:
        async with await ProxyRun.start(ledger, POLICY, folder=folder / "proxy") as proxy:
            ports = (proxy.port, int(plain.stdout.readline()))
            for name, data, aim in (
                ("read", f"GET {url}/orders HTTP/1.1\r\n{host}\r\n".encode(), 1.25),
                ("recorded write", write.encode() + body, 2.0),
            ):
                before = hits.value
                ours, theirs = await asyncio.to_thread(_measured, ports, data, rounds)
                assert hits.value - before == 2 * BATCHES * AT_ONCE * (rounds + WARM)
                ratio = ours / theirs
                met = met and ratio <= aim
                print(f"{name}, {AT_ONCE} at once: deskcert {ours:.2f} ms, plain mitmproxy {theirs:.2f} ms, "
                      f"ratio {ratio:.2f} (aim <= {aim})")  # fmt: skip
    finally:
        plain.kill()
        plain.wait()
        server.kill()
    ledger.seal()
    allowed = [r.data["class"] for r in read_records(folder / "run") if r.kind == "net.allowed"]
    assert allowed.count("write") == allowed.count("read") == BATCHES * AT_ONCE * (rounds + WARM)
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, help="where the ledger is written")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        asyncio.run(_main(Path(folder), options.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
