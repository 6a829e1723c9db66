"""Which action caused a request that the proxy saw: joined from the browser's own request events.

Pure. A request of the browser and a request at the proxy are the same when method and URL are; among several, the
earliest that is not taken yet. `causal` beats `window`; what the browser told nothing about is `window` while an
action's span is open, and `none` after it. A write with `none` is itself a finding, and scoring's to make.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deskcert_schema.vocabulary import NetworkHow

__all__ = ["Attributed", "Attributor", "Seen", "join"]


_MOST: Final = 64
"""Requests alike that wait for their record: what came out of a cache never gets one."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as the browser told of it: `how` as the adapter knows it, `intent` the number of the intent record."""

    method: str
    url: str
    how: NetworkHow
    intent: int | None


@dataclass(frozen=True, slots=True)
class Attributed:
    intent: int | None
    how: NetworkHow

    def recorded(self) -> dict[str, Any]:
        return {"how": self.how.value} | ({"intent": self.intent} if self.intent is not None else {})


class Attributor:
    """The join, as it goes: tell it what the browser saw and which span is open; ask for each record."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], deque[Seen]] = defaultdict(lambda: deque(maxlen=_MOST))
        self._span: int | None = None

    def saw(self, seen: Seen) -> None:
        self._seen[_key(seen.method, seen.url)].append(seen)

    def begin(self, intent: int) -> None:
        """An action's span opens: from its intent to the end of its settle time."""
        self._span = intent

    def end(self) -> None:
        self._span = None

    def knows(self, method: str, url: str) -> bool:
        return bool(self._seen.get(_key(method, url)))

    def of(self, method: str, url: str) -> Attributed:
        """Takes one request of the browser's."""
        waiting = self._seen.get(_key(method, url))
        if waiting:
            causal = next((seen for seen in waiting if seen.how is NetworkHow.CAUSAL), None)
            found = causal or waiting[0]
            waiting.remove(found)
            if found.how is not NetworkHow.NONE and found.intent is not None:
                return Attributed(found.intent, found.how)
        if self._span is not None:
            return Attributed(self._span, NetworkHow.WINDOW)
        return Attributed(None, NetworkHow.NONE)


def _key(method: str, url: str) -> tuple[str, str]:
    return method.upper(), url.partition("#")[0]


def join(requests: Iterable[Seen], records: Iterable[Mapping[str, Any]]) -> list[Attributed]:
    """The same over a finished run. `records`, in the ledger's order: `action.intent` and `action.result` open and
    close a span; each `net.allowed` and `net.blocked`, with its `url` opened, gets one answer."""
    attributor = Attributor()
    for seen in requests:
        attributor.saw(seen)
    answers = []
    for record in records:
        match record.get("kind"):
            case "action.intent":
                attributor.begin(int(record["seq"]))
            case "action.result":
                attributor.end()
            case "net.allowed" | "net.blocked":
                answers.append(attributor.of(str(record["method"]), str(record.get("url", ""))))
    return answers
