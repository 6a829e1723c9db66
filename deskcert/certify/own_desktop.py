"""A user's own program as a window on a private desktop: started anew for each run, with what the scenario gives its
command, and judged by its files.

Nothing of the user's desktop is touched: display, session bus, accessibility and home folder are the run's own.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deskcert.certify.app_spec import AppSpec, hooks_of
from deskcert.certify.env_secrets import EnvSecrets
from deskcert.certify.fixture import Perturbed
from deskcert.certify.hooks import run_hooks
from deskcert.certify.own_app import OwnApplication
from deskcert.certify.processes import child_environment
from deskcert_schema.errors import AdapterError, HarnessError

if TYPE_CHECKING:
    from deskcert.adapters.linux.application import Application
    from deskcert.adapters.linux.bus import AccessBus
    from deskcert.adapters.linux.desktop import Programs
    from deskcert.adapters.linux.desktop_session import DesktopSession

__all__ = ["OwnDesktop"]

_LOOK_MS: Final = 1_000


class OwnDesktop(OwnApplication):
    """Implements `UnderTest`, and what `desktop_opener` asks for."""

    desktop: DesktopSession
    _bus: AccessBus | None = None
    _arguments: tuple[str, ...] = ()

    @classmethod
    async def start(cls, spec: AppSpec, folder: Path, *, token: str, secrets: EnvSecrets) -> OwnDesktop:
        """The desktop, and the suite's `setup`; the program starts with `prepare`. Raises `HarnessError`."""
        from deskcert.adapters.linux.desktop_session import DesktopSession

        made = cls(spec, folder, secrets, token=token)
        made.desktop = await DesktopSession.start(child_environment(made._token))
        try:
            await run_hooks(made._filled(spec.setup), made._ground(), secrets, called="setup")
        except BaseException:
            await asyncio.shield(made.close())
            raise
        return made

    @property
    def name(self) -> str:
        return self._spec.desktop or ""

    @property
    def programs(self) -> Programs:
        from deskcert.adapters.linux.desktop import Programs

        commands = {name: tuple(self._filled(command)) for name, command in self._spec.programs.items()}
        return Programs(commands, self._environment())

    async def prepare(self, start: Mapping[str, Any], *, seed: int) -> str:
        """Ends the program of the scenario before, resets, and starts it. Raises `HarnessError`."""
        del seed
        await self._end_program()
        ground = self._ground()
        await run_hooks(self._filled(self._spec.reset), ground, self._secrets, called="reset")
        await run_hooks(self._filled(hooks_of(start.get("reset"))), ground, self._secrets, called="start.reset")
        self._arguments = tuple(start.get("arguments", ()))
        await self._run_program()
        return self._place.url

    async def _run_program(self) -> None:
        await self._spawn([*self._spec.command, *self._arguments])
        await self._until_ready()

    async def _end_program(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.end(polite_s=0.0)
            process.close()

    async def perturb(self, do: str, args: Mapping[str, Any]) -> Perturbed:
        """`hang`, or `restart`: killed, and started again with the same title."""
        del args
        if do == "restart":
            await self._end_program()
            await self._run_program()
            return Perturbed(True)
        found = await self._found()
        if found is None:
            return Perturbed(False, "the program is not on the accessibility bus")
        os.kill(found.process.pid, signal.SIGSTOP)
        return Perturbed(True)

    async def _ready(self) -> bool:
        """It is on the bus, and has a window."""
        from deskcert.adapters.linux import words
        from deskcert.adapters.linux.bus import Deadline, ProcessGone
        from deskcert.contract.evidence import Known

        found = await self._found()
        if found is None or self._bus is None:
            return False
        try:
            windows = await self._bus.ask(found.root, words.ACCESSIBLE, "GetChildren", Deadline(_LOOK_MS))
        except ProcessGone:
            return False
        return isinstance(windows, Known) and bool(windows.value)

    async def _found(self) -> Application | None:
        from deskcert.adapters.linux.application import AppSelector, find
        from deskcert.adapters.linux.bus import AccessBus, Deadline

        if self._bus is None or self._bus.lost:
            try:
                self._bus = await AccessBus.connect(self.desktop.bus)
            except AdapterError as exc:
                raise HarnessError(f"the desktop of the run is gone: {exc}") from exc
        try:
            return await find(self._bus, AppSelector(name=self.name), Deadline(_LOOK_MS))
        except AdapterError:  # not yet, or not answering: asked again until the time is over
            return None

    async def _until_ready(self) -> None:
        try:
            await super()._until_ready()
        except HarnessError as exc:
            raise HarnessError(f"{exc}; on the accessibility bus: {await self._named()}") from None

    async def _named(self) -> str:
        """The names that `desktop:` could be."""
        from deskcert.adapters.linux.application import list_applications
        from deskcert.adapters.linux.bus import Deadline
        from deskcert.contract.evidence import Known

        try:
            seen = await list_applications(self._bus, Deadline(_LOOK_MS)) if self._bus is not None else ()
        except AdapterError:
            return "it does not answer"
        return ", ".join(repr(app.name.value) for app in seen if isinstance(app.name, Known)) or "nothing"

    def _waited_for(self) -> str:
        return f"waited for a window of a program that calls itself {self.name!r}"

    def _environment(self) -> dict[str, str]:
        own: dict[str, str] = self._filled(dict(self._spec.environment))
        return self.desktop.environment | own

    async def close(self) -> None:
        bus, self._bus = self._bus, None
        try:
            if bus is not None:
                await bus.close()
            await super().close()
        finally:
            await asyncio.shield(self.desktop.close())
