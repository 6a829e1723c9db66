"""A run on the desktop: each has a private one, with the application under test on it and nothing else.

The agent is told neither display nor bus: the session is its only way to the window.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from deskcert.certify.fixture import Application, Perturbed
from deskcert.certify.oracle import OracleAnswers
from deskcert.certify.processes import child_environment
from deskcert.certify.recorder import Recorder
from deskcert.certify.runner import Guarded, OpenGuarded, PointCallback
from deskcert.certify.second_line import SecondLine
from deskcert.certify.suite import Planned, Suite, policy_for
from deskcert.certify.under_test import UnderTest
from deskcert.session.budget import Budget
from deskcert.session.desk import Options
from deskcert.session.desktop_lease import DesktopLease, lease_path
from deskcert.session.pictures import Take
from deskcert.session.points import AtPoint, all_of
from deskcert.session.session import Session
from deskcert_ledger import SystemClock
from deskcert_schema.errors import AdapterError, HarnessError

if TYPE_CHECKING:
    from deskcert.adapters.linux.adapter import LinuxAdapter
    from deskcert.adapters.linux.desktop import Programs
    from deskcert.adapters.linux.desktop_session import DesktopSession

__all__ = ["DesktopApplication", "OnDesktop", "desktop_facts", "desktop_opener", "no_browser"]

APP_NAME = "larkfield-desk"
_READY_S = 40.0
"""For the window's process too, on a machine that is busy."""
_WAIT_MS = 15_000


def desktop_facts() -> dict[str, Any]:
    """As `run.start` holds it: what stood between the agent and the window."""
    from deskcert.adapters.linux.desktop_session import SCREEN

    return {"adapter": "linux", "accessibility": "at-spi", "display": "Xvfb", "screen": SCREEN, "private": True}


@asynccontextmanager
async def no_browser() -> AsyncIterator[None]:
    """Where a campaign on pages has its browser."""
    yield None


@runtime_checkable
class OnDesktop(Protocol):
    """An application under test that is a window on a desktop of its own."""

    desktop: DesktopSession

    @property
    def name(self) -> str:
        """Its own word on the accessibility bus."""
        ...

    @property
    def programs(self) -> Programs:
        """What else an agent may launch."""
        ...


class DesktopApplication:
    """Implements `UnderTest`: the web application's control port, database and effects, behind a window."""

    name = APP_NAME

    def __init__(self, desktop: DesktopSession, application: Application) -> None:
        self.desktop, self._application = desktop, application

    @classmethod
    async def start(cls, folder: Path, *, token: str) -> DesktopApplication:
        """Raises `HarnessError`, which names what the machine lacks."""
        from deskcert.adapters.linux.desktop_session import DesktopSession, lacking

        if found := lacking(fixture=True):
            raise HarnessError(f"there can be no desktop here, it lacks {', '.join(map(str, found))}")
        environment = child_environment(token)
        desktop = await DesktopSession.start(environment)
        try:
            # The fonts and caches of a user stay out of it, but his packages do not: PATH and PYTHONPATH are in both.
            application = await _open(folder, desktop.environment)
        except BaseException:
            await asyncio.shield(desktop.close())
            raise
        return cls(desktop, application)

    @property
    def programs(self) -> Programs:
        from deskcert.adapters.linux.desktop import Programs

        return Programs()

    @property
    def url(self) -> str:
        return self._application.url

    async def effect_kinds(self) -> tuple[str, ...]:
        return await self._application.effect_kinds()

    async def prepare(self, start: Mapping[str, Any], *, seed: int) -> str:
        return await self._application.prepare(start, seed=seed)

    async def perturb(self, do: str, args: Mapping[str, Any]) -> Perturbed:
        return await self._application.perturb(do, args)

    async def quiet(self, longest_s: float) -> None:
        await self._application.quiet(longest_s)

    async def ask(self, items: Sequence[Mapping[str, Any]], *, token: str) -> OracleAnswers:
        return await self._application.ask(items, token=token)

    async def close(self) -> None:
        try:
            await self._application.close()
        finally:
            await asyncio.shield(self.desktop.close())


async def _open(folder: Path, environment: Mapping[str, str]) -> Application:
    arguments = ("--db", "app.sqlite", "--effects", "effects.jsonl", "--exit-with-stdin")
    with (folder / "log.txt").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "deskcert_fixture_app.desktop", *arguments),
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log.fileno(),
            start_new_session=True,
        )
    assert process.stdout is not None
    try:
        ready = json.loads(await asyncio.wait_for(process.stdout.readline(), _READY_S))
        return Application(process, folder, str(ready["url"]), str(ready["control"]), None)
    except BaseException as exc:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if isinstance(exc, TimeoutError | ValueError | KeyError | TypeError):
            why = f"({type(exc).__name__}); its output is in {folder}/log.txt"
            raise HarnessError(f"the desktop application under test did not start {why}") from exc
        raise


class _Guarded:
    desktop = True

    def __init__(self, desktop: DesktopSession, adapter: LinuxAdapter, session: Session) -> None:
        self._desktop, self._adapter, self._session = desktop, adapter, session

    async def handle(self, command: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._session.handle(command, args)

    async def lost(self) -> str | None:
        """The window may well be gone or hang; the desktop must not be."""
        return self._desktop.lost or ("the accessibility bus is gone" if self._adapter.bus_lost else None)

    async def close(self) -> None:
        await self._adapter.close()


def desktop_opener(
    application: asyncio.Task[UnderTest], suite: Suite, pause: AtPoint, *, headed: bool, screenshots: str
) -> OpenGuarded:
    """Of one run, whose application it is. `headed`: physical input on the private display."""

    async def open_guarded(
        recorder: Recorder, planned: Planned, url: str, at: PointCallback, line: SecondLine | None
    ) -> Guarded:
        del url, line  # the window shows the scenario's page, and has no network to watch
        from deskcert.adapters.linux import AppSelector, LinuxAdapter
        from deskcert.guard.policy import compile_policy

        scenario = planned.scenario
        document, digest = policy_for(suite, scenario)
        started = await application
        assert isinstance(started, OnDesktop)
        desktop = started.desktop
        try:
            adapter = await LinuxAdapter.open(
                AppSelector(name=started.name),
                bus_address=desktop.bus,
                display=desktop.display,
                headed=headed,
                wait_ms=_WAIT_MS,
                programs=started.programs,
            )
        except AdapterError as exc:
            raise HarnessError(f"the window could not be reached: {exc}") from exc
        session = Session(
            adapter,
            recorder.ledger,
            compile_policy(document, digest=digest),
            clock=SystemClock(),
            rng=secrets.token_bytes,
            options=Options(
                budget=Budget(scenario.actions, scenario.seconds),
                bait=tuple(str(b) for b in scenario.bait),
                pictures=Take(screenshots),
            ),
            at_point=all_of(at, pause),
            lease=DesktopLease(lease_path(desktop.display, desktop.bus, desktop.environment.get("XDG_RUNTIME_DIR"))),
        )
        return _Guarded(desktop, adapter, session)

    return open_guarded
