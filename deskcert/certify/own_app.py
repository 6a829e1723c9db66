"""Starts a user's own application for one run, waits until it can be used, brings it to its starting state, and ends it
with everything that it started, whatever happens.

Each run has a process, a port and a folder of its own, where the address has a `{port}`. Where it has none there is one
application for all runs: it is started, or just asked, when its run begins and not ahead of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from deskcert.certify.app_spec import AppSpec, Place, hooks_of
from deskcert.certify.env_secrets import EnvSecrets, StreamScrubber
from deskcert.certify.fixture import NotUnderstood, Perturbed
from deskcert.certify.hooks import run_hooks
from deskcert.certify.kept import Kept
from deskcert.certify.oracle import OracleAnswers, ask_about
from deskcert.certify.processes import child_environment, sweep
from deskcert.certify.questions import Ground, request
from deskcert_schema.errors import HarnessError

__all__ = ["OwnApplication"]

_POLITE_S: Final = 3.0
_EVERY_S: Final = 0.05
_MOST_LOG: Final = 4 * 1024 * 1024


class OwnApplication:
    """Make it with `start`, end it with `close`. Log of its output: `log.txt` in its folder, without secrets."""

    def __init__(self, spec: AppSpec, folder: Path, secrets: EnvSecrets, *, token: str) -> None:
        self._spec, self.folder, self._secrets = spec, folder.resolve(), secrets
        # Not the run's token: the agent's is swept away before the oracle looks.
        self._token = f"{token}.app-{folder.name}"
        self._process: Kept | None = None
        self._pump: asyncio.Task[None] | None = None
        self._seen = asyncio.Event()
        self._begun = False
        port = None if spec.shared else _free_port()
        address = spec.url if port is None else spec.url.replace("{port}", str(port))
        self._place = Place(self.folder, spec.suite, port, secrets.fill(address))

    @property
    def url(self) -> str:
        """Its origin."""
        parts = urlsplit(self._place.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def alive(self) -> bool:
        return self._process is None or not self._process.gone

    @classmethod
    async def start(cls, spec: AppSpec, folder: Path, *, token: str, secrets: EnvSecrets) -> OwnApplication:
        """`folder` exists. Raises `HarnessError` when it is not ready in time; then nothing of it is left."""
        application = cls(spec, folder, secrets, token=token)
        if not spec.shared:
            await application._begin()
        return application

    async def _begin(self) -> None:
        self._begun = True
        try:
            if self._spec.command:
                await self._launch()
            await self._until_ready()
        except BaseException:
            await asyncio.shield(self.close())
            raise

    async def _launch(self) -> None:
        if self._spec.shared and await self._answers():
            raise HarnessError(
                f"something answers at {self._told(self._place.url)} before the application was started; end it, or"
                " write {port} into the command and the url, so that each run has its own"
            )
        await run_hooks(self._filled(self._spec.setup), self._ground(), self._secrets, called="setup")
        await self._spawn(self._spec.command)

    async def _spawn(self, command: Sequence[str]) -> None:
        """Raises `HarnessError`."""
        words = self._filled(command)
        try:
            self._process = await Kept.start(
                words,
                cwd=self.folder,
                env=self._environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
        except (OSError, ValueError) as exc:
            raise HarnessError(f"the application could not be started: {self._told(str(exc))}") from exc
        self._pump = asyncio.create_task(self._keep_output(self._process))

    async def _until_ready(self) -> None:
        try:
            async with asyncio.timeout(self._spec.ready.seconds):
                while not await self._ready():
                    if not self.alive:
                        raise HarnessError(f"the application ended before it was ready{self._last_words()}")
                    await asyncio.sleep(_EVERY_S)
        except TimeoutError:
            raise HarnessError(
                f"the application was not ready within {self._spec.ready.seconds} s ({self._waited_for()})"
                + self._last_words()
            ) from None

    async def _ready(self) -> bool:
        ready = self._spec.ready
        if ready.output is not None:
            return self._seen.is_set()
        return await self._listens() if ready.port else await self._answers()

    async def _answers(self) -> bool:
        wanted = self._filled(self._spec.ready.http or self._place.url)
        with contextlib.suppress(Exception):  # whatever goes wrong, it is not ready
            return (await asyncio.to_thread(request, wanted, self._place.url, seconds=2.0)).status < 500
        return False

    async def _listens(self) -> bool:
        parts = urlsplit(self._place.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with contextlib.suppress(OSError):
            _, writer = await asyncio.wait_for(asyncio.open_connection(parts.hostname, port), 2.0)
            writer.close()
            return True
        return False

    def _waited_for(self) -> str:
        ready = self._spec.ready
        if ready.output is not None:
            return f"waited for a line with {ready.output!r}"
        if ready.port:
            return "waited for its port"
        return f"waited for an answer from {self._told(self._filled(ready.http or self._place.url))}"

    async def prepare(self, start: Mapping[str, Any], *, seed: int) -> str:
        """The suite's reset, then the scenario's. Returns the absolute URL to begin at. Raises `HarnessError`."""
        del seed  # what it is good for, the hooks would have to say
        if not self._begun:
            await self._begin()
        ground = self._ground()
        await run_hooks(self._filled(self._spec.reset), ground, self._secrets, called="reset")
        await run_hooks(self._filled(hooks_of(start.get("reset"))), ground, self._secrets, called="start.reset")
        if "url" in start:
            return str(self._filled(start["url"]))
        return self._place.url.rstrip("/") + str(self._filled(start["page"]))

    async def perturb(self, do: str, args: Mapping[str, Any]) -> Perturbed:
        del args
        raise NotUnderstood(f"{do}: only deskcert's own application can be changed in the middle of an action")

    async def quiet(self, longest_s: float) -> None:
        """It cannot be asked whether it has work in hand, so it is given time."""
        await asyncio.sleep(min(longest_s, self._spec.settle_ms / 1000))

    async def ask(self, items: Sequence[Mapping[str, Any]], *, token: str) -> OracleAnswers:
        filled = [self._place.fill(dict(item)) for item in items]
        return await ask_about(filled, self._ground(), None, token=token, secrets=self._secrets)

    async def close(self) -> None:
        """Ask it to end, then end it and whatever it started. Again: nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        await process.end(polite_s=_POLITE_S, ask=signal.SIGTERM)
        await sweep(self._token)
        if self._pump is not None:
            await asyncio.wait({self._pump}, timeout=2.0)
            self._pump.cancel()
        process.close()

    async def _keep_output(self, process: Kept) -> None:
        """Read to the end, keep the first 4 MiB, without secrets."""
        assert process.stdout is not None
        scrubber, wanted = StreamScrubber(self._secrets), (self._spec.ready.output or "").encode()
        kept, tail = 0, b""
        with (self.folder / "log.txt").open("ab", buffering=0) as log:
            while block := await process.stdout.read(65_536):
                if wanted and not self._seen.is_set():
                    tail += block
                    if wanted in tail:
                        self._seen.set()
                    tail = tail[-len(wanted) :]
                clean = scrubber.feed(block)
                if kept < _MOST_LOG:
                    kept += log.write(clean[: _MOST_LOG - kept])
            log.write(scrubber.rest())

    def _last_words(self) -> str:
        try:
            lines = (self.folder / "log.txt").read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return f"; its last words: {lines[-1][:300]}" if lines else "; it said nothing"

    def _environment(self) -> dict[str, str]:
        told: dict[str, str] = self._filled(dict(self._spec.environment))
        return child_environment(self._token) | told

    def _ground(self) -> Ground:
        spec = self._spec
        database = None if spec.database is None else spec.within(self._filled(spec.database), self.folder)
        files = self.folder if spec.files is None else spec.within(self._filled(spec.files), self.folder)
        return Ground(
            database,
            files,
            self._place.url,
            str(self.folder),
            str(spec.suite),
            self._filled(spec.sql),
            self._environment(),
        )

    def _filled(self, value: Any) -> Any:
        return self._secrets.fill(self._place.fill(value))

    def _told(self, text: str) -> str:
        told: str = self._secrets.scrub(text)
        return told


_GIVEN: Final[set[int]] = set()


def _free_port() -> int:
    """One that nobody listens on now, and that no other run of this process was given."""
    while True:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = int(found.getsockname()[1])
        if port not in _GIVEN:
            _GIVEN.add(port)
            return port
