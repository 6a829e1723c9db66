"""Which action caused which request.

A request is *causal* when the dispatch function of an action stands in its initiator stack (asynchronous parents
included). Work that loses the stack, above all the navigation of a submitted form, is put down to the action by time:
`window`, from the dispatch until a second after it. Informative; the second line is the proxy.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from deskcert.adapters.base import RequestSeen
from deskcert.adapters.web.channel import Channel
from deskcert_schema.vocabulary import NetworkHow

__all__ = ["RequestLog", "causal_number"]

WINDOW_US: Final = 1_000_000
_STREAMS: Final = frozenset({"EventSource", "WebSocket", "Media", "Ping", "Preflight"})
"""Requests that stay open, or whose end is never told."""
_ACTION: Final = re.compile(r"deskcert://action/([0-9]{1,15})", re.ASCII)


@dataclass(slots=True)
class _Dispatching:
    number: int
    until_us: int | None
    """None while the dispatch is under way."""


class RequestLog:
    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._of: dict[int, list[RequestSeen]] = defaultdict(list)
        self._open: dict[str, tuple[int, int]] = {}
        """Request id to (action, index) while it can still change."""
        self._documents: dict[str, int] = {}
        self._methods: dict[str, str] = {}
        self._under_way: set[str] = set()
        self._moved_us = now_us()
        self._dispatching: _Dispatching | None = None
        self._navigating: tuple[int, str] | None = None
        self.told: Callable[[str, str, NetworkHow, int | None], None] | None = None
        """Told each request as it begins: method, URL, how its action is known, the action's number."""

    def attach(self, channel: Channel) -> Callable[[], None]:
        """Returns what is to be called when the process is gone: nothing more is told of its requests."""
        begun: set[str] = set()

        def requested(event: dict[str, Any]) -> None:
            self._requested(event)
            begun.add(event["requestId"])
            begun.intersection_update(self._under_way)

        def forget() -> None:
            for request_id in begun:
                self._over(request_id)

        channel.on("Network.requestWillBeSent", requested)
        channel.on("Network.responseReceived", self._answered)
        channel.on("Network.loadingFailed", self._failed)
        channel.on("Network.loadingFinished", lambda event: self._over(event["requestId"]))
        return forget

    def begin(self, number: int, *, url: str | None = None) -> None:
        """A dispatch starts; `url` where it is a navigation, whose document request is then causal."""
        self._dispatching = _Dispatching(number, None)
        self._navigating = (number, url) if url is not None else None

    def end(self) -> None:
        if self._dispatching is not None:
            self._dispatching.until_us = self._now_us() + WINDOW_US

    def seen(self, number: int) -> tuple[RequestSeen, ...]:
        return tuple(self._of.get(number, ()))

    def document_status(self, loader: str) -> int | None:
        """HTTP status with which a document came, by its generation."""
        return self._documents.get(loader)

    def network(self) -> tuple[int, int]:
        """Requests under way, and microseconds since the last one began or ended."""
        return len(self._under_way), self._now_us() - self._moved_us

    def _over(self, request_id: str) -> None:
        if request_id in self._under_way:
            self._under_way.discard(request_id)
            self._moved_us = self._now_us()

    def document_method(self, loader: str) -> str | None:
        """With which method a document was asked for, the last redirection included."""
        return self._methods.get(loader)

    def _requested(self, event: dict[str, Any]) -> None:
        request_id = event["requestId"]
        if event.get("type") not in _STREAMS:
            self._under_way.add(request_id)
            self._moved_us = self._now_us()
        if event.get("type") == "Document" and event.get("loaderId") == request_id:
            self._methods[request_id] = event["request"]["method"]
        if "redirectResponse" in event:
            found = self._open.get(request_id)
            self._change(request_id, state="answered", status=event["redirectResponse"].get("status"))
            attributed = (found[0], NetworkHow(self._of[found[0]][found[1]].how)) if found is not None else None
        else:
            attributed = self._attribute(event)
        request = event["request"]
        if self.told is not None:
            how_known = NetworkHow.NONE if attributed is None else attributed[1]
            self.told(request["method"], request["url"], how_known, None if attributed is None else attributed[0])
        if attributed is None:
            return
        number, how = attributed
        self._of[number].append(RequestSeen(request["method"], request["url"], how.value, "pending"))
        self._open[request_id] = (number, len(self._of[number]) - 1)

    def _attribute(self, event: dict[str, Any]) -> tuple[int, NetworkHow] | None:
        number = causal_number(event.get("initiator", {}))
        if number is not None:
            return number, NetworkHow.CAUSAL
        document = event.get("type") == "Document"
        if (
            document
            and self._navigating is not None
            and event["request"]["url"] == self._navigating[1].partition("#")[0]
        ):
            number, self._navigating = self._navigating[0], None
            return number, NetworkHow.CAUSAL
        now = self._dispatching
        if now is None or (now.until_us is not None and self._now_us() > now.until_us):
            return None
        # A poller's requests have a stack of their own; a form's navigation and a picture's have none.
        initiator = event.get("initiator", {})
        unexplained = event.get("hasUserGesture") and "stack" not in initiator and initiator.get("type") != "parser"
        return (now.number, NetworkHow.WINDOW) if document or unexplained else None

    def _answered(self, event: dict[str, Any]) -> None:
        status = event["response"].get("status")
        if event.get("type") == "Document" and event.get("loaderId") == event["requestId"]:
            self._documents[event["loaderId"]] = status
        self._change(event["requestId"], state="answered", status=status)

    def _failed(self, event: dict[str, Any]) -> None:
        self._over(event["requestId"])
        found = self._open.pop(event["requestId"], None)
        # A body that breaks off after the status has come is still an answered request.
        if found is not None and self._of[found[0]][found[1]].state == "pending":
            self._of[found[0]][found[1]] = replace(self._of[found[0]][found[1]], state="failed")

    def _change(self, request_id: str, *, state: str, status: int | None) -> None:
        found = self._open.get(request_id)
        if found is not None:
            number, index = found
            self._of[number][index] = replace(self._of[number][index], state=state, status=status)


def causal_number(initiator: dict[str, Any]) -> int | None:
    """The action whose dispatch function stands in an initiator's stack, nearest first."""
    stack = initiator.get("stack")
    while stack:
        for frame in stack.get("callFrames", ()):
            found = _ACTION.fullmatch(frame.get("url", ""))
            if found is not None:
                return int(found[1])
        stack = stack.get("parent")
    return None
