"""The page's own commands: its history, and the dialogs that block it. They have no same-task form; what guards them is
the address, or the dialog's text, before, and what was committed after."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from deskcert.adapters.base import (
    Dialog,
    DispatchEnd,
    Entry,
    Navigation,
    PageAction,
    PointHook,
    RequestSeen,
    Tab,
    WindowState,
)
from deskcert.adapters.web import dispatch, navigation
from deskcert.adapters.web.chain import WaysOut
from deskcert.adapters.web.channel import FAILURES, Channel, ChannelLost, ChannelRefused, ChannelTimeout, Liveness
from deskcert.adapters.web.frames import Frame, Frames
from deskcert.adapters.web.observation import split_node
from deskcert.adapters.web.requests import RequestLog
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import DetailKind, NetworkHow

__all__ = ["PageCommands"]

_LOOK_MS: Final = 1_000


class PageCommands:
    """The part of `WebAdapter` that is a `PageAdapter`."""

    _alive: Liveness
    _channel: Channel
    _dialog: Dialog | None
    _frames: Frames
    _held: list[Any]
    _requests: RequestLog
    _signals: dispatch.Signals | None
    _target: str
    _ways: WaysOut

    _page: Any
    _context: Any
    _dialog_numbers: Iterator[int]

    @property
    def target(self) -> str:
        """The browser's id of this page."""
        return self._target

    @property
    def shown(self) -> Any:
        """Playwright's page."""
        return self._page

    @property
    def context(self) -> Any:
        """Playwright's context, which all its pages share."""
        return self._context

    def on_event(self, event: str, handler: Callable[[dict[str, Any]], None]) -> None:
        self._channel.on(event, handler)

    def begin(self, method: str) -> asyncio.Task[Any]:
        """A call of the browser's protocol, left pending."""
        return self._channel.start(method, {})

    async def outcome(self, task: asyncio.Task[Any], *, budget_ms: int) -> dict[str, Any]:
        """Raises the channel's errors."""
        return await self._channel.answer(task, budget_ms=budget_ms)

    def count_dialogs_with(self, other: PageCommands) -> None:
        """So that no two dialogs of a context have one id."""
        self._dialog_numbers = other._dialog_numbers

    def next_dialog_id(self) -> str:
        return f"d{next(self._dialog_numbers)}"

    async def let_go(self) -> None:
        raise NotImplementedError

    async def window(self) -> WindowState:
        raise NotImplementedError

    async def _evaluate(self, frame: Frame, function: str, args: list[Any], budget_ms: int) -> str:
        raise NotImplementedError

    async def _ready(self, budget_ms: int) -> None:
        raise NotImplementedError

    def _check_alive(self) -> None:
        raise NotImplementedError

    async def entry(self, command: str) -> Entry | None:
        self._check_alive()
        try:
            found = await navigation.entry(self._channel, command, _LOOK_MS)
        except FAILURES as error:
            raise AdapterError(
                f"the history could not be read: {error}", kind=DetailKind.OBSERVATION_INCOMPLETE
            ) from error
        if found is None:
            return None
        method = self._requests.document_method(self._frames.main.loader) if command == "reload" else None
        return Entry(found["url"], method)

    async def picture(
        self,
        box: tuple[int, int, int, int] | None,
        *,
        node: str = "",
        budget_ms: int,
        masks: tuple[tuple[int, int, int, int], ...] = (),
    ) -> str:
        """What the window shows, as a PNG in base 64; with `box` (thousandths of a CSS pixel) a frame around it, in the
        document of `node`."""
        self._check_alive()
        if self._dialog is not None:
            raise AdapterError(f"a {self._dialog.type} dialog blocks the page", kind=DetailKind.PENDING_DIALOG)
        try:
            shot = await self._channel.call("Page.captureScreenshot", {"format": "png"}, budget_ms=budget_ms)
            if box is None and not masks:
                return str(shot["data"])
            target = None if box is None else await self._in_window(box, node, budget_ms)
            pixels = json.dumps([target, [[v / 1000 for v in mask] for mask in masks]])
            return await self._evaluate(self._frames.main, "outlined", [shot["data"], pixels], budget_ms)
        except FAILURES as error:
            raise AdapterError(f"no picture could be taken: {error}", kind=DetailKind.OBSERVATION_INCOMPLETE) from error

    async def _in_window(self, box: tuple[int, int, int, int], node: str, budget_ms: int) -> list[float]:
        _, inner = split_node(node)
        frame = self._frames.main if inner is None else self._frames.document(inner)
        if frame is None:
            raise ChannelRefused("the target's document is gone")
        return await self._ways.place(frame, [v / 1000 for v in box], budget_ms)

    async def tabs(self) -> tuple[Tab, ...]:
        """Every page of this context, this one first."""
        self._check_alive()
        try:
            found = (await self._channel.call("Target.getTargets", budget_ms=_LOOK_MS))["targetInfos"]
        except FAILURES as error:
            raise AdapterError(
                f"the tabs could not be read: {error}", kind=DetailKind.OBSERVATION_INCOMPLETE
            ) from error
        context = next((t.get("browserContextId") for t in found if t["targetId"] == self._target), None)
        pages = [t for t in found if t["type"] == "page" and t.get("browserContextId") == context]
        pages.sort(key=lambda t: t["targetId"] != self._target)
        return tuple(Tab(t["targetId"], t["title"], t["url"], t["targetId"] == self._target) for t in pages)

    def network(self) -> tuple[int, int]:
        return self._requests.network()

    def requests(self, number: int) -> tuple[RequestSeen, ...]:
        return self._requests.seen(number)

    def watch_requests(self, told: Callable[[str, str, NetworkHow, int | None], None]) -> None:
        """`told` each request of the page as it begins: method, URL, how its action is known, and which."""
        self._requests.told = told

    async def post(self, url: str, *, afresh: bool = False) -> None:
        """A write that is no action, from this page or from an empty one beside it; what comes of it is not told."""
        script = f"void fetch({json.dumps(url)}, {{method: 'POST', mode: 'no-cors', body: 'canary'}}).catch(() => 0)"
        with suppress(Exception):  # a page that cannot send is found out by whoever waits for the write
            if afresh:
                await (await self._context.new_page()).evaluate(script)
            else:
                await self._channel.call("Runtime.evaluate", {"expression": script}, budget_ms=_LOOK_MS)

    async def page(self, action: PageAction, *, number: int, budget_ms: int, at: PointHook) -> Navigation:
        if self._alive.reason is not None:
            return Navigation(DispatchEnd.NOT_SENT, error=self._alive.reason)
        if action.dialog is not None:
            return await self._answer(action, action.dialog, budget_ms=budget_ms, at=at)
        if self._dialog is not None:
            why = f"a {self._dialog.type} dialog blocks the page"
            return Navigation(DispatchEnd.NOT_SENT, error=why, dialog=self._dialog)
        signals = self._signals = dispatch.Signals(number)
        self._requests.begin(number, url=action.url)
        try:
            return await navigation.travel(
                self._channel,
                self._alive,
                self._frames,
                self._requests,
                signals,
                command=action.command,
                budget_ms=budget_ms,
                at=at,
                window=self.window,
                ready=self._ready,
            )
        finally:
            self._requests.end()
            self._signals = None

    async def _answer(self, action: PageAction, dialog: Dialog, *, budget_ms: int, at: PointHook) -> Navigation:
        """The dialog that was judged, or none: the browser can only say which one is open now."""
        if self._dialog is None or self._dialog.id != dialog.id:
            return Navigation(DispatchEnd.NOT_SENT, error="that dialog is no longer open")
        accept = action.command == "dialog-accept"
        params = {"accept": accept} | ({"promptText": action.text} if accept and action.text is not None else {})
        task = self._channel.start("Page.handleJavaScriptDialog", params)
        await dispatch.written()
        await at("dispatched")
        try:
            await self._channel.answer(task, budget_ms=budget_ms)
        except ChannelRefused as error:
            return Navigation(DispatchEnd.NOT_SENT, error=str(error))
        except (ChannelTimeout, ChannelLost) as error:
            return Navigation(DispatchEnd.NO_ANSWER, error=str(error))
        self._held.clear()
        if self._dialog is not None and self._dialog.id == dialog.id:
            self._dialog = None
        return Navigation(DispatchEnd.COMPLETED)
