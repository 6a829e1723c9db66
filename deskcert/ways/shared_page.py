"""Somebody else's Playwright page, guarded: custody shared."""

from __future__ import annotations

from typing import Any

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.adapters.web.channel import Channel, Liveness
from deskcert_schema.errors import UsageError

__all__ = ["attach"]


class _SharedPage(WebAdapter):
    async def close(self) -> None:
        """Lets go of the page, and leaves it as it is."""
        await self.let_go()


async def attach(page: Any) -> WebAdapter:
    """Raises `UsageError` for what is no page of Playwright's asynchronous API on Chromium."""
    try:
        from playwright.async_api import Error, Page
    except ImportError as exc:
        raise UsageError("guard_page needs Playwright: pip install 'deskcert[web]'") from exc
    if not isinstance(page, Page):
        raise UsageError(
            f"guard_page takes a Page of playwright.async_api, not {type(page).__module__}.{type(page).__qualname__}"
        )
    if page.is_closed():
        raise UsageError("this page is closed")
    try:
        session = await page.context.new_cdp_session(page)
    except Error as exc:
        raise UsageError(f"only pages of Chromium can be guarded ({str(exc).splitlines()[0]})") from exc
    alive = Liveness()
    adapter = _SharedPage(page, page.context, Channel(session, alive), alive)
    await adapter.start()
    return adapter
