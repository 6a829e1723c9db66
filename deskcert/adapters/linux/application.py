"""Finds the application that is guarded, and tells one run of it from the next."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from deskcert.adapters.linux import words
from deskcert.adapters.linux.bus import AccessBus, Deadline, ObjectRef, ProcessGone
from deskcert.adapters.linux.facts import Toolkit
from deskcert.adapters.linux.processes import Process, process
from deskcert.adapters.linux.reading import ROOT_PATH, refs_of
from deskcert.contract.evidence import Field, Known, Unknown
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import DetailKind

__all__ = ["AppSelector", "Application", "Listed", "find", "list_applications"]

_REGISTRY: Final = ObjectRef("org.a11y.atspi.Registry", ROOT_PATH)
_APPLICATION: Final = "org.a11y.atspi.Application"
_QT_PRESS_MS: Final = 150
"""Qt shows a button pressed for 100 ms before it does what the button does."""


@dataclass(frozen=True, slots=True)
class AppSelector:
    """Exactly one application must match everything that is given."""

    name: str | None = None
    """Its accessible name."""
    pid: int | None = None

    def __str__(self) -> str:
        parts = [f"named {self.name!r}"] if self.name is not None else []
        parts += [f"with process id {self.pid}"] if self.pid is not None else []
        return " ".join(["application", *parts])


@dataclass(frozen=True, slots=True)
class Listed:
    """An application on the accessibility bus."""

    root: ObjectRef
    process: Process
    name: Field[str]


@dataclass(frozen=True, slots=True)
class Application:
    root: ObjectRef
    process: Process
    name: str
    toolkit: Toolkit

    @property
    def generation(self) -> str:
        return self.process.generation(self.root.bus)

    @property
    def url(self) -> str:
        return f"desktop://{self.name}/"


async def list_applications(bus: AccessBus, deadline: Deadline, *, name_ms: float = 500.0) -> tuple[Listed, ...]:
    """All that are there. Each has `name_ms` to say what it is called: a stopped one does not hide the others."""
    found = await bus.ask(_REGISTRY, words.ACCESSIBLE, "GetChildren", deadline)
    if not isinstance(found, Known):
        why = found.why if isinstance(found, Unknown) else "no registry"
        raise AdapterError(f"the applications could not be listed: {why}", kind=DetailKind.OBSERVATION_INCOMPLETE)
    listed = await asyncio.gather(*(_listed(bus, ref, deadline, name_ms) for ref in refs_of(found.value)))
    return tuple(app for app in listed if app is not None)


async def _listed(bus: AccessBus, root: ObjectRef, deadline: Deadline, name_ms: float) -> Listed | None:
    try:
        pid = await bus.process_id(root.bus, deadline)
        there = process(pid.value) if isinstance(pid, Known) else None
        if there is None:
            return None
        own = Deadline(min(name_ms, deadline.left_s() * 1000))
        return Listed(root, there, await bus.get(root, words.ACCESSIBLE, "Name", own))
    except ProcessGone:
        return None


async def find(bus: AccessBus, selector: AppSelector, deadline: Deadline) -> Application | None:
    """None where none matches (yet). Raises `AdapterError` where several do, or where one that may match is hung."""
    matching: list[Listed] = []
    doubtful: list[Listed] = []
    for app in await list_applications(bus, deadline):
        if selector.pid is not None and app.process.pid != selector.pid:
            continue
        if selector.name is None or (isinstance(app.name, Known) and app.name.value == selector.name):
            matching.append(app)
        elif isinstance(app.name, Unknown):
            doubtful.append(app)
    if len(matching) > 1:
        pids = ", ".join(str(app.process.pid) for app in matching)
        raise AdapterError(f"{len(matching)} running programs match ({selector}): process ids {pids}; name one by pid")
    if not matching:
        if doubtful:
            raise AdapterError(
                f"process {doubtful[0].process.pid} does not say what it is called",
                kind=DetailKind.OBSERVATION_INCOMPLETE,
            )
        return None
    app = matching[0]
    try:
        toolkit = await _toolkit(bus, app.root, deadline)
    except ProcessGone:
        return None
    name = app.name.value if isinstance(app.name, Known) else (selector.name or f"process {app.process.pid}")
    return Application(app.root, app.process, name, toolkit)


async def _toolkit(bus: AccessBus, root: ObjectRef, deadline: Deadline) -> Toolkit:
    name, version, everything = await asyncio.gather(
        bus.get(root, _APPLICATION, "ToolkitName", deadline),
        bus.get(root, _APPLICATION, "Version", deadline),
        bus.get_all(root, words.ACCESSIBLE, deadline),
    )
    said = str(name.value) if isinstance(name, Known) else ""
    gtk4 = said.casefold() == "gtk" and isinstance(version, Known) and str(version.value).startswith("4")
    qt = said.casefold().startswith("qt")
    return Toolkit(
        name=said,
        all_at_once=isinstance(everything, Known),
        tells_showing=not gtk4,
        tells_modal=not qt,
        places_on_screen=not gtk4,
        hides_by_state=said == "Chromium",
        chooses_in_combo=not qt,
        rows_by_table=said.casefold() == "gtk" and not gtk4,
        effect_after_ms=_QT_PRESS_MS if qt else 0,
    )
