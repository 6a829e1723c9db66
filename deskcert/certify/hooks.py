"""Brings a user's own application to its starting state: a command, a request, SQL, a Python function.

What fails here is not the agent's fault: it raises `HarnessError`, with the last words of what failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import sqlite3
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from deskcert.certify.env_secrets import EnvSecrets
from deskcert.certify.processes import end_group
from deskcert.certify.questions import Ground, Unknown, python_value, request, rows_of_command
from deskcert_schema.errors import HarnessError

__all__ = ["run_hooks"]

_COMMAND_S: Final = 120.0
_HTTP_S: Final = 30.0
_SQL_S: Final = 30.0
_KEPT: Final = 4_000


async def run_hooks(hooks: Sequence[Mapping[str, Any]], ground: Ground, secrets: EnvSecrets, *, called: str) -> None:
    """One after the other. `hooks` are filled in; `called` is their key, for messages. Raises `HarnessError`."""
    for hook in hooks:
        ((kind, what),) = hook.items()
        try:
            await _run(kind, what, ground)
        except (OSError, ValueError, Unknown, sqlite3.Error, http.client.HTTPException) as exc:
            raise HarnessError(secrets.scrub(f"{called}: {kind}: {exc or type(exc).__name__}")) from None


async def _run(kind: str, what: Any, ground: Ground) -> None:
    match kind:
        case "command":
            await _command(what, ground)
        case "http":
            response = await asyncio.to_thread(request, what, ground.url, method="POST", seconds=_HTTP_S)
            if response.status >= 400:
                raise Unknown(f"the answer was {response.status}: {response.text[:300]}")
        case "sql":
            await asyncio.to_thread(_sql, what, ground)
        case _:
            await asyncio.to_thread(python_value, ground, what, {})


async def _command(words: Sequence[str], ground: Ground) -> None:
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(ground.environment),
        cwd=ground.folder,
        start_new_session=True,
    )
    assert process.stdout is not None
    said = b""
    try:
        async with asyncio.timeout(_COMMAND_S):
            while block := await process.stdout.read(65_536):
                said = (said + block)[-_KEPT:]
            status = await process.wait()
    except TimeoutError:
        raise Unknown(f"{words[0]} did not end within {_COMMAND_S:.0f} s") from None
    finally:
        await asyncio.shield(end_group(process, polite_s=0.0))
    if status != 0:
        last = said.decode(errors="replace").strip().splitlines()[-1:]
        raise Unknown(f"{words[0]} ended with status {status}: {''.join(last)}")


def _sql(script: str, ground: Ground) -> None:
    if ground.sql:
        rows_of_command(ground, script)
        return
    if ground.database is None:
        raise Unknown("the suite names no database for its application")
    if not ground.database.is_file():
        raise Unknown(f"there is no database {ground.database}")
    with contextlib.closing(sqlite3.connect(ground.database, timeout=10.0)) as connection:
        deadline = time.monotonic() + _SQL_S
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        connection.executescript(script)
        connection.commit()
