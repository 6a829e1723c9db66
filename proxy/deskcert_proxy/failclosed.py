"""Every hook fails closed.

An exception in a hook of mitmproxy's is logged, and the request goes on to the server. So each hook begins by closing
the way and opens it as its last act; whatever is raised in between leaves it closed, and is recorded.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from deskcert_proxy.answers import FAULT, refusal

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow

__all__ = [
    "BLOCKED",
    "Faulty",
    "close_connection",
    "close_message",
    "close_raw",
    "close_request",
    "closed_unless_done",
    "fault_recorded",
    "record_only",
]

BLOCKED = "deskcert_blocked"
"""In a flow's metadata: nothing may open the way again."""


class Faulty(Protocol):
    def fault(self, hook: str, error: BaseException) -> None: ...


def closed_unless_done[S: Faulty](
    close: Callable[[Any], None],
) -> Callable[[Callable[[S, Any], Awaitable[None]]], Callable[[S, Any], Awaitable[None]]]:
    def wrap(hook: Callable[[S, Any], Awaitable[None]]) -> Callable[[S, Any], Awaitable[None]]:
        @functools.wraps(hook)
        async def inside(self: S, subject: Any) -> None:
            try:
                await hook(self, subject)
            except asyncio.CancelledError:
                close(subject)  # the client or the proxy is gone
                raise
            except Exception as error:
                close(subject)
                self.fault(hook.__name__, error)

        return inside

    return wrap


def fault_recorded[S: Faulty](hook: Callable[[S], Awaitable[None]]) -> Callable[[S], Awaitable[None]]:
    """For a hook of the proxy's own life: nothing passes by it, but a run whose proxy did not live well decides
    nothing."""

    @functools.wraps(hook)
    async def inside(self: S) -> None:
        try:
            await hook(self)
        except Exception as error:
            self.fault(hook.__name__, error)

    return inside


def close_request(flow: HTTPFlow) -> None:
    flow.metadata[BLOCKED] = True
    flow.response = refusal(FAULT)


def record_only(_flow: HTTPFlow) -> None:
    """For hooks on the way back: the request was judged and recorded; what is left to do is to record the fault."""


def close_message(flow: HTTPFlow) -> None:
    flow.metadata[BLOCKED] = True
    if flow.websocket is not None and flow.websocket.messages:
        flow.websocket.messages[-1].dropped = True


def close_raw(flow: Any) -> None:
    """TCP, UDP, DNS: nothing of ours may use them."""
    if flow.killable:
        flow.kill()


def close_connection(data: Any) -> None:
    """`server_connect`, `client_connected`: an error there keeps the connection from being made."""
    getattr(data, "server", data).error = "refused by deskcert"
