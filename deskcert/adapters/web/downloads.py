"""Downloads: the browser keeps each under a name of its own, and whoever guards the session says whether it stays.

The name that a server or a page gives is data. It is shown, judged and recorded, and is part of no path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deskcert.adapters.base import DownloadKeeper, DownloadSeen

if TYPE_CHECKING:
    from deskcert.adapters.web.adapter import WebAdapter

__all__ = ["Downloads"]

_MOST_NAME: Final = 255
_MOST_URL: Final = 8_192


class Downloads:
    """Of one context. Without a keeper nothing is kept."""

    def __init__(self, acting: Callable[[], int | None]) -> None:
        """`acting`: the action that is under way, or was a moment ago."""
        self._acting = acting
        self._numbers = count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._watched: set[Any] = set()
        self.keeper: DownloadKeeper | None = None

    def watch(self, tab: WebAdapter) -> None:
        self.watch_page(tab.shown)

    def watch_page(self, page: Any) -> None:
        if page in self._watched:
            return
        self._watched.add(page)
        page.on("download", lambda download: self._began(page, download))
        page.on("close", lambda _: self._watched.discard(page))

    def _began(self, page: Any, download: Any) -> None:
        url, name = str(download.url)[:_MOST_URL], str(download.suggested_filename)[:_MOST_NAME]
        seen = DownloadSeen(f"f{next(self._numbers)}", url, name, str(page.url), self._acting())
        task = asyncio.ensure_future(self._through(seen, download))
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def _through(self, seen: DownloadSeen, download: Any) -> None:
        from playwright.async_api import Error

        keeper = self.keeper
        if keeper is None or not await keeper.begun(seen):
            with suppress(Error):
                await download.cancel()
            return
        try:
            path, why = Path(await download.path()), ""
        except Error as error:
            path, why = None, str(error).splitlines()[0].removeprefix("Download.path: ")
        try:
            await keeper.ended(seen, path, why)
        finally:
            with suppress(Error):
                await download.delete()

    def stop(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
