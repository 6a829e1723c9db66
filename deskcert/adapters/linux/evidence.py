"""E for one element: one look at it, its ancestors, what labels its row, and the windows that may stand in front."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any, Final

from deskcert.adapters.base import Action, Gone, Live, Probed, Unreadable
from deskcert.adapters.linux import words
from deskcert.adapters.linux.application import Application
from deskcert.adapters.linux.bus import AccessBus, Deadline, ProcessGone
from deskcert.adapters.linux.facts import Facts, capabilities
from deskcert.adapters.linux.keys import key_paths
from deskcert.adapters.linux.options import Choice, read_choice
from deskcert.adapters.linux.physical import PHYSICAL, pointed_at
from deskcert.adapters.linux.reading import LONGEST_NAME, Reader, bounds_showing, refs_of
from deskcert.adapters.linux.tree import (
    Place,
    context_of,
    filled,
    holder_of,
    label_of,
    node_id,
    on_same_line,
    scaled,
    visibility,
)
from deskcert.adapters.linux.words import State
from deskcert.adapters.linux.x11 import Desk, windows_of
from deskcert.contract.evidence import (
    ABSENT,
    ActivationPath,
    Destination,
    Evidence,
    Field,
    HitTest,
    Known,
    NameSources,
    Unknown,
)
from deskcert_schema.errors import AdapterError

__all__ = ["Look", "Looked", "differences"]

_NOT_COMPARED: Final = frozenset({"digest", "box"})
_DESCRIBES_ITSELF: Final = frozenset({"focused"})
"""A window manager may move the focus at any time: it is no part of what must stay equal."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What the look found, and what a dispatch needs of it."""

    probed: Probed
    facts: Facts | None = None
    holder: tuple[Facts, Facts] | None = None
    """What it is chosen in, and the child of that which is chosen with it."""
    window: Facts | None = None
    choice: Choice | None = None


class Look:
    """At one element of one application."""

    def __init__(self, bus: AccessBus, desk: Desk, app: Application, place: Place, *, headed: bool) -> None:
        self._bus, self._desk, self._app, self._place, self._headed = bus, desk, app, place, headed
        self._reader = Reader(bus, app.toolkit, longest=LONGEST_NAME)

    async def at(self, action: Action, deadline: Deadline) -> Looked:
        try:
            return await self._look(action, deadline)
        except ProcessGone:
            return Looked(Gone("process_changed"))

    async def _look(self, action: Action, deadline: Deadline) -> Looked:
        place, reader = self._place, self._reader
        target, chain, row, others = await asyncio.gather(
            reader.whole(place.ref, deadline),
            asyncio.gather(*(reader.core(r, deadline, children=False, parent=True) for r in place.chain)),
            self._row(deadline),
            self._windows(deadline),
        )
        if (why := _gone(target, chain, place)) is not None:
            return Looked(why)
        unread = next((u for f in (target, *chain) if (u := f.unread()) is not None), None)
        if isinstance(others, Unknown):
            unread = unread or others.why
        if unread is not None or isinstance(others, Unknown):
            return Looked(Unreadable(unread or "the windows could not be read"))
        choice = await read_choice(reader, target, action, deadline)
        keys = await key_paths(self._bus, self._app, chain[-1].ref if chain else place.ref, action, deadline)
        front = await self._in_front(target, list(chain), others)
        if front.status == "pass" and self._headed and action.command in PHYSICAL:
            front = await pointed_at(self._bus, self._desk, self._app, target, deadline)
        label = label_of(row) if row is not None and _still_row(row, target) else None
        lent = (*_lent(target), *(choice.paths if choice is not None else ()), *keys)
        evidence = self._evidence(target, list(chain), (label, lent), front, to_scroll=action.command == "scroll-to")
        if choice is not None:
            shown = choice.shown if choice.shown is not None else evidence.value
            evidence = replace(evidence, options=choice.counts, value=shown)
        compared = _compared(evidence, self._headed)
        evidence = replace(evidence, compared=compared, digest=hashlib.sha256(compared.encode()).hexdigest())
        return Looked(Live(evidence), target, holder_of(target, chain), chain[-1] if chain else target, choice)

    async def _row(self, deadline: Deadline) -> Facts | None:
        if self._place.row is None:
            return None
        facts = await self._reader.core(self._place.row, deadline, children=False)
        await self._reader.details(facts, deadline)
        return facts

    async def _windows(self, deadline: Deadline) -> list[Facts] | Unknown:
        found = await self._bus.ask(self._app.root, words.ACCESSIBLE, "GetChildren", deadline)
        if not isinstance(found, Known):
            return found if isinstance(found, Unknown) else Unknown("the application lists no windows")
        refs = refs_of(found.value)
        return list(await asyncio.gather(*(self._reader.core(r, deadline, children=False) for r in refs)))

    def _evidence(
        self,
        target: Facts,
        chain: list[Facts],
        around: tuple[str | None, tuple[ActivationPath, ...]],
        front: HitTest,
        *,
        to_scroll: bool,
    ) -> Evidence:
        """`around`: its row's label, and what else the action would reach. Without its digest."""
        label, lent = around
        toolkit = self._app.toolkit
        above: Field[bool] = Known(True)
        for facts in reversed(chain):
            above = visibility(facts, above, toolkit, to_scroll=to_scroll).visible
        seen = visibility(target, above, toolkit, to_scroll=to_scroll)
        selectable = holder_of(target, chain) is not None
        return Evidence(
            document=self._app.generation,
            node=node_id(target.ref, self._app),
            role=target.word,
            names=_names(target),
            context=context_of(chain, label),
            url=self._app.url,
            destination=_destination(target),
            paths=lent,
            states=_states(target, seen.visible),
            actions=capabilities(target, toolkit, headed=self._headed, in_selection=selectable),
            box=_box(target),
            hit_test=HitTest("deferred") if seen.offscreen and front.status == "pass" else front,
            value=target.value(),
            digest="",
        )

    async def _in_front(self, target: Facts, chain: list[Facts], windows: list[Facts]) -> HitTest:
        """A modal window takes every input of the others away; AT-SPI alone would still deliver it."""
        own = chain[-1].ref if chain else target.ref
        refs = [w.ref for w in windows]
        if own not in refs:
            return HitTest("unknown")
        shown = [w for w in windows if w.ref != own and bounds_showing(w, self._app.toolkit) == Known(True)]
        modal = [w.ref for w in windows if w.is_(State.MODAL)]
        if shown and not self._app.toolkit.tells_modal:
            try:
                on_screen = await self._desk.run(windows_of(self._app.process.pid))
            except AdapterError:
                return HitTest("unknown")
            titles = {x.title.strip() for x in on_screen if x.modal and x.shown}
            modal = [w.ref for w in windows if isinstance(w.name, Known) and w.name.value.strip() in titles]
        # Of two modal windows the later one is in front.
        later = refs[refs.index(own) + 1 :] if own in modal else refs
        for window in shown:
            if window.ref in modal and window.ref in later:
                return HitTest("fail", window.word, window.name.value if isinstance(window.name, Known) else None)
        return HitTest("pass")


def _gone(target: Facts, chain: Any, place: Place) -> Gone | None:
    """The application's own word that it is not there any more, or that it stands elsewhere now."""
    if target.gone or any(f.gone for f in chain):
        return Gone("removed")
    for facts, told in zip((target, *chain), place.told, strict=True):
        if isinstance(facts.parent, Known) and facts.parent != told:
            return Gone("removed")
    return None


def _still_row(row: Facts, target: Facts) -> bool:
    if row.gone:
        return False
    if isinstance(target.cell, Known):
        return row.cell == Known((target.cell.value[0], 0))
    return on_same_line(row.box, target.box)


def _names(target: Facts) -> NameSources:
    return NameSources(
        accessible=target.accessible_name(),
        text=target.accessible_name() if target.editable() == Known(False) else ABSENT,
        description=ABSENT
        if isinstance(target.description, Known) and filled(target.description) is None
        else target.description,
    )


def _lent(target: Facts) -> tuple[ActivationPath, ...]:
    """Texts below it, and its label, by which a person knows it."""
    out = [
        ActivationPath("descendant", f.word, NameSources(accessible=f.name))
        for f in target.below
        if isinstance(f.name, Unknown) or (isinstance(f.name, Known) and f.name.value.strip())
    ]
    if isinstance(target.label, Known):
        out.append(ActivationPath("label", "statictext", NameSources(accessible=target.label)))
    return tuple(out)


def _destination(target: Facts) -> Field[Destination]:
    if target.word != "link":
        return ABSENT
    if isinstance(target.link, Unknown):
        return target.link
    return (
        Known(Destination(link=target.link.value)) if isinstance(target.link, Known) and target.link.value else ABSENT
    )


def _states(target: Facts, visible: Field[bool]) -> dict[str, Field[bool]]:
    editable = target.editable()
    return {
        "visible": visible,
        "enabled": target.enabled(),
        "editable": editable,
        "readonly": target.has(State.READ_ONLY) if target.word in words.FIELDS else ABSENT,
        "checked": target.checked(),
        "expanded": target.expanded(),
        "selected": target.has(State.SELECTED) if target.is_(State.SELECTABLE) else ABSENT,
        "focused": target.has(State.FOCUSED),
        "secure": Known(target.secure),
        "required": target.has(State.REQUIRED),
        "indeterminate": target.has(State.INDETERMINATE) if target.word in words.CHECKABLE else ABSENT,
    }


def _box(target: Facts) -> tuple[int, int, int, int] | None:
    if not isinstance(target.box, Known):
        return None
    x, y, width, height = scaled(target.box.value)
    return (x, y, width, height)


def _compared(evidence: Evidence, headed: bool) -> str:
    parts = {k: v for k, v in evidence.as_json().items() if k not in _NOT_COMPARED or (k == "box" and headed)}
    parts["states"] = {k: v for k, v in parts["states"].items() if k not in _DESCRIBES_ITSELF}
    return json.dumps(parts, sort_keys=True, ensure_ascii=False)


def differences(live: Evidence, expected: Evidence) -> tuple[str, ...]:
    ours, theirs = json.loads(live.compared), json.loads(expected.compared)
    return tuple(k for k in sorted(ours.keys() | theirs.keys()) if ours.get(k) != theirs.get(k))
