"""A small server whose own log is the witness, and helpers to find what a test addresses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from deskcert.adapters.base import Action, Dispatch, Handle, Live, ObserveOptions, RawObservation
from deskcert.adapters.web.adapter import WebAdapter
from deskcert.contract.evidence import Evidence

CLICK = Action("click")
ENTER = Action("press", key="Enter")
SPACE = Action("press", key="Space")


class Witness:
    """Serves `pages` and writes down every request that arrives. `release` ends the requests that hang."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.headers: dict[str, dict[str, str]] = {}
        """By path, beside those of every answer."""
        self.log: list[tuple[str, str, str]] = []
        self.release = threading.Event()
        self._arrived = threading.Condition()
        witness = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _note(self, body: str = "") -> None:
                with witness._arrived:
                    witness.log.append((self.command, self.path, body))
                    witness._arrived.notify_all()

            def _answer(self, status: int, text: str) -> None:
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(data)))
                for name, value in witness.headers.get(self.path.partition("?")[0], {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def _served(self, body: str = "") -> None:
                path = self.path.partition("?")[0]
                if path != "/favicon.ico":
                    self._note(body)
                if path.startswith("/hang"):
                    witness.release.wait(20)
                    self.close_connection = True
                    if path not in witness.pages:
                        return
                if path == "/none":
                    self.send_response(204)
                    self.end_headers()
                    return
                page = witness.pages.get(path)
                self._answer(200 if page is not None else 404, page or "nothing here")

            def do_GET(self) -> None:
                self._served()

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self._served(self.rfile.read(length).decode())

            do_DELETE = do_POST  # noqa: N815
            do_PUT = do_POST  # noqa: N815

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def wrote(self, *, path: str = "") -> list[tuple[str, str, str]]:
        """What arrived, other than page loads."""
        return [entry for entry in self.log if entry[0] != "GET" and path in entry[1]]

    def wait_for(self, seen: Callable[[list[tuple[str, str, str]]], bool]) -> bool:
        with self._arrived:
            return self._arrived.wait_for(lambda: seen(self.log), 10)

    def close(self) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


async def nowhere(point: str) -> None:
    """A hook that does nothing."""


async def show(adapter: WebAdapter, witness: Witness, body: str, *, path: str = "/page") -> RawObservation:
    """Loads a page with this body and observes it."""
    witness.pages[path] = f"<!doctype html><title>page</title><body>{body}"
    found = await adapter.navigate(witness.url + path, number=1, budget_ms=10_000, at=nowhere)
    assert found.committed is not None, found
    return await adapter.observe(ObserveOptions())


def find(seen: RawObservation, *, name: str | None = None, role: str | None = None, id: str | None = None) -> Handle:  # noqa: A002
    """The one node with this name, role or id."""
    hits = [
        n
        for n in seen.nodes
        if (name is None or n.get("name") == name)
        and (role is None or n["role"] == role)
        and (id is None or n.get("native_id", {}).get("value") == id)
    ]
    assert len(hits) == 1, (name, role, id, hits)
    return Handle(seen.window.document, hits[0]["node"])


async def look(adapter: WebAdapter, handle: Handle, action: Action = CLICK) -> Evidence:
    probed = await adapter.probe(handle, action, budget_ms=5_000)
    assert isinstance(probed, Live), probed
    return probed.evidence


async def act(adapter: WebAdapter, handle: Handle, action: Action = CLICK, *, number: int = 7) -> Dispatch:
    """Probe, then perform on exactly that evidence."""
    expected = await look(adapter, handle, action)
    return await adapter.perform(handle, action, expected, number=number, budget_ms=5_000, at=nowhere)


async def script(adapter: WebAdapter, text: str) -> Any:
    """Runs a script in the page's own world, as the page could."""
    return await adapter._page.evaluate(text)
