"""Starts the application under test as a program, and talks to its control port.

One process a run: its database and its effect log lie in the run's folder, so that the log of a run holds this run's
effects and nothing else, also after a `kill -9`. The next one can be started while a run is still going on.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from deskcert.certify.forks import Forks, Program, start_program
from deskcert.certify.oracle import OracleAnswers, ask
from deskcert.certify.processes import child_environment
from deskcert_schema.errors import HarnessError

__all__ = ["Application", "NotUnderstood", "Perturbed"]

_READY_S = 20.0
_CALL_S = 10.0
_END_S = 3.0


@dataclass(frozen=True, slots=True)
class Perturbed:
    applied: bool
    why: str | None = None


class NotUnderstood(HarnessError):
    """The application does not know such a page, fault, datum or perturbation; the message says what it knows."""


class Application:
    """A running application under test. Make it with `start`, end it with `close`."""

    def __init__(self, process: Program, folder: Path, url: str, control: str, forks: Forks | None) -> None:
        self._process, self._forks = process, forks
        self.folder, self.url, self.control = folder, url, control

    @property
    def database(self) -> Path:
        return self.folder / "app.sqlite"

    @property
    def effects(self) -> Path:
        return self.folder / "effects.jsonl"

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    @classmethod
    async def start(
        cls, folder: Path, *, token: str, tls: tuple[Path, Path] | None = None, forks: Forks | None = None
    ) -> Application:
        """`folder` exists. `tls`: files of a certificate and its key, for HTTPS. `forks`: to start it, and its oracle,
        sooner. Raises `HarnessError` when it does not say that it is ready within 20 s."""
        arguments = ["--port", "0", "--db", "app.sqlite", "--effects", "effects.jsonl", "--exit-with-stdin"]
        if tls is not None:
            arguments += ["--tls-cert", str(tls[0].resolve()), "--tls-key", str(tls[1].resolve())]
        with (folder / "log.txt").open("wb") as log:
            process = await start_program(
                forks,
                "deskcert_fixture_app",
                *arguments,
                cwd=folder,
                env=child_environment(token),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log.fileno(),
            )
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), _READY_S)
            ready = json.loads(line)
            return cls(process, folder, str(ready["url"]), str(ready["control"]), forks)
        except (TimeoutError, ValueError, KeyError, TypeError) as exc:
            await _end(process)
            raise HarnessError(
                f"the application under test did not start ({type(exc).__name__}); its output is in {folder}/log.txt"
            ) from exc
        except asyncio.CancelledError:
            await _end(process)
            raise

    async def prepare(self, start: Mapping[str, Any], *, seed: int) -> str:
        """Reset data and faults; returns the absolute URL to begin at. Raises `NotUnderstood`, `HarnessError`."""
        wanted = {
            "page": start["page"],
            "seed": start.get("seed", {}),
            "faults": start.get("faults", []),
            "random_seed": seed,
        }
        answer = await self._call("POST", "/start", wanted)
        if not isinstance(answer.get("url"), str):
            raise NotUnderstood(str(answer.get("error", answer)))
        return str(answer["url"])

    async def perturb(self, do: str, args: Mapping[str, Any]) -> Perturbed:
        answer = await self._call("POST", "/perturb", {"do": do, "args": dict(args)})
        if "error" in answer:
            raise NotUnderstood(str(answer["error"]))
        why = answer.get("why")
        return Perturbed(answer.get("applied") is True, str(why) if why else None)

    async def health(self) -> Mapping[str, Any]:
        return await self._call("GET", "/health", None)

    async def effect_kinds(self) -> tuple[str, ...]:
        """What its log can hold."""
        return tuple(str(kind) for kind in (await self.health()).get("kinds", ()))

    async def quiet(self, longest_s: float) -> None:
        """Wait until the server has no request in hand, so that an effect on its way is not read as one that never
        came. Faults that hang for ever stay in hand: hence a limit."""
        deadline = asyncio.get_running_loop().time() + longest_s
        while asyncio.get_running_loop().time() < deadline:
            if not (await self.health()).get("pending"):
                return
            await asyncio.sleep(0.05)

    async def _call(self, method: str, path: str, body: object) -> Mapping[str, Any]:
        try:
            return await asyncio.to_thread(_request, method, self.control + path, body)
        except (OSError, ValueError, http.client.HTTPException) as exc:
            raise HarnessError(f"the application under test did not answer {method} {path}: {exc}") from exc

    async def ask(self, items: Sequence[Mapping[str, Any]], *, token: str) -> OracleAnswers:
        return await ask(items, self.database, self.effects, token=token, forks=self._forks)

    async def close(self) -> None:
        await _end(self._process)


def _request(method: str, url: str, body: object) -> Mapping[str, Any]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=_CALL_S)
    try:
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, parts.path, data, {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    if not isinstance(answer, dict):
        raise ValueError("the answer is not an object")  # noqa: TRY004 - untrusted bytes, not a caller's type
    return answer


async def _end(process: Program) -> None:
    """Close its standard input, which is its sign to end; kill it when it does not."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _END_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
