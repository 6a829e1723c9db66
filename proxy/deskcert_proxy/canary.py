"""The canary: proof, in every run, that what the page writes comes to the proxy and is stopped there."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

from deskcert_ledger.socket_server import Complete
from deskcert_schema.errors import HarnessError

__all__ = ["CANARY_PATH", "Canaries", "ProxyBlind"]

CANARY_PATH: Final = "/.well-known/deskcert-canary/"
_WAIT_S: Final = 5.0


class ProxyBlind(HarnessError):
    """A write of the page did not pass the proxy: evidence is broken, the run is inconclusive."""


class Canaries:
    """Knows which canaries were sent, and learns from the proxy's records which were seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Event, str]] = {}

    def seen_by(self, further: Complete | None) -> Complete:
        """For the ledger's socket: looks at each record, adds the phase to a canary's, and passes it on."""

        def complete(kind: str, payload: dict[str, Any]) -> Mapping[str, Any] | Future[Mapping[str, Any]]:
            if kind != "canary":
                return payload if further is None else further(kind, payload)
            with self._lock:
                waiting = self._waiting.pop(str(payload.get("nonce")), None)
            if waiting is None:
                return payload | {"phase": "unasked"}
            loop, event, phase = waiting
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(event.set)
            return payload | {"phase": phase}

        return complete

    async def prove(
        self, write: Callable[[str], Awaitable[None]], origins: Sequence[str], phase: str, *, wait_s: float = _WAIT_S
    ) -> None:
        for origin in origins:
            await self._one(write, origin.rstrip("/"), phase, wait_s)

    async def _one(self, write: Callable[[str], Awaitable[None]], origin: str, phase: str, wait_s: float) -> None:
        nonce, event = secrets.token_hex(12), asyncio.Event()
        writing = asyncio.ensure_future(write(f"{origin}{CANARY_PATH}{nonce}"))
        with self._lock:
            self._waiting[nonce] = (asyncio.get_running_loop(), event, phase)
        try:
            async with asyncio.timeout(wait_s):
                await event.wait()
        except TimeoutError:
            raise ProxyBlind(
                f"proxy_blind: a write from the page to {origin} did not come to the proxy at the {phase} of the run; "
                "something leads round it (a bypass list, a proxy setting, another port, an addon that is not loaded)"
            ) from None
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)  # only the proxy's own word counts
            with self._lock:
                self._waiting.pop(nonce, None)
