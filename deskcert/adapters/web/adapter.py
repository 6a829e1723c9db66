"""`WebAdapter`: one guarded page. Public methods wrap, private ones work; only `AdapterError` leaves."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any, Final

from deskcert.adapters.base import (
    Action,
    Dialog,
    Dispatch,
    DispatchEnd,
    Gone,
    Handle,
    Live,
    Navigation,
    ObserveOptions,
    PointHook,
    Probed,
    RawObservation,
    Unreadable,
    WindowState,
)
from deskcert.adapters.web import dispatch, navigation
from deskcert.adapters.web.chain import WaysOut
from deskcert.adapters.web.channel import FAILURES, Channel, ChannelLost, ChannelRefused, ChannelTimeout, Liveness
from deskcert.adapters.web.closed import ClosedRoots
from deskcert.adapters.web.frames import Frame, Frames
from deskcert.adapters.web.history import PageCommands
from deskcert.adapters.web.observation import Observation, split_node
from deskcert.adapters.web.physical import Physical
from deskcert.adapters.web.processes import SETUP_MS, Processes
from deskcert.adapters.web.requests import RequestLog
from deskcert.adapters.web.script import BINDING, WORLD, call_function
from deskcert.adapters.web.trusted import TRUSTED_KEYS, trusted_press
from deskcert.adapters.web.upload import upload
from deskcert.contract.evidence import Evidence
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import DetailKind

__all__ = ["WebAdapter"]

_WINDOW_MS: Final = 1_000
_TRIES: Final = 3
_CLOSE_S: Final = 5.0
_CONTEXT_S: Final = 0.1  # a document's context is waited for so long, then asked for
_PARSING_S: Final = 0.5
_PROMISES: Final = frozenset({"ready", "outlined", "steady"})


class WebAdapter(PageCommands):
    """Implements `deskcert.adapters.base.Adapter`. Make one with `WebBrowser.open`."""

    def __init__(self, page: Any, context: Any, channel: Channel, alive: Liveness) -> None:
        self._page, self._context = page, context
        self._channel, self._alive = channel, alive
        self._frames = Frames()
        self._requests = RequestLog(lambda: time.monotonic_ns() // 1000)
        self._processes = Processes(page, alive, self._frames, self._requests, self._told)
        self._ways = WaysOut(self._frames, self._evaluate, self._context_of)
        self._closed = ClosedRoots(self._context_of)
        self._signals: dispatch.Signals | None = None
        self._dialog: Dialog | None = None
        self._held: list[Any] = []
        self._dialog_numbers = count(1)
        self._target = ""
        self._title = ""

    # Setting up

    async def start(self) -> None:
        """Installs our world in this page and in every document that it will load. Raises `AdapterError`."""
        # A listener keeps Playwright from dismissing dialogs: accepting or dismissing is the agent's decision.
        self._context.on("dialog", self._hold)
        self._page.on("close", lambda _: self._alive.lose("the page was closed"))
        self._channel.on("Page.javascriptDialogOpening", self._dialog_opened)
        self._channel.on("Page.javascriptDialogClosed", self._dialog_closed)
        # Not Playwright's word for a crash: it says so of the page when the process of one frame dies.
        self._channel.on("Inspector.targetCrashed", lambda _: self._alive.lose("the page crashed"))
        try:
            await self._set_up()
        except FAILURES as error:
            raise AdapterError(f"the page could not be prepared: {error}", kind=DetailKind.COMPONENT_LOST) from error

    def _hold(self, dialog: Any) -> None:
        self._held.append(dialog)

    async def _set_up(self) -> None:
        await self._processes.install(self._channel, self._alive)
        found = await self._channel.call("Target.getTargetInfo", budget_ms=SETUP_MS)
        self._target = found["targetInfo"]["targetId"]

    def _told(self, event: dict[str, Any]) -> None:
        if event["name"] != BINDING or self._signals is None:
            return
        note = json.loads(event["payload"])
        if note["number"] == self._signals.number:
            self._signals.tell(note)

    def _dialog_opened(self, event: dict[str, Any]) -> None:
        opener = self._signals.number if self._signals is not None else None
        self._dialog = Dialog(f"d{next(self._dialog_numbers)}", event["type"], event["message"], opener)
        if self._signals is not None:
            self._signals.tell_dialog(self._dialog)

    def _dialog_closed(self, _event: dict[str, Any]) -> None:
        self._dialog = None

    # Asking our world

    async def _evaluate(self, frame: Frame, function: str, args: list[Any], budget_ms: int) -> str:
        """Calls a function of our world in a frame's document. Raises the channel's errors."""
        context = await self._context_of(frame, budget_ms)
        answer = await frame.channel.call(
            "Runtime.callFunctionOn",
            {
                "functionDeclaration": call_function(function),
                "executionContextId": context,
                "arguments": [{"value": a} for a in args],
                "returnByValue": True,
                "awaitPromise": function in _PROMISES,
            },
            budget_ms=budget_ms,
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise ChannelRefused(details.get("exception", {}).get("description") or details["text"])
        value: str = answer["result"]["value"]
        return value

    async def _context_of(self, frame: Frame, budget_ms: int) -> int:
        if frame.context is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_CONTEXT_S, budget_ms / 1000)):
                    while frame.context is None and frame.alive.reason is None:
                        self._check_current(frame)
                        await self._frames.changed()
        if frame.context is None and frame.alive.reason is None:
            # A first document can report its context before itself; asked by name, the browser gives the one there is.
            world = {"frameId": frame.id, "worldName": WORLD}
            made = await frame.channel.call("Page.createIsolatedWorld", world, budget_ms=budget_ms)
            self._check_current(frame)
            frame.context = int(made["executionContextId"])
        if frame.context is None:
            raise ChannelLost(frame.alive.reason or "the page is gone", sent=False)
        return frame.context

    def _check_current(self, frame: Frame) -> None:
        if self._frames.document(frame.loader) is not frame:
            raise ChannelRefused("the document was replaced")

    def _frame_of(self, handle: Handle) -> tuple[Frame, str] | None:
        """The frame in which a handle's document still lives, and the id in that document."""
        node, inner = split_node(handle.node)
        if self._frames.main.loader != handle.document:
            return None
        frame = self._frames.document(inner or handle.document)
        return None if frame is None else (frame, node)

    # Observing

    async def observe(self, options: ObserveOptions) -> RawObservation:
        """Raises `AdapterError`: `pending_dialog`, `component_lost`, or `observation_incomplete` when the page did not
        answer at all."""
        self._check_alive()
        if self._dialog is not None:
            raise AdapterError(f"a {self._dialog.type} dialog blocks the page", kind=DetailKind.PENDING_DIALOG)
        started = time.monotonic()
        deadline = started + options.budget_ms / 1000
        why = "it navigated again and again"
        for tries in range(_TRIES):
            before = self._frames.main.loader
            found = Observation(
                self._frames, self._evaluate, self._closed.adopt, self._ways.owner_of, options, deadline=deadline
            )
            try:
                await self._processes.catch_up()
                await found.run(self._within(options.root))
            except (ChannelRefused, ChannelLost) as error:
                # The document went away under the walk: the next one is read from its beginning.
                self._check_alive()
                why = str(error)
            except ChannelTimeout as error:
                self._check_alive()
                raise AdapterError(
                    f"the page did not answer within {options.budget_ms} ms ({error})",
                    kind=DetailKind.OBSERVATION_INCOMPLETE,
                ) from error
            else:
                # A page that is still parsed gets a moment: half a page helps nobody. Then it is what it is.
                patience = min(_PARSING_S, deadline - time.monotonic()) if tries + 1 < _TRIES else 0.0
                if (found.loading or found.arriving or self._processes.missing) and patience > 0:
                    await self._parsed(found.loading, int(patience * 1000))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._processes.settle(), patience)
                elif self._frames.main.loader == before:
                    return self._observation(found, before, started, options)
            if time.monotonic() > deadline:
                break
        raise AdapterError(f"the page could not be read: {why}", kind=DetailKind.OBSERVATION_INCOMPLETE)

    def _observation(
        self, found: Observation, document: str, started: float, options: ObserveOptions
    ) -> RawObservation:
        self._title = found.title if options.root is None else self._title
        window = WindowState(self._target, found.title, found.url, document)
        took = int((time.monotonic() - started) * 1_000_000)
        if options.root is not None:
            window = replace(window, title=self._title, url=self._frames.main.url)
        return RawObservation(window, tuple(found.nodes), not found.reasons, tuple(found.reasons), took, found.cut)

    def _within(self, root: Handle | None) -> tuple[Frame, str] | None:
        if root is None:
            return None
        place = self._frame_of(root)
        if place is None:
            raise AdapterError("the element's document is gone", kind=DetailKind.RESOLUTION_DOCUMENT_CHANGED)
        return place

    async def probe(self, handle: Handle, action: Action, *, budget_ms: int) -> Probed:
        if self._alive.reason is not None:
            return Gone("process_changed")
        place = self._frame_of(handle)
        if place is None:
            return Gone("navigated")
        if self._dialog is not None:
            return Unreadable(f"a {self._dialog.type} dialog blocks the page")
        frame, node = place
        try:
            steady = not action.physical or await self._evaluate(frame, "steady", [node], budget_ms) == "true"
            raw = json.loads(await self._evaluate(frame, "probe", _asked(node, action), budget_ms))
        except FAILURES as error:
            if self._alive.reason is not None:
                return Gone("process_changed")
            gone = self._frame_of(handle) is None or "context" in str(error)
            return Gone("navigated") if gone else Unreadable(str(error))
        if "gone" in raw:
            return Gone(raw["gone"])
        await self._ways.add(frame, raw, budget_ms)
        if action.physical:
            raw["evidence"]["steady"] = steady
        try:
            return Live(
                dispatch.evidence_from(
                    raw["evidence"],
                    raw["compared"],
                    document=handle.document,
                    node=handle.node,
                    other=action.to.node if action.to is not None else None,
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            return Unreadable(f"the evidence is not complete: {error!r}")

    # Acting

    async def perform(
        self, handle: Handle, action: Action, expected: Evidence, *, number: int, budget_ms: int, at: PointHook
    ) -> Dispatch:
        not_sent = self._why_not(handle, action)
        if not_sent is not None:
            return Dispatch(DispatchEnd.NOT_SENT, reached=False, dialog=self._dialog, error=not_sent)
        place = self._frame_of(handle)
        assert place is not None
        frame, node = place
        if frame.context is None:
            return Dispatch(DispatchEnd.NOT_SENT, reached=False, error="the document is not ready")
        signals = self._signals = dispatch.Signals(number)
        self._requests.begin(number)
        about: dict[str, Any] = {
            "context": frame.context,
            "node": node,
            "action": action,
            "expected": expected,
            "budget_ms": budget_ms,
        }
        scrolled = False
        try:
            free, scrolled = await self._ways.reveal(frame, node, action.command, budget_ms)
            if not free:
                return Dispatch(
                    DispatchEnd.CHANGED, reached=False, differences=("hit_test",), preparatory_scroll=scrolled
                )
            if action.physical:
                page = (self._evaluate, self._ways, self._channel, frame, self._frames)
                found = await Physical(*page, signals, budget_ms, at).perform(node, action, expected)
            elif _trusted(action):
                found = await trusted_press(frame.channel, frame.alive, signals, keys=self._channel, at=at, **about)
            elif action.command == "upload":
                found = await upload(frame.channel, signals, at=at, **about)
            else:
                found = await dispatch.perform(frame.channel, frame.alive, signals, at=at, **about)
            return replace(found, preparatory_scroll=True) if scrolled else found
        except FAILURES as error:
            # Only the look before the act raises these: the call that acts was not made.
            return Dispatch(DispatchEnd.NOT_SENT, reached=False, preparatory_scroll=scrolled, error=str(error))
        finally:
            self._requests.end()
            self._signals = None

    def cannot_drag(self, source: Handle, to: Handle) -> str | None:
        same = (source.document, split_node(source.node)[1]) == (to.document, split_node(to.node)[1])
        return None if same else "a drag begins and ends in one document"

    def _why_not(self, handle: Handle, action: Action) -> str | None:
        """Why the call cannot even be made."""
        if self._alive.reason is not None:
            return self._alive.reason
        if self._dialog is not None:
            return f"a {self._dialog.type} dialog blocks the page"
        if self._frame_of(handle) is None:
            return "the document of the element is gone"
        if action.command not in dispatch.COMMANDS and action.command != "upload":
            return f"{action.command} is not supported here"
        if action.command == "drag" and action.to is None:
            return "a drag needs the element that it ends on"
        if action.command == "press" and action.key not in dispatch.KEYS and not _trusted(action):
            return f"the key {action.key} needs trusted keys"
        return None

    async def navigate(self, url: str, *, number: int, budget_ms: int, at: PointHook) -> Navigation:
        if self._alive.reason is not None:
            return Navigation(DispatchEnd.NOT_SENT, error=self._alive.reason)
        if self._dialog is not None:
            why = f"a {self._dialog.type} dialog blocks the page"
            return Navigation(DispatchEnd.NOT_SENT, error=why, dialog=self._dialog)
        signals = self._signals = dispatch.Signals(number)
        self._requests.begin(number, url=url)
        try:
            return await navigation.navigate(
                self._channel,
                self._alive,
                self._frames,
                self._requests,
                signals,
                url=url,
                budget_ms=budget_ms,
                at=at,
                window=self.window,
                ready=self._ready,
            )
        finally:
            self._requests.end()
            self._signals = None

    async def _ready(self, budget_ms: int) -> None:
        await self._parsed([self._frames.main], budget_ms)

    async def _parsed(self, frames: list[Frame], budget_ms: int) -> None:
        """Waits until these documents are parsed, or the budget ends."""
        await asyncio.gather(
            *(self._evaluate(f, "ready", [], max(1, budget_ms)) for f in frames), return_exceptions=True
        )

    # Looking at the rest

    async def window(self) -> WindowState:
        """Title, URL and generation, read together. While the page cannot answer, the last that was known."""
        self._check_alive()
        main = self._frames.main
        if self._dialog is None:
            try:
                raw = json.loads(await self._evaluate(main, "window", [], _WINDOW_MS))
                self._title = raw["title"]
                return WindowState(self._target, raw["title"], raw["url"], main.loader)
            except FAILURES:
                self._check_alive()
        main = self._frames.main
        return WindowState(self._target, self._title, main.url, main.loader)

    def dialog(self) -> Dialog | None:
        return self._dialog

    def _check_alive(self) -> None:
        if self._alive.reason is not None:
            raise AdapterError(self._alive.reason, kind=DetailKind.COMPONENT_LOST)

    async def let_go(self) -> None:
        """Leaves the page as it is."""
        if self._alive.reason is None:
            await self._processes.let_go(self._channel)
        self._alive.lose("the session was closed")
        await self._channel.detach()

    async def close(self) -> None:
        """Closes the page and its context. Never hangs: a browser that does not answer is left to whoever ends it."""
        self._alive.lose("the session was closed")
        await self._processes.detach()
        await self._channel.detach()
        with suppress(Exception):  # a page that cannot be closed any more is closed enough
            await asyncio.wait_for(self._context.close(), _CLOSE_S)


def _asked(node: str, action: Action) -> list[Any]:
    """Only what the evidence depends on goes to the page before the act; a typed text does not."""
    to = split_node(action.to.node)[0] if action.to is not None else None
    return [node, action.command, action.key, action.value if action.command == "select" else None, to]


def _trusted(action: Action) -> bool:
    """A key without an emulated default action. Whether the mode allows it is the guard's question."""
    return action.command == "press" and (action.key or "").rpartition("+")[2] in TRUSTED_KEYS
