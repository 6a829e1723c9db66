"""Every page of one context, each guarded from the moment it is there; one of them is the one that commands are about.

A page that a page opens is not followed by itself: the agent looks at `tabs` and says `tab-focus`, which the policy
judges like a navigation to where that tab stands.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from deskcert.adapters.base import (
    Action,
    Dialog,
    Dispatch,
    DispatchEnd,
    DownloadKeeper,
    Entry,
    Handle,
    Happened,
    Navigation,
    ObserveOptions,
    PageAction,
    PointHook,
    Probed,
    RawObservation,
    RequestSeen,
    Tab,
    WindowState,
)
from deskcert.adapters.web import dispatch
from deskcert.adapters.web.adapter import WebAdapter
from deskcert.adapters.web.channel import ChannelLost, ChannelRefused, ChannelTimeout
from deskcert.adapters.web.downloads import Downloads
from deskcert.contract.evidence import Evidence
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import DetailKind, NetworkHow

__all__ = ["WebTabs"]

_ARRIVE_S: Final = 5.0
"""For a window that was asked for to be there."""
_AFTER_S: Final = 1.0

type Guard = Callable[[Any], Awaitable[WebAdapter]]
"""Playwright's page in, its adapter out, started. Raises `AdapterError` or `HarnessError`."""


class WebTabs:
    """Implements `Adapter`, `PageAdapter`, `DragAdapter`, `TabAdapter` and `DownloadAdapter`."""

    def __init__(self, first: WebAdapter, guard: Guard, *, left: bool = False) -> None:
        """`left`: the browser is somebody else's, whose tabs stay as they are when the session ends."""
        self._guard, self._first, self._left = guard, first, left
        self._current = first
        self._acted: tuple[int, float | None] | None = None
        """Number of the last action, and until when something may be because of it; None while it is under way."""
        self._all: dict[str, WebAdapter] = {}
        self._coming: set[asyncio.Task[None]] = set()
        self._asked, self._came = 0, 0
        self._ours = False
        self._changed = asyncio.Event()
        self._leaving: str | None = None
        self._news: list[Happened] = []
        self._told: Callable[[str, str, NetworkHow, int | None], None] | None = None
        self._downloads = Downloads(self._acting)
        self._foreign: tuple[Dialog, Any] | None = None
        """Of a page that is not guarded yet, and Playwright's handle on it."""
        self._adopt(first)
        first.context.on("page", self._page_came)
        first.context.on("dialog", self._dialog_came)

    @property
    def current(self) -> WebAdapter:
        return self._current

    # What comes and goes

    def _adopt(self, tab: WebAdapter) -> None:
        self._all[tab.target] = tab
        tab.count_dialogs_with(self._first)
        tab.on_event("Page.windowOpen", lambda _: self._window_asked())
        tab.on_event("Page.javascriptDialogOpening", lambda _: self._tell())
        tab.shown.on("close", lambda _: self._gone(tab))
        self._downloads.watch(tab)
        if self._told is not None:
            tab.watch_requests(self._told)

    def _window_asked(self) -> None:
        self._asked += 1

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _next_change(self) -> None:
        """Of the tabs, or of a dialog in one."""
        await self._changed.wait()

    def _page_came(self, page: Any) -> None:
        if self._ours:
            return
        self._came += 1
        self._tell()
        self._downloads.watch_page(page)
        task = asyncio.ensure_future(self._take_in(page, self._acting()))
        self._coming.add(task)
        task.add_done_callback(self._taken_in)

    def _taken_in(self, task: asyncio.Task[None]) -> None:
        self._coming.discard(task)
        self._tell()

    def _dialog_came(self, dialog: Any) -> None:
        """One of a page that is not guarded yet, which it keeps from becoming so."""
        if dialog.page is None or any(tab.shown is dialog.page for tab in self._all.values()):
            return
        asked = Dialog(self._first.next_dialog_id(), dialog.type, dialog.message, self._acting())
        self._foreign = (asked, dialog)
        self._tell()

    async def _take_in(self, page: Any, by: int | None) -> None:
        try:
            tab = await self._guard(page)
            window = await tab.window()
        except Exception as error:  # whatever it is called: it is gone again, or cannot be guarded, and that is told
            self._news.append(Happened("tab_lost", "", page.url, "", by, str(error)[:300]))
            return
        self._adopt(tab)
        self._news.append(Happened("tab_opened", window.id, window.url, window.title, by))

    async def take_in(self, page: Any) -> None:
        """A page that was there before. Raises `AdapterError` or `HarnessError`."""
        self._adopt(await self._guard(page))

    def _gone(self, tab: WebAdapter) -> None:
        if self._all.pop(tab.target, None) is None:
            return
        self._news.append(Happened("tab_closed", tab.target, tab.shown.url, "", self._acting()))
        if tab is self._current and self._leaving == tab.target and self._all:
            self._current = list(self._all.values())[-1]
        self._tell()

    def _acting(self) -> int | None:
        if self._acted is None:
            return None
        number, until = self._acted
        return number if until is None or time.monotonic() <= until else None

    @contextmanager
    def _action(self, number: int) -> Iterator[None]:
        self._acted = (number, None)
        try:
            yield
        finally:
            self._acted = (number, time.monotonic() + _AFTER_S)

    async def news(self) -> tuple[Happened, ...]:
        """What came and went since the last call. A window that was asked for is waited for a moment."""
        await self._arrived()
        told, self._news = tuple(self._news), []
        return told

    async def _arrived(self) -> None:
        """Returns when every window that was asked for is there, or blocked by a dialog, or took too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_ARRIVE_S):
                while self._foreign is None and (self._came < self._asked or self._coming):
                    await self._next_change()
        self._asked = self._came

    # Tabs

    async def tabs(self) -> tuple[Tab, ...]:
        """Those that are guarded, the current one first. Raises `AdapterError`."""
        await self._arrived()
        lost = AdapterError("every tab was closed", kind=DetailKind.COMPONENT_LOST)
        for living in sorted(self._all.values(), key=lambda tab: tab is not self._current):
            try:
                found = await living.tabs()
            except AdapterError as error:  # it is just going away; another one knows as well
                lost = error
                continue
            known = [replace(t, guarded=t.id == self._current.target) for t in found if t.id in self._all]
            return tuple(sorted(known, key=lambda t: not t.guarded))
        raise lost

    async def page(self, action: PageAction, *, number: int, budget_ms: int, at: PointHook) -> Navigation:
        with self._action(number):
            return await self._page(action, number=number, budget_ms=budget_ms, at=at)

    async def _page(self, action: PageAction, *, number: int, budget_ms: int, at: PointHook) -> Navigation:
        if action.tab is None:
            if action.dialog is not None and self._foreign is not None and self._foreign[0].id == action.dialog.id:
                return await self._answer_foreign(self._foreign[1], action, budget_ms=budget_ms, at=at)
            asker = self._asker() if action.dialog is not None else None
            return await (asker or self._current).page(action, number=number, budget_ms=budget_ms, at=at)
        tab = self._all.get(action.tab)
        if tab is None:
            return Navigation(DispatchEnd.NOT_SENT, error="that tab is no longer there")
        try:
            window = await tab.window()
        except AdapterError as error:
            return Navigation(DispatchEnd.NOT_SENT, error=str(error))
        if window.url != action.url:
            return Navigation(DispatchEnd.CHANGED, error=f"that tab shows {window.url} now")
        if action.command == "tab-close":
            return await self._close(tab, number=number, budget_ms=budget_ms, at=at)
        return await self._focus(tab, window, budget_ms=budget_ms, at=at)

    async def _focus(self, tab: WebAdapter, window: WindowState, *, budget_ms: int, at: PointHook) -> Navigation:
        task = tab.begin("Page.bringToFront")
        await dispatch.written()
        await at("dispatched")
        try:
            await tab.outcome(task, budget_ms=budget_ms)
        except ChannelRefused as error:
            return Navigation(DispatchEnd.NOT_SENT, error=str(error))
        except (ChannelTimeout, ChannelLost) as error:
            return Navigation(DispatchEnd.NO_ANSWER, error=str(error))
        self._current = tab
        return Navigation(DispatchEnd.COMPLETED, window)

    async def _close(self, tab: WebAdapter, *, number: int, budget_ms: int, at: PointHook) -> Navigation:
        """With the page's own say: what it asks before it is left is a dialog."""
        self._leaving = tab.target
        tab.begin("Page.close")
        await dispatch.written()
        await at("dispatched")
        with suppress(TimeoutError):
            async with asyncio.timeout(budget_ms / 1000):
                while tab.target in self._all and tab.dialog() is None:
                    await self._next_change()
        if tab.target not in self._all:
            return Navigation(DispatchEnd.COMPLETED)
        return Navigation(DispatchEnd.NO_ANSWER, dialog=tab.dialog(), error=f"tab of action {number} is still there")

    async def _answer_foreign(self, dialog: Any, action: PageAction, *, budget_ms: int, at: PointHook) -> Navigation:
        from playwright.async_api import Error

        accept = action.command == "dialog-accept"
        answering = dialog.accept(action.text or "") if accept else dialog.dismiss()
        self._foreign = None
        await at("dispatched")
        try:
            async with asyncio.timeout(budget_ms / 1000):
                await answering
        except TimeoutError:
            return Navigation(DispatchEnd.NO_ANSWER, error="no answer in time")
        except Error as error:
            return Navigation(DispatchEnd.NO_ANSWER, error=str(error).splitlines()[0])
        return Navigation(DispatchEnd.COMPLETED)

    def _asker(self) -> WebAdapter | None:
        """The tab with an open dialog: the current one, or another, which may block its opener."""
        return next((tab for tab in (self._current, *self._all.values()) if tab.dialog() is not None), None)

    def dialog(self) -> Dialog | None:
        asker = self._asker()
        if asker is not None:
            return asker.dialog()
        return None if self._foreign is None else self._foreign[0]

    # Downloads

    def keep_downloads(self, keeper: DownloadKeeper | None) -> None:
        self._downloads.keeper = keeper

    # The current tab

    async def observe(self, options: ObserveOptions) -> RawObservation:
        self._check()
        return await self._current.observe(options)

    async def probe(self, handle: Handle, action: Action, *, budget_ms: int) -> Probed:
        return await self._current.probe(handle, action, budget_ms=budget_ms)

    async def perform(
        self, handle: Handle, action: Action, expected: Evidence, *, number: int, budget_ms: int, at: PointHook
    ) -> Dispatch:
        with self._action(number):
            return await self._current.perform(handle, action, expected, number=number, budget_ms=budget_ms, at=at)

    async def navigate(self, url: str, *, number: int, budget_ms: int, at: PointHook) -> Navigation:
        with self._action(number):
            return await self._current.navigate(url, number=number, budget_ms=budget_ms, at=at)

    async def window(self) -> WindowState:
        """Of a tab that its page has closed: where it was."""
        if self._is_gone():
            return WindowState(self._current.target, "", str(self._current.shown.url), "closed")
        return await self._current.window()

    def requests(self, number: int) -> tuple[RequestSeen, ...]:
        return tuple(seen for tab in {self._current, *self._all.values()} for seen in tab.requests(number))

    async def entry(self, command: str) -> Entry | None:
        self._check()
        return await self._current.entry(command)

    async def picture(
        self,
        box: tuple[int, int, int, int] | None,
        *,
        node: str = "",
        budget_ms: int,
        masks: tuple[tuple[int, int, int, int], ...] = (),
    ) -> str:
        self._check()
        return await self._current.picture(box, node=node, budget_ms=budget_ms, masks=masks)

    def network(self) -> tuple[int, int]:
        return self._current.network()

    def cannot_drag(self, source: Handle, to: Handle) -> str | None:
        return self._current.cannot_drag(source, to)

    def watch_requests(self, told: Callable[[str, str, NetworkHow, int | None], None]) -> None:
        self._told = told
        for tab in self._all.values():
            tab.watch_requests(told)

    async def post(self, url: str, *, afresh: bool = False) -> None:
        self._ours = afresh
        try:
            await self._current.post(url, afresh=afresh)
        finally:
            self._ours = False

    def _is_gone(self) -> bool:
        return self._current.target not in self._all and bool(self._all)

    def _check(self) -> None:
        if self._is_gone():
            raise AdapterError(
                "the tab was closed by its page; tabs shows what is open, and tab-focus takes another",
                kind=DetailKind.COMPONENT_LOST,
            )

    async def close(self) -> None:
        """Never hangs."""
        for task in tuple(self._coming):
            task.cancel()
        self._downloads.stop()
        for tab in tuple(self._all.values()):
            if self._left or tab is not self._current:
                await tab.let_go()
        if not self._left:
            await self._current.close()
