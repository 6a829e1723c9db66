"""HTTP/1.1 with an end to its patience: a client that does not finish the head of its request is told so and let go.

uvicorn bounds the size of a head and the idle time between requests, but not the time that one head may take.
"""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HEAD_S", "Patient"]

HEAD_S: Final = 10.0
"""From the connection, or from the first byte of a further request, to the end of the request's head."""
_TOO_SLOW: Final = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
    b"Content-Length: 44\r\n\r\nThe request's head did not come to its end.\n"
)


class Patient(H11Protocol):
    _clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own narrowing
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        between = self.cycle is None or self.cycle.response_complete
        if not between:
            self._stop()
        elif self._clock is None:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        self._clock = asyncio.get_running_loop().call_later(HEAD_S, self._give_up)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _give_up(self) -> None:
        self._clock = None
        if not self.transport.is_closing():
            self.transport.write(_TOO_SLOW)
            self.transport.close()
