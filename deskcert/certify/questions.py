"""What an oracle can be asked about a user's own application, beside the database file: HTTP, a command that speaks
SQL, a Python function. Runs in the oracle's process; reads, and is trusted not to write.

An answer that could not be had raises `Unknown`: missing evidence is never "did not happen".
"""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urljoin, urlsplit

from deskcert.certify.call import CallFailed, call

__all__ = ["Ground", "Response", "Unknown", "at_pointer", "python_value", "request", "rows_of_command"]

HTTP_S: Final = 5.0
COMMAND_S: Final = 10.0
PYTHON_S: Final = 10.0
_MOST_BYTES: Final = 4 * 1024 * 1024
_MOST_ROWS: Final = 21
_OWN: Final = frozenset(("127.0.0.1", "::1", "localhost"))


class Unknown(Exception):
    """The question has no answer; the text says why."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where an oracle looks. Texts are filled in already."""

    database: Path | None
    files: Path
    url: str = ""
    folder: str = ""
    suite: str = ""
    sql: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of the commands and functions that it starts."""

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Ground:
        database = raw.get("database")
        return cls(
            None if database is None else Path(database),
            Path(raw["files"]),
            raw.get("url", ""),
            raw.get("folder", ""),
            raw.get("suite", ""),
            raw.get("sql", ()),
            raw.get("environment", {}),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "database": None if self.database is None else str(self.database),
            "files": str(self.files),
            "url": self.url,
            "folder": self.folder,
            "suite": self.suite,
            "sql": list(self.sql),
            "environment": dict(self.environment),
        }


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")


def request(wanted: str | Mapping[str, Any], base: str, *, method: str = "GET", seconds: float = HTTP_S) -> Response:
    """`wanted`: an address, absolute or from `base` on, or `{method, url, headers, body}`. Redirections are answers
    too and are not followed; no proxy is asked. Raises `OSError`, `ValueError`, `http.client.HTTPException`."""
    told: Mapping[str, Any] = {"url": wanted} if isinstance(wanted, str) else wanted
    parts = urlsplit(urljoin(base, str(told["url"])))
    if parts.scheme not in ("http", "https") or parts.hostname is None:
        raise ValueError(f"{told['url']} is no http address")
    headers = {str(k): str(v) for k, v in told.get("headers", {}).items()}
    body = told.get("body")
    if body is not None and not isinstance(body, str):
        body = json.dumps(body)
        headers.setdefault("Content-Type", "application/json")
    connection = _connection(parts, seconds)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(
            str(told.get("method", method)), target, None if body is None else body.encode(), headers=headers
        )
        answer = connection.getresponse()
        return Response(answer.status, answer.read(_MOST_BYTES))
    finally:
        connection.close()


def _connection(parts: SplitResult, seconds: float) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=seconds)
    context = ssl.create_default_context()
    if host in _OWN:  # a certificate of the run's own, and nobody in between
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(host, parts.port, timeout=seconds, context=context)


def at_pointer(response: Response, pointer: str) -> Any:
    """RFC 6901, into a body of JSON. None where nothing stands there."""
    try:
        value = json.loads(response.body)
    except ValueError:
        raise Unknown("the answer is no JSON, so nothing can be pointed at") from None
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, ValueError, TypeError):
            return None
    return value


def rows_of_command(ground: Ground, query: str) -> list[list[str]]:
    """What the command prints: a row a line, cells parted by tabs."""
    asked = any("{query}" in word for word in ground.sql)
    command = [word.replace("{query}", query) for word in ground.sql]
    try:
        done = subprocess.run(
            command,
            input=None if asked else query.encode(),
            stdin=subprocess.DEVNULL if asked else None,
            capture_output=True,
            timeout=COMMAND_S,
            check=False,
            env=dict(ground.environment),
            cwd=ground.folder,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise Unknown(f"the sql command failed: {exc}") from exc
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Unknown(f"the sql command ended with status {done.returncode}: {''.join(last)}")
    lines = done.stdout.decode(errors="replace").splitlines()
    return [line.split("\t") for line in lines[:_MOST_ROWS]]


def python_value(ground: Ground, callable_: str, args: Mapping[str, Any]) -> Any:
    database = None if ground.database is None else str(ground.database)
    app = {"url": ground.url, "folder": ground.folder, "suite": ground.suite, "database": database}
    try:
        return call(callable_, app=app, args=args, seconds=PYTHON_S, environment=ground.environment)
    except CallFailed as exc:
        raise Unknown(str(exc)) from exc
