"""Two bodies of evidence about the same requests: the origin server's own log, and the ledger behind the proxy.

Mixed requests go through the real proxy, several at a time: reads, writes, forbidden ones in many forms, some that
nobody can read, some of clients that go away. Now and then one avoids the proxy, and must be found.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import random
import secrets
import socket
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from deskcert_ledger import ProjectKey, RunLedger, SystemClock, openings, read_records
from deskcert_proxy.supervisor import ProxyRun
from scripts.evidence_parts import Outcome, Part

PROXY_GOAL = 10_000
POLICY: dict[str, Any] = {
    "version": 1,
    "network": {
        "hosts": ["127.0.0.1"],
        "writes": [
            {"id": "net-payout", "method": ["POST", "PUT", "PATCH", "DELETE"], "url": "**/api/payouts/**"},
            {"id": "net-mutation", "graphql": {"operation": "mutation", "name": {"glob": "delete*"}}},
            {"id": "net-op", "json": {"pointer": "/op", "equals": "delete"}},
            {"id": "net-logout", "get": "**/logout/**"},
        ],
    },
}
_JSON = {"Content-Type": "application/json"}
type _Seen = tuple[str, str, bool, bool]
"""Method, path, whether it came by the proxy, and whether it was forbidden to."""
type Request = tuple[str, str, bytes, dict[str, str]]


def _mixed(rng: random.Random, number: int) -> Request:
    """One request; its number stands in its path, so that both logs can name it."""
    body = json.dumps({"order": number, "note": "x" * rng.randrange(400)}).encode()
    graphql = json.dumps({"query": f"mutation {{ deleteOrder(id: {number}) {{ id }} }}"}).encode()
    kinds: tuple[Request, ...] = (
        ("GET", f"/orders/{number}", b"", {}),
        ("GET", f"/orders/{number}?page=2", b"", {}),
        ("GET", f"/logout/{number}", b"", {}),
        ("POST", f"/api/orders/{number}", body, _JSON),
        ("PUT", f"/api/orders/{number}", body, _JSON),
        ("DELETE", f"/api/orders/{number}", b"", {}),
        ("POST", f"/api/payouts/{number}", body, _JSON),
        ("POST", f"/api//pay%6futs/{number}", body, _JSON),
        ("POST", f"/api/orders/{number}", b'{"op":"delete"}', _JSON),
        ("POST", f"/api/orders/{number}", b'{"op":"keep","op":"delete"}', _JSON),
        ("POST", f"/api/orders/{number}", gzip.compress(b'{"op":"delete"}'), _JSON | {"Content-Encoding": "gzip"}),
        ("POST", f"/api/orders/{number}", gzip.compress(body), _JSON | {"Content-Encoding": "gzip"}),
        ("POST", f"/graphql/{number}", graphql, _JSON),
        ("POST", f"/api/orders/{number}", body, {"Content-Encoding": "sdch"}),
        ("GET", f"/api/payouts/{number}", b"", {"X-HTTP-Method-Override": "DELETE"}),
        ("POST", f"/api/orders/{number}", b"a=1&b=2", {"Content-Type": "application/x-www-form-urlencoded"}),
    )
    return rng.choice(kinds)


class _Log(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[_Seen]

    def log_message(self, *_: object) -> None:
        pass

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        bad = b'"delete"' in body or any(word in unquote(self.path) for word in ("payouts", "logout", "graphql"))
        self.seen.append((self.command, self.path, "deskcert" in self.headers.get("via", ""), bad))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    do_GET = do_POST = do_PUT = do_DELETE = _any  # noqa: N815


def _send(port: int, url: str, request: Request, *, stay: bool) -> None:
    method, path, body, headers = request
    lines = [f"{method} {url}{path} HTTP/1.1", f"Host: {urlsplit(url).netloc}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall("\r\n".join(lines).encode() + b"\r\nConnection: close\r\n\r\n" + body)
        while stay and client.recv(65536):
            pass


async def _run(seed: str, units: int, folder: Path) -> Outcome:
    rng = random.Random(seed)
    seen: list[_Seen] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Log", (_Log,), {"seen": seen}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    ledger = RunLedger.create(
        folder / "run", origin="deskcert/evidence/proxy", start={}, clock=SystemClock(), rng=secrets.token_bytes,
        project_key=ProjectKey.load_or_create(folder / "key"),
    )  # fmt: skip
    around = 0
    async with await ProxyRun.start(ledger, POLICY, folder=folder / "proxy", environment=dict(os.environ)) as proxy:
        loop, sent = asyncio.get_running_loop(), []
        with ThreadPoolExecutor(8) as clients:
            for number in range(units):
                past = number == units // 2 or rng.random() < 0.002
                around += past
                port = server.server_address[1] if past else proxy.port
                stay = rng.random() > 0.02 or past
                request = _mixed(rng, number)
                sent.append(loop.run_in_executor(clients, partial(_send, port, url, request, stay=stay)))
            await asyncio.gather(*sent)
    server.shutdown()
    server.server_close()
    ledger.seal()
    return _compare(seed, units, seen, around, folder / "run", url)


def _compare(seed: str, units: int, seen: list[_Seen], around: int, run: Path, url: str) -> Outcome:
    opened = openings(run)
    allowed: Counter[tuple[str, str]] = Counter()
    blocked = 0
    for record in read_records(run):
        if record.kind == "net.allowed":
            allowed[record.data["method"], _url_of(record.data, opened).removeprefix(url)] += 1
        blocked += record.kind == "net.blocked"
    by_proxy = Counter((method, path.removeprefix(url)) for method, path, via, _ in seen if via)
    failures = [f"{seed}: {key} reached the server and is not in the ledger" for key in by_proxy - allowed]
    failures += [f"{seed}: {path} is forbidden and reached the server" for _, path, via, bad in seen if via and bad]
    found = sum(not via for _, _, via, _ in seen)
    if found != around:
        failures.append(f"{seed}: {around} requests avoided the proxy, and {found} were found")
    counts = {"arrived": sum(by_proxy.values()), "blocked": blocked, "around_found": found}
    return Outcome(units, counts, failures)


def _url_of(data: dict[str, Any], opened: Any) -> str:
    return next((str(opened[d][1]) for d in data.get("_sd", ()) if d in opened and opened[d][0] == "url"), "")


def proxy(seed: str, units: int) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_run(seed, units, Path(folder)))


PARTS = [Part("proxy_and_server", PROXY_GOAL, 1_000, proxy, workers=1)]
