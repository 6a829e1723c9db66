"""Completes the proxy's records with what the browser tells, as both come in.

The browser's word and the proxy's record of one request come from two processes, in either order. A record waits a
moment for its request; then it is put down to the open span, or to nothing. Everything here happens in one event loop,
which both sides call into.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final

from deskcert_ledger import Ack, Secret
from deskcert_proxy.attribution import Attributor, Seen
from deskcert_schema.vocabulary import NetworkHow

__all__ = ["Joining"]

PATIENCE_S: Final = 0.25
"""How long a record waits for the browser's word about its request: workers' requests are never told."""
SETTLE_S: Final = 1.0
"""How long after an action's result a request without a word is still put down to it: as long as the adapter does."""
_JOINED: Final = frozenset({"net.allowed", "net.blocked"})

type _Waiting = deque[tuple[Future[Mapping[str, Any]], dict[str, Any]]]


class Joining:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._attributor = Attributor()
        self._waiting: dict[tuple[str, str], _Waiting] = defaultdict(deque)
        self._closing: asyncio.TimerHandle | None = None

    # -- the browser's side

    def saw(self, method: str, url: str, how: NetworkHow, intent: int | None) -> None:
        """`intent`: 0 is the run's first page, which is no action."""
        self._attributor.saw(Seen(method, url, how if intent else NetworkHow.NONE, intent or None))
        waiting = self._waiting.get(_key(method, url))
        if waiting:
            self._answer(*waiting.popleft())

    # -- the guard's side

    def watching(self, ledger: Any) -> _Watched:
        """The same ledger, for the session: its intents and results open and close the spans."""
        return _Watched(ledger, self._loop, self._noted)

    def _noted(self, kind: str, seq: int) -> None:
        if self._closing is not None:
            self._closing.cancel()
        if kind == "action.intent":
            self._attributor.begin(seq)
        else:
            self._closing = self._loop.call_later(SETTLE_S, self._attributor.end)

    # -- the proxy's side

    def complete(self, kind: str, payload: dict[str, Any]) -> Mapping[str, Any] | Future[Mapping[str, Any]]:
        """`socket_server.Complete`. Called by the socket's thread."""
        if kind not in _JOINED:
            return payload
        future: Future[Mapping[str, Any]] = Future()
        self._loop.call_soon_threadsafe(self._wanted, future, payload)
        return future

    def _wanted(self, future: Future[Mapping[str, Any]], payload: dict[str, Any]) -> None:
        method, url = _request(payload)
        if url is None or self._attributor.knows(method, url):
            self._answer(future, payload)
            return
        waiting = self._waiting[_key(method, url)]
        waiting.append((future, payload))
        self._loop.call_later(PATIENCE_S, self._give_up, _key(method, url), (future, payload))

    def _give_up(self, key: tuple[str, str], entry: tuple[Future[Mapping[str, Any]], dict[str, Any]]) -> None:
        if entry in self._waiting.get(key, ()):
            self._waiting[key].remove(entry)
            self._answer(*entry)
        if not self._waiting.get(key, True):
            del self._waiting[key]

    def _answer(self, future: Future[Mapping[str, Any]], payload: dict[str, Any]) -> None:
        method, url = _request(payload)
        future.set_result(payload | self._attributor.of(method, url or "").recorded())

    def flush(self) -> None:
        """Nothing waits any longer: the browser is gone."""
        for waiting in self._waiting.values():
            while waiting:
                self._answer(*waiting.popleft())


class _Watched:
    def __init__(self, ledger: Any, loop: asyncio.AbstractEventLoop, noted: Callable[[str, int], None]) -> None:
        self._ledger, self._loop, self._noted = ledger, loop, noted

    def submit(self, kind: str, payload: Mapping[str, Any], *, w: str = "guard", ack: Ack = Ack.DURABLE) -> Any:
        future = self._ledger.submit(kind, payload, w=w, ack=ack)
        if kind in ("action.intent", "action.result"):
            # Before the one who waits for it is woken: a span is open before anything is dispatched.
            future.add_done_callback(lambda done: self._done(kind, done))
        return future

    def _done(self, kind: str, done: Future[Any]) -> None:
        if done.exception() is None:
            self._loop.call_soon_threadsafe(self._noted, kind, done.result().seq)


def _request(payload: Mapping[str, Any]) -> tuple[str, str | None]:
    url = payload.get("url")
    return str(payload.get("method", "")), url.value if isinstance(url, Secret) and isinstance(url.value, str) else None


def _key(method: str, url: str) -> tuple[str, str]:
    return method.upper(), url.partition("#")[0]
