"""Start and stop: two ports on loopback in one event loop, one line on stdout when both are ready.

`--exit-with-stdin` ends the program when its standard input closes, so that it never outlives who started it. SIGTERM
and SIGINT end it at once, whatever requests are still open: every effect is in the log before it is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import ASGIApp

from deskcert_fixture_app.api import api_routes
from deskcert_fixture_app.control import control_app
from deskcert_fixture_app.effects import EffectLog
from deskcert_fixture_app.faults import FaultPlan
from deskcert_fixture_app.held import held_files
from deskcert_fixture_app.office import Office
from deskcert_fixture_app.pages import page_routes, render
from deskcert_fixture_app.seed import Seed
from deskcert_fixture_app.store import Store
from deskcert_fixture_app.yard import yard_routes

__all__ = ["office_app", "serve"]

HOST = "127.0.0.1"


class _Quiet(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are ours: this server would wait for open requests, and some of ours never end."""
        yield


def office_app(office: Office) -> Starlette:
    async def not_found(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        said = error.detail if isinstance(error, HTTPException) else "There is nothing here."
        return render(office, "missing.html", section="", status=status, said=said)

    static = Mount("/static", held_files())
    routes = [*page_routes(office), *yard_routes(office), *api_routes(office), static]
    return Starlette(routes=routes, exception_handlers={404: not_found})


def _listen(port: int) -> socket.socket:
    listener = socket.create_server((HOST, port))
    listener.setblocking(False)
    return listener


def _server(app: ASGIApp, tls: tuple[Path, Path] | None = None) -> _Quiet:
    certificate, key = tls or (None, None)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="wsproto",
        http="h11",
        loop="asyncio",
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    return _Quiet(config)


def _end_with_stdin() -> None:
    def wait() -> None:
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def serve(*, port: int, db: Path, effects: Path, exit_with_stdin: bool, tls: tuple[Path, Path] | None = None) -> None:
    """`tls`: files of a certificate and its key. Raises `OSError` when the port is taken or a file cannot be opened."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    listener, control = _listen(port), _listen(0)
    scheme = "http" if tls is None else "https"
    office = Office(Store(db), EffectLog(effects), url=f"{scheme}://{HOST}:{listener.getsockname()[1]}")
    office.restart(Seed(), FaultPlan(), 0)
    token = secrets.token_urlsafe(18)
    if exit_with_stdin:
        _end_with_stdin()

    async def main() -> None:
        servers = [(_server(office_app(office), tls), listener), (_server(control_app(office, token)), control)]
        tasks = [asyncio.create_task(server.serve(sockets=[sock])) for server, sock in servers]
        for server, _ in servers:
            await server.ready.wait()
        ready = {"url": office.url, "control": f"http://{HOST}:{control.getsockname()[1]}/{token}"}
        sys.stdout.write(json.dumps(ready) + "\n")
        sys.stdout.flush()
        await asyncio.gather(*tasks)

    asyncio.run(main())
