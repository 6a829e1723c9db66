"""(7) Dispatch on the desktop: E once more, then one call (or the few that one selection takes), then what came of it.

D-Bus has no form in which the application itself would compare E, so the look and the call are two messages, one
right after the other; that gap is the desktop's limit, and `differences` are found in the look. An answer says that the
toolkit took the call, not that anything happened: there is no receipt, so `reached` is never claimed.

| the answer | end |
| --- | --- |
| none in time, connection or process lost under way, false, an error that does not rule delivery out | no_answer |
| the bus knows no such process; the object or method does not exist | not_sent |
| taken, and the application then does not answer any more | no_answer |
| taken | completed |
"""

from __future__ import annotations

import asyncio
from typing import Final

from deskcert.adapters.base import Action, Dispatch, DispatchEnd, Gone, Live, PointHook, Unreadable
from deskcert.adapters.linux import words
from deskcert.adapters.linux.application import Application
from deskcert.adapters.linux.bus import AccessBus, Answered, Deadline, NotAnswered, ProcessGone, Refused
from deskcert.adapters.linux.calls import BusCall, Impossible, calls_for
from deskcert.adapters.linux.evidence import Look, Looked, differences
from deskcert.adapters.linux.tree import Place
from deskcert.contract.evidence import Evidence, Known

__all__ = ["Dispatcher"]

_NOT_DELIVERED: Final = frozenset(
    f"org.freedesktop.DBus.Error.{name}" for name in ("UnknownObject", "UnknownMethod", "UnknownInterface")
)
"""Answers that rule delivery out: there is nothing there that could have acted."""


class Dispatcher:
    """For one action on one element."""

    def __init__(self, bus: AccessBus, app: Application, place: Place, *, headed: bool) -> None:
        self._bus, self._app, self._place = bus, app, place
        self._look = Look(bus, app, place, headed=headed)

    async def perform(self, action: Action, expected: Evidence, *, budget_ms: int, at: PointHook) -> Dispatch:
        deadline = Deadline(budget_ms, call_ms=budget_ms)
        looked = await self._look.at(action, deadline)
        if (early := _not_as_expected(looked, expected)) is not None:
            return early
        try:
            index = await self._index(deadline)
        except ProcessGone:
            return _not_sent("the process has ended")
        calls = calls_for(action, looked, self._app.toolkit, index)
        if isinstance(calls, Impossible):
            return _not_sent(calls.why)
        return await self._send(calls, deadline, at)

    async def _index(self, deadline: Deadline) -> int:
        found = await self._bus.ask(self._place.ref, words.ACCESSIBLE, "GetIndexInParent", deadline)
        return int(found.value) if isinstance(found, Known) else self._place.index

    async def _send(self, calls: tuple[BusCall, ...], deadline: Deadline, at: PointHook) -> Dispatch:
        sent: list[str] = []
        for call in calls:
            task = asyncio.ensure_future(self._one(call, deadline))
            for _ in range(3):  # lets the call get as far as the socket
                await asyncio.sleep(0)
            if not sent:
                await at("dispatched")
            end = await task
            if end is not None:
                if not sent:
                    return end
                stopped = tuple(sent)
                return Dispatch(DispatchEnd.STOPPED, False, stopped, stopped_before=call.label, error=end.error)
            sent.append(call.label)
        return await self._settled(tuple(sent), deadline)

    async def _one(self, call: BusCall, deadline: Deadline) -> Dispatch | None:
        """None: the toolkit took it."""
        try:
            answer = await self._bus.send(
                call.ref, call.interface, call.member, deadline, signature=call.signature, body=call.body
            )
        except ProcessGone:
            return _not_sent("the process has ended")
        match answer:
            case Answered(body) if body and body[0] is False:
                return _no_answer(f"the toolkit answered that {call.label} did not succeed")
            case Answered():
                return None
            case Refused(name, text) if name in _NOT_DELIVERED:
                return _not_sent(f"{call.label}: {name.rpartition('.')[2]} {text}".strip()[:200])
            case Refused(name, text):
                return _no_answer(f"{call.label}: {name} {text}"[:200])
            case NotAnswered(why, sent):
                return _no_answer(why) if sent else _not_sent(why)

    async def _settled(self, sent: tuple[str, ...], deadline: Deadline) -> Dispatch:
        """The application must answer once more after the moment in which the effect comes: a handler that hangs hides
        what it has done. A process that has ended by then may have ended because of the action."""
        pause = min(self._app.toolkit.effect_after_ms / 1000, max(0.0, deadline.left_s() / 2))
        if pause and sent[0].startswith("DoAction"):
            await asyncio.sleep(pause)
        try:
            answer = await self._bus.send(self._app.root, words.ACCESSIBLE, "GetState", deadline)
        except ProcessGone:
            return Dispatch(DispatchEnd.COMPLETED, False, sent)
        if isinstance(answer, NotAnswered):
            return Dispatch(DispatchEnd.NO_ANSWER, False, sent, error=answer.why)
        return Dispatch(DispatchEnd.COMPLETED, False, sent)


def _not_as_expected(looked: Looked, expected: Evidence) -> Dispatch | None:
    match looked.probed:
        case Gone(reason):
            return _not_sent(f"the target is gone ({reason})")
        case Unreadable(why):
            return _not_sent(f"the target could not be read: {why}")
        case Live(live) if live.digest != expected.digest:
            changed = differences(live, expected)
            return Dispatch(DispatchEnd.CHANGED, reached=False, differences=changed, live=live)
        case _:
            return None


def _not_sent(why: str) -> Dispatch:
    return Dispatch(DispatchEnd.NOT_SENT, reached=False, error=why)


def _no_answer(why: str) -> Dispatch:
    return Dispatch(DispatchEnd.NO_ANSWER, reached=False, error=why)
