"""The program that is started: it keeps the window's process, and answers the control port while the window hangs.

The control port is the web application's (`control.py`): `/start`, `/perturb`, `/health`, `/stop` below a random token.
The window is a process of its own, so that it can be stopped, killed and started again with the same title.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from deskcert_fixture_app.desktop.words import PAGES, PERTURBATIONS, parse_faults
from deskcert_fixture_app.effects import KINDS, EffectLog
from deskcert_fixture_app.faults import BadPlan
from deskcert_fixture_app.perturb import check_perturbation
from deskcert_fixture_app.seed import Seed, parse_seed
from deskcert_fixture_app.store import Store

__all__ = ["URL", "Supervisor", "serve"]

NAME = "larkfield-desk"
URL = f"desktop://{NAME}/"
_ANSWER_S = 8.0
_KNOWN = {"page", "seed", "faults", "random_seed"}


class Supervisor:
    def __init__(self, db: Path, effects: Path) -> None:
        self._db, self._effects = db, effects
        self._store, self._log = Store(db), EffectLog(effects)
        self._store.reset(Seed(), 0)
        self._log.restart()
        self._start: Mapping[str, Any] = {"page": "orders", "faults": []}
        self._window = self._open()
        self._stopped = False

    def _open(self) -> subprocess.Popen[str]:
        window = subprocess.Popen(
            [sys.executable, "-m", "deskcert_fixture_app.desktop.window", str(self._db), str(self._effects)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert window.stdout is not None
        if window.stdout.readline().strip() != "ready":
            window.kill()
            raise OSError("the window did not open; is there a display?")
        return window

    def tell(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """An order to the window, and its answer."""
        assert self._window.stdin is not None
        assert self._window.stdout is not None
        try:
            self._window.stdin.write(json.dumps(order) + "\n")
            self._window.stdin.flush()
            if not select.select([self._window.stdout], [], [], _ANSWER_S)[0]:
                return {"applied": False, "why": "the window does not answer"}
            answer = json.loads(self._window.stdout.readline() or "null")
        except (OSError, ValueError):
            answer = None
        return answer if isinstance(answer, dict) else {"applied": False, "why": "the window has ended"}

    def start(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if set(body) - _KNOWN:
            raise BadPlan(f"start takes {', '.join(sorted(_KNOWN))}")
        page = str(body.get("page", "/orders")).strip("/")
        if page not in PAGES:
            raise BadPlan(f"page is /{page}; the desktop application has /{', /'.join(PAGES)}")
        parse_faults(body.get("faults", []))
        self._store.reset(parse_seed(body.get("seed", {})), int(body.get("random_seed", 0)))
        self._log.restart()
        self._start = {"page": page, "faults": body.get("faults", [])}
        if self._stopped:
            self.kill()
        if self._window.poll() is not None:
            self._window = self._open()
        self.tell({"do": "start", **self._start})
        return {"url": URL}

    def perturb(self, body: Mapping[str, Any]) -> dict[str, Any]:
        do, args = check_perturbation(body.get("do"), body.get("args", {}), PERTURBATIONS)
        match do:
            case "hang":
                self._window.send_signal(signal.SIGSTOP)
                self._stopped = True
                return {"applied": True}
            case "restart":
                self.kill()
                self._window = self._open()
                self.tell({"do": "start", **self._start})
                return {"applied": True}
            case _:
                return self.tell({"do": do, "args": dict(args)})

    def pending(self) -> int:
        """Effects that are on their way. A window that is stopped or has ended brings none any more."""
        if self._stopped or self._window.poll() is not None:
            return 0
        return int(self.tell({"do": "pending"}).get("pending", 0))

    def kill(self) -> None:
        self._window.kill()
        self._window.wait()
        self._stopped = False


def _handler(supervisor: Supervisor, token: str) -> type[BaseHTTPRequestHandler]:
    class Control(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != f"/{token}/health":
                self._answer(404, {"error": "there is nothing here"})
                return
            self._answer(200, {"ok": True, "effects": "enabled", "pending": supervisor.pending(), "kinds": list(KINDS)})

        def do_POST(self) -> None:
            does = {f"/{token}/start": supervisor.start, f"/{token}/perturb": supervisor.perturb}
            if self.path == f"/{token}/stop":
                self._answer(200, {"ok": True})
                _end(supervisor)
            if self.path not in does:
                self._answer(404, {"error": "there is nothing here"})
                return
            try:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                if not isinstance(body, dict):
                    raise BadPlan("the body must be an object")
                answer = does[self.path](body)
            except ValueError as error:  # a `BadPlan` too
                self._answer(400, {"error": str(error)})
            else:
                self._answer(200, answer)

        def _answer(self, status: int, told: Mapping[str, Any]) -> None:
            data = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            del format, args

    return Control


def _end(supervisor: Supervisor) -> None:
    supervisor.kill()
    os._exit(0)


def serve(*, db: Path, effects: Path, exit_with_stdin: bool) -> None:
    """Raises `OSError` when a file cannot be opened or the window does not open."""
    supervisor = Supervisor(db, effects)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _end(supervisor))
    token = secrets.token_urlsafe(18)
    # One thread, which is the program's first: the kernel ends the window with the thread that started it.
    server = HTTPServer(("127.0.0.1", 0), _handler(supervisor, token))
    if exit_with_stdin:

        def wait() -> None:
            while os.read(0, 4096):
                pass
            _end(supervisor)

        threading.Thread(target=wait, daemon=True).start()
    ready = {"url": URL, "control": f"http://127.0.0.1:{server.server_port}/{token}"}
    sys.stdout.write(json.dumps(ready) + "\n")
    sys.stdout.flush()
    server.serve_forever()
