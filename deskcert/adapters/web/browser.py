"""One browser for several contexts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.adapters.web.channel import Channel, Liveness
from deskcert.adapters.web.find_browser import HOW_TO_GET_ONE, find_browser
from deskcert.adapters.web.tabs import WebTabs
from deskcert_schema.errors import HarnessError

__all__ = ["ARGS", "WebBrowser"]

ARGS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Nothing but the loopback has a name: no background look-up leaves the machine.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost , EXCLUDE *.localhost",
    # WebRTC would gather candidates past a proxy.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)
_VIEWPORT: Final = {"width": 1280, "height": 800}
_CLOSE_S: Final = 5.0


class WebBrowser:
    """A running browser. `lost` is the reason when it died; every adapter of it knows then."""

    def __init__(self, playwright: Any, browser: Any, path: Path, *, sandbox: bool) -> None:
        self._playwright, self._browser = playwright, browser
        self._alive: list[Liveness] = []
        self.path, self.sandbox = path, sandbox
        self.name = path.name
        self.version: str = browser.version
        self.playwright_version = version("playwright")
        self._life = Liveness()
        browser.on("disconnected", lambda _: self._died())

    @classmethod
    async def launch(
        cls, path: Path | None = None, *, budget_ms: int = 30_000, arguments: Sequence[str] = (), headed: bool = False
    ) -> WebBrowser:
        """`arguments`: further ones for the browser. `headed`: it can be seen, which wants a screen. As root Chromium's
        own sandbox cannot work: it is off, and `sandbox` says so. Raises `HarnessError`."""
        path = find_browser(headed=headed) if path is None else path
        try:
            from playwright.async_api import Error, async_playwright
        except ImportError as error:
            raise HarnessError("the web adapter needs Playwright: pip install 'deskcert[web]'") from error
        sandbox = not (hasattr(os, "geteuid") and os.geteuid() == 0)
        playwright = await async_playwright().start()
        try:
            browser = await playwright.chromium.launch(
                executable_path=path,
                headless=not headed,
                args=[*ARGS, *arguments, *([] if sandbox else ["--no-sandbox"])],
                chromium_sandbox=sandbox,
                timeout=budget_ms,
                # The runner seals its ledgers first; it ends the browser itself.
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            await playwright.stop()
            first = str(error).strip().splitlines()[0]
            raise HarnessError(f"{path} could not be started ({first}); {HOW_TO_GET_ONE}") from error
        return cls(playwright, browser, path, sandbox=sandbox)

    @classmethod
    async def connect(cls, url: str, *, budget_ms: int = 30_000) -> WebBrowser:
        """One that is running, by its debugging address (`http://127.0.0.1:9222`). It is not ours: whoever else has the
        address can act past the guard. Raises `HarnessError`."""
        try:
            from playwright.async_api import Error, async_playwright
        except ImportError as error:
            raise HarnessError("the web adapter needs Playwright: pip install 'deskcert[web]'") from error
        playwright = await async_playwright().start()
        try:
            browser = await playwright.chromium.connect_over_cdp(url, timeout=budget_ms)
        except Error as error:
            await playwright.stop()
            first = str(error).strip().splitlines()[0]
            raise HarnessError(
                f"no browser answers at {url} ({first}); start one with --remote-debugging-port and give its address"
            ) from error
        return cls(playwright, browser, Path(url), sandbox=True)

    @property
    def lost(self) -> str | None:
        return self._life.reason

    def _died(self) -> None:
        for alive in (self._life, *self._alive):
            alive.lose("the browser is gone")

    async def ask(self, *, budget_ms: int = 10_000) -> str | None:
        """`lost`, after asking the browser itself: a death may not have been told yet. One that does not answer is
        taken for dead."""
        if self.lost is None:
            try:
                async with asyncio.timeout(budget_ms / 1000):
                    session = await self._browser.new_browser_cdp_session()
                    await session.send("Browser.getVersion")
                    await session.detach()
            except Exception:  # whatever it is called, there is no answer
                self._died()
        return self.lost

    async def open(self, *, proxy: str | None = None) -> WebAdapter:
        """A fresh context with one empty page, guarded; all its requests go through `proxy`, a URL. Raises
        `HarnessError` or `AdapterError`."""
        if self.lost is not None:
            raise HarnessError(self.lost)
        try:
            context = await self._browser.new_context(
                viewport=_VIEWPORT, proxy=None if proxy is None else {"server": proxy}
            )
            page = await context.new_page()
        except Exception as error:
            raise HarnessError(f"the browser gave no page: {error}") from error
        return await self._guarded(page)

    async def open_tabs(self, *, proxy: str | None = None) -> WebTabs:
        """The same, with every page that its pages open."""
        return WebTabs(await self.open(proxy=proxy), self._guarded)

    async def attach(self, url: str) -> tuple[WebTabs, bool]:
        """The tabs of a context that is there, and whether one of them shows `url`: that one, or a new one, is the
        guarded one. On closing they are left as they are. Raises `HarnessError` or `AdapterError`."""
        if self.lost is not None:
            raise HarnessError(self.lost)
        contexts = self._browser.contexts or [await self._browser.new_context(viewport=_VIEWPORT)]
        pages = [page for context in contexts for page in context.pages]
        there = next((page for page in pages if page.url == url), None)
        page = there if there is not None else await contexts[0].new_page()
        tabs = WebTabs(await self._guarded(page), self._guarded, left=True)
        for other in page.context.pages:
            if other is not page:
                await tabs.take_in(other)
        return tabs, there is not None

    async def _guarded(self, page: Any) -> WebAdapter:
        alive = Liveness()
        self._alive.append(alive)
        try:
            session = await page.context.new_cdp_session(page)
        except Exception as error:
            raise HarnessError(f"the browser gave no page: {error}") from error
        adapter = WebAdapter(page, page.context, Channel(session, alive), alive)
        await adapter.start()
        return adapter

    async def close(self) -> None:
        """Ends the browser. Never hangs."""
        self._life.lose("the browser was closed")
        for work in (self._browser.close, self._playwright.stop):
            with suppress(Exception):  # dead already
                await asyncio.wait_for(work(), _CLOSE_S)
