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
from deskcert.adapters.linux.calls import BusCall, Impossible, calls_for, chosen_by_row
from deskcert.adapters.linux.evidence import Look, Looked, differences
from deskcert.adapters.linux.physical import PHYSICAL, focus_window, middle, pointer, pressed
from deskcert.adapters.linux.reading import state_bits
from deskcert.adapters.linux.tree import Place
from deskcert.adapters.linux.words import State
from deskcert.adapters.linux.x11 import Desk, windows_of
from deskcert.contract.evidence import Evidence, Known
from deskcert_schema.errors import AdapterError

__all__ = ["Dispatcher"]

_FOCUS_EVERY_S: Final = 0.05
_LEFT_FOR_KEYS_S: Final = 1.0
_NOT_DELIVERED: Final = frozenset(
    f"org.freedesktop.DBus.Error.{name}" for name in ("UnknownObject", "UnknownMethod", "UnknownInterface")
)
"""Answers that rule delivery out: there is nothing there that could have acted."""


class Dispatcher:
    """For one action on one element."""

    def __init__(self, bus: AccessBus, desk: Desk, app: Application, place: Place, *, headed: bool) -> None:
        self._bus, self._desk, self._app, self._place, self._headed = bus, desk, app, place, headed
        self._look = Look(bus, desk, app, place, headed=headed)

    async def perform(self, action: Action, expected: Evidence, *, budget_ms: int, at: PointHook) -> Dispatch:
        deadline = Deadline(budget_ms)
        looked = await self._look.at(action, deadline)
        if (early := _not_as_expected(looked, expected)) is not None:
            return early
        if self._headed and (action.command in PHYSICAL or action.command == "press"):
            return await self._by_hand(action, looked, deadline, at)
        try:
            index = await self._index(looked, deadline)
        except ProcessGone:
            return _not_sent("the process has ended")
        calls = calls_for(action, looked, self._app.toolkit, index)
        if isinstance(calls, Impossible):
            return _not_sent(calls.why, unsupported=True)
        return await self._send(calls, deadline, at)

    async def _index(self, looked: Looked, deadline: Deadline) -> int:
        child = looked.holder[1].ref if looked.holder is not None else self._place.ref
        if chosen_by_row(looked, self._app.toolkit):
            place = await self._bus.get(child, "org.a11y.atspi.TableCell", "Position", deadline)
            return int(place.value[0]) if isinstance(place, Known) else -1
        found = await self._bus.ask(child, words.ACCESSIBLE, "GetIndexInParent", deadline)
        return int(found.value) if isinstance(found, Known) else -1

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
                # The look just before found the object: what is missing is the way to do this to it.
                why = f"the toolkit has no {call.label} here ({name.rpartition('.')[2]})"
                return _not_sent(why, unsupported=True)
            case Refused(name, text):
                return _no_answer(f"{call.label}: {name} {text}"[:200])
            case NotAnswered(why, sent):
                return _no_answer(why) if sent else _not_sent(why)

    async def _by_hand(self, action: Action, looked: Looked, deadline: Deadline, at: PointHook) -> Dispatch:
        """Physical: at the point that the look has just verified."""
        facts = looked.facts
        assert facts is not None
        try:
            if action.command == "press":
                if (why := await self._focused(looked, deadline)) is not None:
                    return _not_sent(why)
                send, label = pressed(action.key or ""), "xtest press"
            else:
                point = middle(facts)
                if point is None:
                    return _not_sent("the element has no place on the screen")
                send, label = pointer(action, point), f"xtest {action.command}"
        except ProcessGone:
            return _not_sent("the process has ended")
        await at("dispatched")
        try:
            await self._desk.run(send, budget_s=max(0.1, deadline.left_s()))
        except AdapterError as error:
            return _no_answer(str(error))
        return await self._settled((label,), deadline)

    async def _focused(self, looked: Looked, deadline: Deadline) -> str | None:
        """Gives the element the keyboard; why not, where it has not got it then. Raises `ProcessGone`."""
        facts, window = looked.facts, looked.window
        assert facts is not None
        if not facts.is_(State.FOCUSED):
            title = window.name.value.strip() if window is not None and isinstance(window.name, Known) else ""
            try:
                on_screen = await self._desk.run(windows_of(self._app.process.pid))
                match [w for w in on_screen if w.shown and w.title.strip() == title]:
                    case [one]:
                        await self._desk.run(focus_window(one.id))
                    case _:
                        return "the window of the element is not known to the X server"
            except AdapterError as error:
                return str(error)
        while deadline.left_s() > 0:
            await self._bus.ask(facts.ref, words.COMPONENT, "GrabFocus", deadline)
            now = await self._bus.ask(facts.ref, words.ACCESSIBLE, "GetState", deadline)
            if isinstance(now, Known) and state_bits(now.value) >> State.FOCUSED & 1:
                return None
            if deadline.left_s() < _LEFT_FOR_KEYS_S:
                break
            await asyncio.sleep(_FOCUS_EVERY_S)
        return "the element does not take the keyboard's focus"

    async def _settled(self, sent: tuple[str, ...], deadline: Deadline) -> Dispatch:
        """The application must answer once more after the moment in which the effect comes: a handler that hangs hides
        what it has done. A process that has ended by then may have ended because of the action."""
        pause = min(self._app.toolkit.effect_after_ms / 1000, max(0.0, deadline.left_s() / 2))
        if pause and sent[0].startswith(("DoAction", "xtest")):
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


def _not_sent(why: str, *, unsupported: bool = False) -> Dispatch:
    return Dispatch(DispatchEnd.NOT_SENT, reached=False, error=why, unsupported=unsupported)


def _no_answer(why: str) -> Dispatch:
    return Dispatch(DispatchEnd.NO_ANSWER, reached=False, error=why)
