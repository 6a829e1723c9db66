"""What every way in talks to: something that handles commands, and a gate in front of it for impolite clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from deskcert.contract.envelope import failure
from deskcert.session.answers import not_delivered
from deskcert_schema.vocabulary import Code

__all__ = ["MAX_WAITING", "About", "Gate", "Handle"]

type Handle = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Command and arguments in, envelope out. Never raises for what an agent sends."""

MAX_WAITING: Final = 64
"""Commands of one client that may wait for their turn. An agent has one at a time."""


@dataclass(frozen=True, slots=True)
class About:
    """What a client may know about its session, beside what the commands answer."""

    run: str
    task: str = ""
    start_url: str = ""
    policy: Mapping[str, Any] = field(default_factory=dict)
    """The policy document. Agents may read the rules: keeping to them must not depend on not knowing them."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Isolation, proxy, custody and the like, as `run.start` has them."""
    desktop: bool = False
    """The session guards a program on a desktop, not a page."""


class Gate:
    """Passes commands on, and remembers the newest snapshot's text. What is over `MAX_WAITING` is turned away at once:
    nothing is dispatched, and a flood fills no ledger."""

    def __init__(self, handle: Handle, *, most: int = MAX_WAITING) -> None:
        self._handle, self._most = handle, most
        self._waiting = 0
        self.turned_away = 0
        self.newest: Mapping[str, Any] | None = None
        """Data of the newest snapshot answer."""

    async def __call__(self, command: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._waiting >= self._most:
            self.turned_away += 1
            why = f"{self._waiting} commands of this client wait already; send one, and wait for its answer"
            return failure(command, not_delivered(Code.APP_UNRESPONSIVE, why))
        self._waiting += 1
        try:
            envelope = await self._handle(command, args)
        finally:
            self._waiting -= 1
        if command == "snapshot" and envelope.get("ok") is True:
            self.newest = envelope["data"]
        return envelope
