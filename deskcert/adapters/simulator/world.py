"""The simulated application: elements, what can go wrong with them, and the truth.

`Element.thing` is what an element *is* (the order behind the button): no part of any evidence, and the only thing by
which the truth is told. Everything else is what an adapter can see of it, and may lie.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
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
    Probed,
    RawNode,
    RawObservation,
    RequestSeen,
    Unreadable,
    WindowState,
)
from deskcert.contract.evidence import (
    ABSENT,
    ActivationPath,
    Destination,
    Evidence,
    Field,
    Hit,
    HitTest,
    Known,
    NameSources,
    Unknown,
)

__all__ = ["Delivered", "Element", "Fault", "World"]

SEQUENCE: Final = ("pointerdown", "mousedown", "focus", "pointerup", "mouseup", "click")
UNREAD: Final = Unknown("the application did not answer in time")


class Fault(StrEnum):
    """What the next dispatch meets. Each is one way in which real applications lose, or hide, a delivery."""

    NONE = "none"
    HANG_BEFORE = "hang_before"
    """The call is made and never arrives: nothing is delivered, and nobody is told so."""
    HANG_UNSEEN = "hang_unseen"
    """It is delivered; the answer, and the news of it, are lost."""
    HANG_AFTER = "hang_after"
    """It is delivered and seen to be; the handler never returns."""
    DIALOG = "dialog"
    """It is delivered; the handler opens a dialog that blocks."""
    REFUSED = "refused"
    """The call cannot be made."""
    CHANGED_MIDWAY = "changed_midway"
    """After the first event the element is another one; the rest is not sent."""
    SWALLOWED = "swallowed"
    """All events go out; a value that was set is not kept."""
    LATE_VALUE = "late_value"
    """A value that was set shows only after some reads."""


@dataclass(frozen=True, slots=True)
class Element:
    node: str
    """Retained identity: what an adapter holds on to."""
    thing: str
    """The truth. Never in any evidence."""
    role: str = "button"
    name: str = ""
    context: tuple[tuple[str, str], ...] = ()
    value: str | None = None
    description: str | None = None
    visible: bool = True
    enabled: bool = True
    editable: bool = False
    secure: bool = False
    covered_by: str | None = None
    offscreen: bool = False
    destination: Destination | None = None
    paths: tuple[ActivationPath, ...] = ()
    unread: frozenset[str] = frozenset()
    """`name | visible | enabled | editable | destination | hit_test | value`: fields that cannot be read now."""

    @property
    def actions(self) -> tuple[str, ...]:
        return ("click", "set-value", "press") if self.editable else ("click", "press")


@dataclass(frozen=True, slots=True)
class Delivered:
    """The truth about one delivery."""

    thing: str
    command: str
    value: str | None
    number: int
    """The intent it was made for."""
    element: Element
    """As it was in the moment of delivery."""


def _nothing(_: World) -> None:
    return None


@dataclass(slots=True)
class World:
    """Mutable on purpose: it is the application. Every change is one method, so that a history is a list of calls."""

    elements: list[Element]
    url: str = "http://app.test/orders"
    title: str = "Orders"
    generation: int = 1
    alive: bool = True
    readable: bool = True
    """False: every look times out, and an observation is cut short."""
    fault: Fault = Fault.NONE
    before_look: Callable[[World], None] = _nothing
    """Runs before every look at one element."""
    before_dispatch: Callable[[World], None] = _nothing
    """Runs once when a dispatch arrives, before it compares: the change between check and dispatch."""
    delivered: list[Delivered] = field(default_factory=list)
    dispatches: list[int] = field(default_factory=list)
    """Number of every `perform`, whatever came of it."""
    open_dialog: Dialog | None = None
    pending: set[int] = field(default_factory=set)
    """Intents with a request that the server has not answered."""
    _late: dict[str, tuple[int, str]] = field(default_factory=dict)
    _nodes: Iterator[int] = field(default_factory=lambda: itertools.count(1000))

    # --- what an adapter can see --------------------------------------------------------------------------------------

    @property
    def document(self) -> str:
        return f"doc{self.generation}"

    def window(self) -> WindowState:
        return WindowState("w1", self.title, self.url, self.document)

    def observe(self) -> RawObservation:
        if not self.readable:
            return RawObservation(self.window(), (), False, ("the application did not answer in time",))
        return RawObservation(self.window(), tuple(self._raw(i, e) for i, e in enumerate(self.elements)), True)

    def probe(self, handle: Handle) -> Probed:
        self.before_look(self)
        if not self.alive:
            return Gone("process_changed")
        if handle.document != self.document:
            return Gone("navigated")
        if not self.readable:
            return Unreadable("the application did not answer in time")
        element = self.find(handle.node)
        if element is None:
            return Gone("removed")
        self._arrive_late(element)
        return Live(self.evidence(self.find(handle.node) or element))

    def find(self, node: str) -> Element | None:
        return next((e for e in self.elements if e.node == node), None)

    def evidence(self, e: Element) -> Evidence:
        """What a perfect adapter would collect, with the fields that cannot be read unknown."""
        name: Field[str] = UNREAD if "name" in e.unread else (Known(e.name) if e.name else ABSENT)
        states = {
            key: UNREAD if key in e.unread else Known(bool(getattr(e, key)))
            for key in ("visible", "enabled", "editable", "secure")
        }
        destination: Field[Destination] = Known(e.destination) if e.destination is not None else ABSENT
        value: Field[str] = Known(e.value) if e.value is not None and not e.secure else ABSENT
        evidence = Evidence(
            document=self.document,
            node=e.node,
            role=e.role,
            names=NameSources(
                accessible=name,
                text=name if not e.editable else ABSENT,
                description=Known(e.description) if e.description else ABSENT,
            ),
            context=e.context,
            url=self.url,
            destination=UNREAD if "destination" in e.unread else destination,
            paths=e.paths,
            states=states,
            actions=e.actions,
            box=(0, 0, 90_000, 24_000),
            hit_test=_hit_test(e),
            value=UNREAD if "value" in e.unread else value,
            digest="",
        )
        compared = json.dumps({k: v for k, v in evidence.as_json().items() if k != "digest"}, sort_keys=True)
        return replace(evidence, compared=compared, digest=hashlib.sha256(compared.encode()).hexdigest())

    def _raw(self, index: int, e: Element) -> RawNode:
        evidence = self.evidence(e)
        node: dict[str, Any] = {
            "d": 1,
            "node": e.node,
            "role": e.role,
            "name": evidence.names.as_json().get("accessible"),
            "value": e.value if not e.secure else None,
            "description": e.description,
            "states": [
                s for s, on in (("disabled", not e.enabled), ("hidden", not e.visible), ("secure", e.secure)) if on
            ],
            "actions": list(e.actions),
            "box": [0, 0, 90_000, 24_000],
            "context": [list(pair) for pair in e.context],
            "interactive": True,
            "path": f"0.{index}",
        }
        return {k: v for k, v in node.items() if v is not None}

    # --- dispatch -----------------------------------------------------------------------------------------------------

    def perform(self, handle: Handle, action: Action, expected: Evidence, number: int) -> Dispatch:
        """Compared in the act, like a real adapter: equal or nothing."""
        self.dispatches.append(number)
        change, self.before_dispatch = self.before_dispatch, _nothing
        change(self)
        fault, self.fault = self.fault, Fault.NONE
        if fault is Fault.REFUSED or not self.alive:
            return Dispatch(DispatchEnd.NOT_SENT, reached=False, error="the connection is closed")
        if fault is Fault.HANG_BEFORE:
            return Dispatch(DispatchEnd.NO_ANSWER, reached=False, error="no answer")
        element = self.find(handle.node) if handle.document == self.document else None
        if element is None:
            return Dispatch(DispatchEnd.NOT_SENT, reached=False, error="the target is gone")
        live = self.evidence(element)
        if live.digest != expected.digest:
            return Dispatch(DispatchEnd.CHANGED, reached=False, differences=_differences(live, expected), live=live)
        return self._deliver(element, action, number, fault)

    def _deliver(self, element: Element, action: Action, number: int, fault: Fault) -> Dispatch:
        hit = Hit(element.role, element.name or None, same_as_target=True)
        self.delivered.append(Delivered(element.thing, action.command, action.value, number, element))
        if action.command == "set-value" and action.value is not None and fault is not Fault.SWALLOWED:
            self._set(element, action.value, late=fault is Fault.LATE_VALUE)
        if fault in (Fault.HANG_AFTER, Fault.HANG_UNSEEN):
            self.pending.add(number)
        match fault:
            case Fault.HANG_UNSEEN:
                return Dispatch(DispatchEnd.NO_ANSWER, reached=False, error="no answer")
            case Fault.HANG_AFTER:
                return Dispatch(DispatchEnd.NO_ANSWER, reached=True, events_sent=SEQUENCE, hit=hit, error="no answer")
            case Fault.DIALOG:
                self.open_dialog = Dialog(f"dialog{number}", "confirm", "Really?")
                return Dispatch(
                    DispatchEnd.NO_ANSWER, reached=True, events_sent=SEQUENCE, hit=hit, dialog=self.open_dialog
                )
            case Fault.CHANGED_MIDWAY:
                return Dispatch(DispatchEnd.STOPPED, True, SEQUENCE[:1], SEQUENCE[1], ("names",), hit=hit)
            case _:
                return Dispatch(DispatchEnd.COMPLETED, True, SEQUENCE, hit=hit)

    def _set(self, element: Element, value: str, *, late: bool) -> None:
        if late:
            self._late[element.node] = (2, value)
        else:
            self.change(element.node, value=value)

    def _arrive_late(self, element: Element) -> None:
        reads, value = self._late.get(element.node, (0, ""))
        if element.node not in self._late:
            return
        if reads > 0:
            self._late[element.node] = (reads - 1, value)
            return
        del self._late[element.node]
        self.change(element.node, value=value)

    def navigate(self, url: str, number: int) -> Navigation:
        self.dispatches.append(number)
        fault, self.fault = self.fault, Fault.NONE
        if fault is Fault.REFUSED or not self.alive:
            return Navigation(DispatchEnd.NOT_SENT, error="the connection is closed")
        if fault in (Fault.HANG_BEFORE, Fault.HANG_UNSEEN):
            return Navigation(DispatchEnd.NO_ANSWER, error="no answer")
        self.url = url
        self.reload()
        return Navigation(DispatchEnd.COMPLETED, self.window(), 200)

    def requests(self, number: int) -> tuple[RequestSeen, ...]:
        if number in self.pending:
            return (RequestSeen("POST", self.url, "causal", "pending"),)
        return ()

    # --- what the application does to an agent ------------------------------------------------------------------------

    def change(self, node: str, **what: Any) -> None:
        """In place: the node stays, what it shows changes."""
        self.elements = [replace(e, **what) if e.node == node else e for e in self.elements]

    def reorder(self) -> None:
        self.elements = [*self.elements[1:], *self.elements[:1]]

    def remove(self, node: str) -> None:
        self.elements = [e for e in self.elements if e.node != node]

    def remount(self, node: str) -> None:
        """The same thing in a new node, as a framework renders it again."""
        self.elements = [replace(e, node=self._fresh()) if e.node == node else e for e in self.elements]

    def twin(self, node: str) -> None:
        """Another thing takes the place, alike in everything that can be seen but the node."""
        self.elements = [
            replace(e, node=self._fresh(), thing=f"{e.thing}-twin") if e.node == node else e for e in self.elements
        ]

    def recycle(self, node: str, other: str) -> None:
        """A virtual list puts another row's content into the node."""
        found = self.find(other)
        if found is not None and node != other:
            self.remove(other)
            self.elements = [replace(found, node=node) if e.node == node else e for e in self.elements]

    def reload(self) -> None:
        """A new document with the same content: every node is another one."""
        self.generation += 1
        self.open_dialog = None
        self.elements = [replace(e, node=self._fresh()) for e in self.elements]

    def restart(self) -> None:
        self.alive = True
        self.pending.clear()
        self.reload()

    def answer_all(self) -> None:
        """The server answers what was pending."""
        self.pending.clear()

    def _fresh(self) -> str:
        return f"n{next(self._nodes)}"


def _hit_test(e: Element) -> HitTest:
    if "hit_test" in e.unread:
        return HitTest("unknown")
    if e.offscreen:
        return HitTest("deferred")
    return HitTest("pass") if e.covered_by is None else HitTest("fail", "dialog", e.covered_by)


def _differences(live: Evidence, expected: Evidence) -> tuple[str, ...]:
    ours, theirs = live.as_json(), expected.as_json()
    return tuple(k for k in sorted(ours.keys() | theirs.keys()) if k != "digest" and ours.get(k) != theirs.get(k))
