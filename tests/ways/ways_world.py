"""A guarded session over the simulator, with a real ledger, reached in every way; and the real application, for tests
that need a browser."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deskcert.adapters.simulator import Element, Simulator, World
from deskcert.session.lease import Lease
from deskcert.ways.guarding import Gate
from deskcert.ways.mcp.server import make_server
from deskcert.ways.opening import Opened, Wanted, offered, open_on
from deskcert_ledger import read_records

DESKCERT = str(Path(sys.executable).with_name("deskcert"))
POLICY: Mapping[str, Any] = {
    "version": 1,
    "deny": [{"id": "no-delete", "name": "Delete account", "reason": "irreversible"}],
}


def orders() -> World:
    rows = [Element(f"n{i}", f"order-{i}", "button", "Approve", context=(("row", f"Order {i}"),)) for i in (1001, 1002)]
    field = Element("n3", "note", "textbox", "Note", editable=True, value="kept privately")
    return World([*rows, field, Element("n5", "account", "button", "Delete account")])


@dataclass
class Simulated:
    world: World
    opened: Opened

    def server(self) -> Any:
        return make_server(Gate(self.opened.handle), self.opened.about, offered())

    def delivered(self) -> list[Any]:
        """The truth: everything that reached the application."""
        return list(self.world.delivered)

    def kinds(self) -> list[str]:
        return [r.kind for r in read_records(self.opened.folder)]


@asynccontextmanager
async def simulated(folder: Path, way: str = "mcp-http", *, base: Path | None = None) -> AsyncIterator[Simulated]:
    world = orders()
    wanted = Wanted(
        url="http://127.0.0.1:1/orders", policy=POLICY, way=way, out=folder, base=base or folder, timeout_ms=0
    )
    opened = await open_on(Simulator(world), wanted, lease=Lease(), custody="owned", browser=None)
    try:
        yield Simulated(world, opened)
    finally:
        await opened.close()


def ref_of(envelope: Mapping[str, Any], name: str, context: str = "") -> str:
    """The ref of the element with this name (in this context) in a snapshot's answer."""
    found = [
        node["ref_id"]
        for node in walk(envelope["data"]["tree"])
        if node.get("name") == name and "ref_id" in node and context in str(node.get("context", ""))
    ]
    assert found, f"no {name!r} in the snapshot"
    return str(found[0])


def walk(node: Any) -> Iterator[dict[str, Any]]:
    for one in node if isinstance(node, list) else [node]:
        yield one
        yield from walk(one.get("children", []))


@dataclass
class Application:
    """The application under test, as a program."""

    control: str
    effects_file: Path

    def start(self, page: str = "/orders", **seed: Any) -> str:
        body = {"page": page, "seed": {"orders": 12} | seed, "faults": [], "random_seed": 1}
        request = urllib.request.Request(
            f"{self.control}/start", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return str(json.load(answer)["url"])

    async def committed(self, number: int) -> list[dict[str, Any]]:
        """All effects, once there are `number` of them: a page sends its request in its own time. At most 10 s."""
        deadline = time.monotonic() + 10
        while len(self.effects()) < number and time.monotonic() < deadline:  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.01)
        return self.effects()

    def effects(self) -> list[dict[str, Any]]:
        if not self.effects_file.exists():
            return []
        return [json.loads(line) for line in self.effects_file.read_text().splitlines()]


@contextmanager
def application(folder: Path) -> Iterator[Application]:
    arguments = ["--port", "0", "--db", str(folder / "app.sqlite"), "--effects", str(folder / "effects.jsonl")]
    process = subprocess.Popen(
        [sys.executable, "-m", "deskcert_fixture_app", *arguments, "--exit-with-stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Application(json.loads(process.stdout.readline())["control"], folder / "effects.jsonl")
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


def verified_word(run: Path, base: Path) -> str:
    """The headline of `deskcert ledger verify`, run as a program in the project's folder."""
    done = subprocess.run(
        [DESKCERT, "ledger", "verify", "--json", str(run)], cwd=base, capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout)
    report = found[0] if isinstance(found, list) else found
    return str(report.get("headline", report))
