"""Questions about a user's application, asked of real servers, files, commands and functions."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deskcert.certify import questions
from deskcert.certify.env_secrets import EnvSecrets, StreamScrubber
from deskcert.certify.oracle import answer, ask_about
from deskcert.certify.questions import Ground

ROWS = "import sys; print({}.get(sys.argv[-1] if len(sys.argv) > 1 else sys.stdin.read(), ''))"
ANSWERS = {"count": "2", "rows": "1\topen\n2\tclosed", "nothing": ""}
CHECKS = """
import os, subprocess, time
def two(app, **given): return 2
def given(app, name): return [name, app.url, app.database]
def hangs(app):
    subprocess.Popen(["sleep", "600"], env={"MARK": "%s"})
    time.sleep(600)
def leaves(app): os._exit(0)
def huge(app): return "x" * 1_000_000
def odd(app): return object()
"""


class Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"a": {"b/c": [1, "two", None]}, "n": 3, "key": self.headers.get("X-Key")}).encode()
        self.send_response(302 if self.path == "/moved" else 200)
        self.send_header("Location", "/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    mark = f"mark-{os.getpid()}-{tmp_path.name}"
    (tmp_path / "checks.py").write_text(CHECKS % mark)
    yield Ground(
        tmp_path / "x.sqlite",
        tmp_path,
        f"http://127.0.0.1:{server.server_port}/",
        str(tmp_path),
        str(tmp_path),
        (sys.executable, "-c", ROWS.format(ANSWERS), "{query}"),
        dict(os.environ),
    )
    server.shutdown()
    server.server_close()


def holds(ground: Ground, *items: dict[str, Any]) -> list[bool | None]:
    return [answer(item, ground, None).holds for item in items]


def test_a_command_answers_in_rows_of_text(ground: Ground) -> None:
    assert holds(
        ground,
        {"sql": "count", "equals": 2},
        {"sql": "count", "equals": "2"},
        {"sql": "count", "times": 2},
        {"sql": "count", "times": 1},
        {"sql": "rows", "equals": [[1, "open"], [2, "closed"]]},
        {"sql": "nothing", "equals": [[""]]},
    ) == [True, True, True, False, True, False]


def test_a_command_that_fails_establishes_nothing(ground: Ground) -> None:
    broken = Ground(None, ground.files, folder=ground.folder, sql=("false",))
    missing = Ground(None, ground.files, folder=ground.folder, sql=("no-such-program",))
    assert holds(broken, {"sql": "count", "times": 0}) == holds(missing, {"sql": "count", "times": 0}) == [None]


def test_http_is_asked_for_status_pointer_and_text(ground: Ground) -> None:
    assert holds(
        ground,
        {"http": "/x", "status": 200, "pointer": "/a/b~1c/1", "equals": "two"},
        {"http": "/x", "pointer": "/a/b~1c/7", "equals": None},
        {"http": "/x", "pointer": "/n", "times": 3},
        {"http": "/x", "pointer": "/n", "times": 0},
        {"http": {"url": "/x", "headers": {"X-Key": "k"}}, "contains": '"key": "k"'},
        {"http": "/moved", "status": 302},
        {"http": "http://127.0.0.1:9/", "status": 200},
        {"http": "file:///etc/hostname", "status": 200},
    ) == [True, True, True, False, True, True, None, None]


def test_functions_are_called_and_counted(ground: Ground) -> None:
    told = ["x", ground.url, str(ground.database)]
    assert holds(
        ground,
        {"python": "checks:two", "times": 2},
        {"python": "checks.py:two", "equals": 2},
        {"python": "checks:two"},
        {"python": "checks:given", "args": {"name": "x"}, "equals": told},
        {"python": "checks:leaves"},
        {"python": "checks:huge"},
        {"python": "checks:odd"},
        {"python": "checks:given", "args": {"nam": "x"}},
    ) == [True, True, False, True, None, None, None, None]


def test_a_function_that_hangs_is_ended_with_what_it_started(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "PYTHON_S", 1.0)
    told = answer({"python": "checks:hangs"}, ground, None)
    assert (told.holds, told.observed) == (None, {"unknown": "checks:hangs did not return within 1 s"})
    mark = (Path(ground.folder) / "checks.py").read_text().split('"MARK": "')[1].split('"')[0]
    assert [place for place in Path("/proc").glob("[0-9]*/environ") if f"MARK={mark}".encode() in content(place)] == []


def content(place: Path) -> bytes:
    try:
        return place.read_bytes()
    except OSError:  # ended meanwhile, or somebody else's
        return b""


async def test_what_is_observed_holds_no_secret(ground: Ground) -> None:
    secrets = EnvSecrets({"KEY": "s3cr3t"})
    item = {"http": {"url": "/x", "headers": {"X-Key": "${ENV:KEY}"}}, "pointer": "/key", "equals": "${ENV:KEY}"}
    (told,) = (await ask_about([item], ground, None, token="t", secrets=secrets)).answers
    assert told.holds is True
    assert told.observed == {"status": 200, "value": "${ENV:KEY}"}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_a_secret_is_found_however_a_stream_is_cut(size: int) -> None:
    content = "aäs3cr3t s3cr3s3cr3t s3cr3t\xff end s3cr".encode("latin-1")
    scrubber = StreamScrubber(EnvSecrets({"KEY": "s3cr3t", "LONG": "s3cr3t s3cr3t"}))
    parts = [scrubber.feed(content[i : i + size]) for i in range(0, len(content), size)]
    clean = b"".join([*parts, scrubber.rest()])
    assert b"s3cr3t" not in clean
    assert clean.startswith(b"a\xe4${ENV:")
    assert clean.endswith(b"\xff end s3cr")
