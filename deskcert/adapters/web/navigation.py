"""Navigation has no same-task form: the URL is judged before, and what was committed is read after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from deskcert.adapters.base import DispatchEnd, Navigation, PointHook, WindowState
from deskcert.adapters.web.channel import Channel, ChannelLost, ChannelRefused, ChannelTimeout, Liveness
from deskcert.adapters.web.dispatch import Signals, await_first, written
from deskcert.adapters.web.frames import Frames
from deskcert.adapters.web.requests import RequestLog

__all__ = ["entry", "navigate", "travel"]

_NEVER_CONNECTED: Final = (
    "ERR_CONNECTION_REFUSED",
    "ERR_NAME_NOT_RESOLVED",
    "ERR_ADDRESS_",
    "ERR_INTERNET_DISCONNECTED",
    "ERR_PROXY_CONNECTION_FAILED",
    "ERR_TUNNEL_CONNECTION_FAILED",
    "ERR_INVALID_URL",
    "ERR_UNKNOWN_URL_SCHEME",
    "ERR_UNSAFE_PORT",
    "ERR_BLOCKED_BY_",
    "ERR_CERT_",
    "ERR_SSL_",
    "ERR_FILE_NOT_FOUND",
)
"""Failures in which no request can have reached the application. With every other one it may have."""

_SETTLE_MS: Final = 500


async def navigate(
    channel: Channel,
    alive: Liveness,
    frames: Frames,
    requests: RequestLog,
    signals: Signals,
    *,
    url: str,
    budget_ms: int,
    at: PointHook,
    window: Callable[[], Awaitable[WindowState]],
    ready: Callable[[int], Awaitable[None]],
) -> Navigation:
    """`window` reads the window, `ready` waits until the document is parsed, for at most so many milliseconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + budget_ms / 1000
    before = frames.main.loader
    task = channel.start("Page.navigate", {"url": url})
    await written()
    await at("dispatched")
    await await_first(task, signals, alive, budget_ms=budget_ms)
    try:
        answer = channel.result(task)
    except ChannelRefused as error:
        return Navigation(DispatchEnd.NOT_SENT, error=str(error))
    except (ChannelTimeout, ChannelLost) as error:
        committed = await window() if frames.main.loader != before and alive.reason is None else None
        why = "a dialog blocks the page" if signals.dialog is not None else str(error)
        return Navigation(DispatchEnd.NO_ANSWER, committed, error=why, dialog=signals.dialog)
    loader = answer.get("loaderId")
    status = requests.document_status(loader) if loader else None
    if "errorText" in answer:
        return await _failed(frames, answer, before, status)
    left = max(1, int((deadline - loop.time()) * 1000))
    if loader is not None:
        await _committed(frames, loader, signals=signals, alive=alive, ready=ready, left_ms=left)
        status = requests.document_status(loader)
    if alive.reason is not None:
        return Navigation(DispatchEnd.NO_ANSWER, error=alive.reason)
    return Navigation(DispatchEnd.COMPLETED, await window(), status, dialog=signals.dialog)


async def entry(channel: Channel, command: str, budget_ms: int) -> dict[str, Any] | None:
    """The entry of the window's history that a command leads to. Raises the channel's errors."""
    history = await channel.call("Page.getNavigationHistory", budget_ms=budget_ms)
    at: int = history["currentIndex"] + {"back": -1, "reload": 0, "forward": 1}[command]
    entries: list[dict[str, Any]] = history["entries"]
    return entries[at] if 0 <= at < len(entries) else None


async def travel(
    channel: Channel,
    alive: Liveness,
    frames: Frames,
    requests: RequestLog,
    signals: Signals,
    *,
    command: str,
    budget_ms: int,
    at: PointHook,
    window: Callable[[], Awaitable[WindowState]],
    ready: Callable[[int], Awaitable[None]],
) -> Navigation:
    """back, forward, reload. The browser answers at once; what was committed is seen in the frames."""
    try:
        found = await entry(channel, command, budget_ms)
    except (ChannelRefused, ChannelTimeout, ChannelLost) as error:
        return Navigation(DispatchEnd.NOT_SENT, error=str(error))
    if found is None:
        return Navigation(DispatchEnd.NOT_SENT, error=f"there is nothing to go {command} to")
    before = frames.main.loader

    async def arrive() -> None:
        same = command != "reload"
        while frames.main.loader == before and not (same and frames.main.url == found["url"]):
            await frames.changed()
        await ready(budget_ms)

    arrived = asyncio.ensure_future(arrive())
    method, params = (
        ("Page.reload", {}) if command == "reload" else ("Page.navigateToHistoryEntry", {"entryId": found["id"]})
    )
    task = channel.start(method, params)
    await written()
    await at("dispatched")
    await await_first(arrived, signals, alive, budget_ms=budget_ms)
    try:
        if task.done():
            channel.result(task)
    except ChannelRefused as error:
        arrived.cancel()
        return Navigation(DispatchEnd.NOT_SENT, error=str(error))
    except (ChannelTimeout, ChannelLost):
        pass  # what was committed decides
    if alive.reason is not None or not arrived.done():
        arrived.cancel()
        why = "a dialog blocks the page" if signals.dialog is not None else alive.reason or "no document came in time"
        return Navigation(DispatchEnd.NO_ANSWER, error=why, dialog=signals.dialog)
    status = requests.document_status(frames.main.loader)
    return Navigation(DispatchEnd.COMPLETED, await window(), status, dialog=signals.dialog)


async def _committed(
    frames: Frames,
    loader: str,
    *,
    signals: Signals,
    alive: Liveness,
    ready: Callable[[int], Awaitable[None]],
    left_ms: int,
) -> None:
    """The document is committed when the browser answers; wait for its script, then until it is parsed, unless a dialog
    opens meanwhile. That it takes longer is no failure of the navigation."""

    async def settle() -> None:
        while frames.main.loader != loader:
            await frames.changed()
        await ready(left_ms)

    await await_first(asyncio.ensure_future(settle()), signals, alive, budget_ms=left_ms)


async def _failed(frames: Frames, answer: dict[str, Any], before: str, status: int | None) -> Navigation:
    text = str(answer["errorText"])
    if "ERR_ABORTED" in text:
        # A download, or an answer without a document (204): the server was reached, the page stays.
        return Navigation(DispatchEnd.COMPLETED, None, status, "download" if answer.get("isDownload") else text)
    if frames.main.loader == before:
        # The browser shows its error page next; an action must not meet it half-way.
        with suppress(TimeoutError):
            await asyncio.wait_for(frames.changed(), _SETTLE_MS / 1000)
    never = any(name in text for name in _NEVER_CONNECTED)
    return Navigation(DispatchEnd.NOT_SENT if never else DispatchEnd.NO_ANSWER, None, status, text)
