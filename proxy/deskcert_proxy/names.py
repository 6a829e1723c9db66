"""Names below `localhost` are this machine (RFC 6761, 6.3), as browsers have it; many systems' resolvers do not know.

A browser behind a proxy asks nobody for an address: the proxy does.
"""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["is_loopback_name", "loopback_names"]


def is_loopback_name(host: object) -> bool:
    return isinstance(host, str) and host.lower().rstrip(".").endswith(".localhost")


def loopback_names(loop: asyncio.AbstractEventLoop) -> None:
    """What this loop opens to `*.localhost` goes to `localhost`. Again: no harm."""
    whole = loop.getaddrinfo
    if getattr(whole, "knows_loopback_names", False):
        return

    async def getaddrinfo(host: Any, port: Any, **more: Any) -> Any:
        return await whole("localhost" if is_loopback_name(host) else host, port, **more)

    getaddrinfo.knows_loopback_names = True  # type: ignore[attr-defined]
    loop.getaddrinfo = getaddrinfo  # type: ignore[method-assign]
