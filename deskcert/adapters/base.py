"""The one interface that every adapter implements. The guard never knows which one it is talking to.

Public methods raise `AdapterError` only. Every call has its own deadline: an adapter never waits longer than its
`budget_ms` plus a small grace, whatever the application does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from deskcert.contract.evidence import Evidence, Hit

__all__ = [
    "Action",
    "Adapter",
    "Dialog",
    "Dispatch",
    "DispatchEnd",
    "DownloadAdapter",
    "DownloadKeeper",
    "DownloadSeen",
    "DragAdapter",
    "Entry",
    "Gone",
    "Handle",
    "Happened",
    "Live",
    "Navigation",
    "ObserveOptions",
    "PageAction",
    "PageAdapter",
    "PictureAdapter",
    "PointHook",
    "Probed",
    "RawNode",
    "RawObservation",
    "RequestSeen",
    "Tab",
    "TabAdapter",
    "Unreadable",
    "WindowState",
]


@dataclass(frozen=True, slots=True)
class Handle:
    """A retained native object: the document's (or process's) generation and the object's id in it."""

    document: str
    node: str


type RawNode = Mapping[str, Any]
"""One node, flat in pre-order. Keys (absent ones left out, unknown ones `{"unknown": why}`):
`d` depth int · `node` retained id · `role` · `name` accessible name · `value` · `description`
· `native_id` {kind, value}
· `states` list of tokens that are known true (`disabled checked expanded collapsed selected focused readonly required
secure pressed indeterminate hidden offscreen editable`) · `actions` list of commands · `box` [x,y,w,h] in 1/1000 px
· `context` [[kind,label],…] (interactive nodes) · `interactive` bool · `path` structural path "0.3.1"
· `children_count`, `truncated` true where the subtree was cut · `size` known size of a virtualised list · `url` of a
frame's document · `opaque` true for what could not be read · `text` for statictext nodes."""


@dataclass(frozen=True, slots=True)
class ObserveOptions:
    max_depth: int = 50
    max_nodes: int = 50_000
    budget_ms: int = 3_000
    interactive_only: bool = False
    include_bounds: bool = False
    root: Handle | None = None
    """Only this element and what is in it."""


@dataclass(frozen=True, slots=True)
class WindowState:
    id: str
    title: str
    url: str
    document: str
    """Generation of the top document."""


@dataclass(frozen=True, slots=True)
class RawObservation:
    window: WindowState
    nodes: tuple[RawNode, ...]
    complete: bool
    reasons: tuple[str, ...] = ()
    """Why it is not complete, one sentence each."""
    observe_us: int = 0
    cut: bool = False
    """A budget ended it, not something of the page."""


@dataclass(frozen=True, slots=True)
class Gone:
    reason: str
    """`removed | navigated | process_changed`"""


@dataclass(frozen=True, slots=True)
class Unreadable:
    why: str


@dataclass(frozen=True, slots=True)
class Live:
    evidence: Evidence


type Probed = Gone | Unreadable | Live


@dataclass(frozen=True, slots=True)
class Action:
    """What is to be done, in full. `value` for set-value and type; for select the options, one a line; `key` for press;
    `direction` (up, down, left, right) and `amount` (notches of a wheel) for scroll."""

    command: str
    value: str | None = None
    key: str | None = None
    direction: str | None = None
    amount: int = 0
    to: Handle | None = None
    """For drag: the element that it ends on."""
    physical: bool = False
    """By the pointer and the keyboard that a person has: the session is headed, and the command has such a form."""


class DispatchEnd(StrEnum):
    COMPLETED = "completed"
    """The whole sequence went out and the call answered."""
    CHANGED = "changed"
    """E differed before the first event: nothing was sent."""
    STOPPED = "stopped"
    """E differed after the first event: the rest was not sent."""
    NO_ANSWER = "no_answer"
    """The call was made; its answer did not come in time, or the page or browser died with it."""
    NOT_SENT = "not_sent"
    """The call could not even be made (the target was gone, or the connection already closed): nothing was sent."""


@dataclass(frozen=True, slots=True)
class Dialog:
    id: str
    type: str
    """`alert | confirm | prompt | beforeunload`"""
    text: str
    opened_by: int | None = None
    """Number of the action whose dispatch was under way when it opened."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """What is known about one dispatch, from facts only."""

    end: DispatchEnd
    reached: bool
    """The capture-phase listener saw the target receive an event of this action."""
    events_sent: tuple[str, ...] = ()
    stopped_before: str | None = None
    differences: tuple[str, ...] = ()
    """Names of the parts of E that differed."""
    live: Evidence | None = None
    """E as it was found in the act, where it differed."""
    hit: Hit | None = None
    dialog: Dialog | None = None
    preparatory_scroll: bool = False
    error: str | None = None
    unsupported: bool = False
    """With `NOT_SENT`: the platform has no way to do this to this element, so that trying again is no use."""
    late: bool = False
    """With `NOT_SENT`: the document was there before the guard, so that events cannot be held back in it."""
    physical: bool = False
    """Through the pointer or the keyboard that a person has."""


@dataclass(frozen=True, slots=True)
class Navigation:
    """`end` as for a dispatch. `committed` is the window after it, where a document was committed."""

    end: DispatchEnd
    committed: WindowState | None = None
    status: int | None = None
    error: str | None = None
    dialog: Dialog | None = None


@dataclass(frozen=True, slots=True)
class PageAction:
    """A command on the page rather than on an element of it: back, forward, reload, dialog-accept, dialog-dismiss."""

    command: str
    url: str
    """Where it leads; for a dialog the page that it stands on."""
    dialog: Dialog | None = None
    text: str | None = None
    """For the field of a prompt."""
    tab: str | None = None
    """The id of the tab that is focused or closed; `url` is then the address at which it was judged."""


@dataclass(frozen=True, slots=True)
class Tab:
    """A page beside, or the one that is guarded. Titles and addresses are the browser's word."""

    id: str
    title: str
    url: str
    guarded: bool


@dataclass(frozen=True, slots=True)
class Happened:
    """Something of the browser's that no command asked for in so many words."""

    event: str
    """`tab_opened | tab_closed | tab_lost` (it came, and could not be guarded)"""
    id: str
    url: str
    title: str
    by: int | None
    """Number of the action that was under way, or was a moment ago."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class DownloadSeen:
    """A file that the browser began to receive. `name` is what the server or the page calls it: data, never a path."""

    id: str
    url: str
    name: str
    page: str
    """Address of the page that it belongs to."""
    by: int | None


class DownloadKeeper(Protocol):
    async def begun(self, seen: DownloadSeen) -> bool:
        """Whether it may stay; what may not is cancelled."""
        ...

    async def ended(self, seen: DownloadSeen, path: Path | None, why: str) -> None:
        """`path`: the whole file, until this returns; None where it did not come to its end, and `why`."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A document of this window's history. `method` is that of the request it came by, where it is known."""

    url: str
    method: str | None


@dataclass(frozen=True, slots=True)
class RequestSeen:
    """A network request that the application made, as the adapter saw it. Informative, not the second line."""

    method: str
    url: str
    how: str
    """A `NetworkHow` value."""
    state: str
    """`pending | answered | failed`"""
    status: int | None = None


class PointHook(Protocol):
    """Called by the adapter at `dispatched` (the call is sent, its answer pending) and at `reached`."""

    async def __call__(self, point: str) -> None: ...


class Adapter(Protocol):
    async def observe(self, options: ObserveOptions) -> RawObservation: ...

    async def probe(self, handle: Handle, action: Action, *, budget_ms: int) -> Probed:
        """One look at one retained element, with the evidence that `action` needs (default submitter for Enter, …)."""
        ...

    async def perform(
        self, handle: Handle, action: Action, expected: Evidence, *, number: int, budget_ms: int, at: PointHook
    ) -> Dispatch:
        """Dispatch once, compared in the act. `number` is the action's number for causal request tags."""
        ...

    async def navigate(self, url: str, *, number: int, budget_ms: int, at: PointHook) -> Navigation: ...

    async def window(self) -> WindowState: ...

    def dialog(self) -> Dialog | None:
        """The dialog that is open now, if any."""
        ...

    def requests(self, number: int) -> tuple[RequestSeen, ...]:
        """Requests caused by action `number`, in order, as known at this moment."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class DragAdapter(Protocol):
    """What can drag one element onto another."""

    def cannot_drag(self, source: Handle, to: Handle) -> str | None:
        """Why not between these two, wherever that is known beforehand."""
        ...


@runtime_checkable
class TabAdapter(Protocol):
    """What guards every page that its pages open."""

    async def news(self) -> tuple[Happened, ...]:
        """What came and went since the last call."""
        ...


@runtime_checkable
class DownloadAdapter(Protocol):
    def keep_downloads(self, keeper: DownloadKeeper | None) -> None:
        """Who is asked about each download from now on; without one none is kept."""
        ...


@runtime_checkable
class PictureAdapter(Protocol):
    """What can be pictured: pages, and windows of a desktop."""

    async def picture(self, box: tuple[int, int, int, int] | None, *, node: str = "", budget_ms: int) -> str:
        """A PNG in base 64, with a frame around `box` where one is given: that of `node`, in whose document it counts.
        Raises `AdapterError`."""
        ...


@runtime_checkable
class PageAdapter(Protocol):
    """What an adapter of pages can do beyond `Adapter`."""

    async def entry(self, command: str) -> Entry | None:
        """Where back, forward or reload would lead; None where there is no such document."""
        ...

    async def picture(
        self,
        box: tuple[int, int, int, int] | None,
        *,
        node: str = "",
        budget_ms: int,
        masks: tuple[tuple[int, int, int, int], ...] = (),
    ) -> str:
        """A PNG in base 64, with a frame around `box` of `node` where one is given and `masks` painted over. Raises
        `AdapterError`."""
        ...

    async def tabs(self) -> tuple[Tab, ...]:
        """Raises `AdapterError`."""
        ...

    def network(self) -> tuple[int, int]:
        """Requests under way, and microseconds since the last of them began or ended. Streams do not count."""
        ...

    async def page(self, action: PageAction, *, number: int, budget_ms: int, at: PointHook) -> Navigation:
        """Once, like `Adapter.navigate`."""
        ...
