"""The proxy of one run, as a child process, seen from the runner.

    async with await ProxyRun.start(ledger, policy, folder=…, environment=…) as proxy:
        context = await browser.new_context(proxy={"server": proxy.server})
        await proxy.prove(page_write, origins, "start")
        …
        await proxy.prove(page_write, origins, "end")

The ledger's sequencer stays in this process; the child reaches it through a socket. Nothing is restarted: a proxy that
died leaves the browser without a network, `component.lost` in the ledger, and `lost` with the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from deskcert_ledger.socket_server import Complete, LedgerServer, Writable
from deskcert_proxy.authority import Authority
from deskcert_proxy.canary import Canaries, ProxyBlind
from deskcert_proxy.ready import prove_ready
from deskcert_proxy.rules import compile_network
from deskcert_proxy.scribe import KINDS
from deskcert_schema.errors import HarnessError

__all__ = ["PageWrite", "ProxyBlind", "ProxyRun"]

_START_S: Final = 20.0
_STOP_S: Final = 5.0

type PageWrite = Callable[[str], Awaitable[None]]
"""Make the page send a POST to this URL, whatever comes of it."""


class ProxyRun:
    """`lost` is the reason when the proxy is gone; `on_lost` is told once."""

    def __init__(
        self, process: asyncio.subprocess.Process, server: LedgerServer, canaries: Canaries, *, port: int, spki: str
    ) -> None:
        self._process, self._server, self._canaries = process, server, canaries
        self.port, self.spki, self.pid = port, spki, process.pid
        self.lost: str | None = None
        self.on_lost: Callable[[str], None] | None = None
        self._stopping = False
        self._watch = asyncio.create_task(self._watched())

    @property
    def server(self) -> str:
        """For Chromium's `--proxy-server`, or a Playwright context's `proxy`."""
        return f"http://127.0.0.1:{self.port}"

    @classmethod
    async def start(
        cls,
        ledger: Writable,
        policy: Mapping[str, Any],
        *,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        complete: Complete | None = None,
        upstream: str | None = None,
        tape: Path | None = None,
        beat_ms: int = 2000,
        insecure: bool = False,
        trust: Path | None = None,
        authority: Authority | None = None,
        listen: str = "127.0.0.1:0",
    ) -> Self:
        """Returns when the port was shown to be ours. `folder` gets the authority and the proxy's own messages.
        `authority`: one that a browser trusts already; else a fresh one. `trust`: as `serve` has it.
        Raises `ConfigError` (the policy's network section), `HarnessError` (it did not start)."""
        compile_network(policy)
        _make(folder)
        if authority is not None:
            authority.write(folder / "authority")
        canaries = Canaries()
        server = LedgerServer(ledger, w="proxy", kinds=KINDS, complete=canaries.seen_by(complete))
        secret = secrets.token_bytes(32)
        told = {
            "policy": policy, "socket": str(server.path), "secret": secret.hex(), "confdir": str(folder / "authority"),
            "listen": listen, "upstream": upstream, "tape": None if tape is None else str(tape), "beat_ms": beat_ms,
            "insecure": insecure, "trust": None if trust is None else str(trust),
        }  # fmt: skip
        process = None
        try:
            process = await _spawn(folder / "proxy.log", environment)
            ready = await _handshake(process, told, folder / "proxy.log")
            await prove_ready(ready["port"], secret)
        except BaseException:
            if process is not None:
                await _end(process)
            server.close()
            raise
        return cls(process, server, canaries, port=ready["port"], spki=ready["spki"])

    async def prove(self, write: PageWrite, origins: Sequence[str], phase: str) -> None:
        """A harmless forbidden write from the page to each origin must come to the proxy and be blocked there; only
        the proxy's own record of it counts. Raises `ProxyBlind`."""
        if self.lost is not None:
            raise HarnessError(self.lost)
        await self._canaries.prove(write, origins, phase)

    async def _watched(self) -> None:
        await self._process.wait()
        if not self._stopping:
            self.lost = f"the proxy ended by itself (exit {self._process.returncode}); the browser has no network"
            if self.on_lost is not None:
                self.on_lost(self.lost)

    async def stop(self) -> None:
        """Ends the child: its last heartbeat is recorded first. Again: nothing. Raises nothing."""
        if self._stopping:
            return
        self._stopping = True
        await _end(self._process)
        self._watch.cancel()
        self._server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


async def _spawn(log: Path, environment: Mapping[str, str] | None) -> asyncio.subprocess.Process:
    with log.open("wb") as out:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "deskcert_proxy",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=out,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )


async def _handshake(process: asyncio.subprocess.Process, told: Mapping[str, Any], log: Path) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(told).encode() + b"\n")
        await process.stdin.drain()
        line = await asyncio.wait_for(process.stdout.readline(), _START_S)
        ready = json.loads(line)
        return {"port": int(ready["port"]), "spki": str(ready["spki"])}
    except (TimeoutError, ValueError, KeyError, TypeError, OSError) as error:
        raise HarnessError(f"the proxy did not start: {_last_line(log, error)} (its messages are in {log})") from error


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _last_line(log: Path, error: Exception) -> str:
    return (log.read_text(errors="replace").strip().splitlines()[-1:] or [type(error).__name__])[0]


async def _end(process: asyncio.subprocess.Process) -> None:
    """Closing its input is its sign to end."""
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _STOP_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
