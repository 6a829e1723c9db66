"""A private desktop: an X server on a free display, a session bus of its own, and accessibility on it.

Nothing of it is shared with the user's own desktop or with another run's. What is started gets `environment`; whoever
marks that environment (a run's token) finds every process by it, also those that the bus starts by itself. The
kernel ends the X server and the bus with the process that started them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from deskcert.adapters.linux.bus import AccessBus
from deskcert_schema.errors import AdapterError, HarnessError

__all__ = ["DesktopSession", "Lacking", "lacking"]

MARK: Final = "DESKCERT_DESKTOP"
"""In the environment of every process of one desktop."""
SCREEN: Final = "1280x900x24"
_READY_S: Final = 40.0
"""On a machine that is busy; an idle one needs less than one."""
_TRIES: Final = 4
_END_S: Final = 2.0
_LAUNCHERS: Final = ("/usr/libexec/at-spi-bus-launcher", "/usr/lib/at-spi2-core/at-spi-bus-launcher")
_PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class Lacking:
    """Something that a desktop needs and this machine has not."""

    what: str
    package: str
    """Debian's, or with `pip:` Python's."""

    def __str__(self) -> str:
        name = self.package.removeprefix("pip:")
        how = f"pip install '{name}'" if self.package.startswith("pip:") else f"apt-get install {name}"
        return f"{self.what} ({how})"


def lacking(*, fixture: bool = False) -> tuple[Lacking, ...]:
    """`fixture`: also what deskcert's own desktop application needs."""
    programs = (("Xvfb", "xvfb"), ("dbus-daemon", "dbus"), ("setpriv", "util-linux"))
    found = [Lacking(name, package) for name, package in programs if shutil.which(name) is None]
    if not any(Path(path).exists() for path in _LAUNCHERS):
        found.append(Lacking("at-spi-bus-launcher", "at-spi2-core"))
    modules = [("dbus_fast", "desktop"), *([("PySide6", "desktop-fixture")] if fixture else [])]
    found += [Lacking(name, f"pip:deskcert[{extra}]") for name, extra in modules if find_spec(name) is None]
    return tuple(found)


class DesktopSession:
    """Make it with `start`; `close` leaves nothing behind."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._mark = folder, f"{MARK}={secrets.token_hex(8)}"
        self._started: list[asyncio.subprocess.Process] = []
        self.environment: dict[str, str] = {}
        """For programs that are to be on it."""

    @classmethod
    async def start(cls, base: Mapping[str, str]) -> DesktopSession:
        """`base`: environment that every process of it gets. Raises `HarnessError`, which names what is missing."""
        if found := lacking():
            raise HarnessError(f"there can be no desktop here, it lacks {', '.join(map(str, found))}")
        session = cls(Path(tempfile.mkdtemp(prefix="deskcert-desktop-")))
        try:
            async with asyncio.timeout(_READY_S):
                await session._start(base)
        except BaseException as exc:
            await asyncio.shield(session.close())
            if isinstance(exc, TimeoutError | OSError | AdapterError):
                raise HarnessError(f"the desktop did not start: {exc or type(exc).__name__}") from exc
            raise
        return session

    @property
    def lost(self) -> str | None:
        """What it cannot be used without, and has ended."""
        names = ("the X server", "the session bus")
        ended = (name for name, process in zip(names, self._started, strict=False) if process.returncode is not None)
        return next((f"{name} of the run has ended" for name in ended), None)

    @property
    def bus(self) -> str:
        return self.environment["DBUS_SESSION_BUS_ADDRESS"]

    @property
    def display(self) -> str:
        return self.environment["DISPLAY"]

    async def _start(self, base: Mapping[str, str]) -> None:
        for name in ("home", "run"):
            (self._folder / name).mkdir(mode=0o700)
        key, _, value = self._mark.partition("=")
        self.environment = {**base, key: value}
        display = await self._xvfb()
        self.environment |= {
            "DISPLAY": display,
            "HOME": str(self._folder / "home"),
            "XDG_RUNTIME_DIR": str(self._folder / "run"),
            "LC_ALL": "C.UTF-8",
            "GSETTINGS_BACKEND": "memory",
            "GIO_USE_VFS": "local",
            "NO_AT_BRIDGE": "0",
            "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
            "QT_QPA_PLATFORM": "xcb",
        }
        # In the folder that goes with the run: a bus that is killed leaves its socket where it is.
        listen = f"--address=unix:path={self._folder / 'run' / 'bus'}"
        bus = await self._spawn("dbus-daemon", "--session", "--nofork", "--print-address=1", listen, piped=True)
        assert bus.stdout is not None
        address = (await bus.stdout.readline()).decode().strip()
        if not address:
            raise HarnessError("the session bus did not start: dbus-daemon ended without an address")
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = address
        # Asking for it starts it. A program that comes before the accessibility bus does not wait for it.
        await _accessible(address)

    async def _xvfb(self) -> str:
        """The display that it has chosen, which is a free one."""
        ours, theirs = os.pipe()
        command = ("Xvfb", "-displayfd", str(theirs), "-screen", "0", SCREEN, "-nolisten", "tcp", "-noreset")
        try:
            await self._spawn(*command, pass_fds=(theirs,))
        finally:
            os.close(theirs)
        reader = asyncio.StreamReader()
        with os.fdopen(ours, "rb", 0) as end:
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), end
            )
            number = (await reader.readline()).decode().strip()
            transport.close()
        if not number:
            raise HarnessError("the X server did not start: Xvfb ended without a display")
        return f":{number}"

    async def _spawn(
        self, *command: str, piped: bool = False, pass_fds: tuple[int, ...] = ()
    ) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *("setpriv", "--pdeathsig", "KILL", "--", *command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE if piped else asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=self.environment,
            cwd=self._folder,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        self._started.append(process)
        return process

    async def close(self) -> None:
        """Again: no harm."""
        # The bus first: what it has started by itself then ends by itself, and is swept where it does not.
        for process in reversed(self._started):
            # Asked first: an X server that is killed leaves its lock and its socket in /tmp.
            for end in (process.terminate, process.kill):
                with contextlib.suppress(ProcessLookupError):
                    end()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), _END_S)
                    break
        await asyncio.to_thread(self._sweep)
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    def _sweep(self) -> None:
        for pid in marked(self._mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


async def _accessible(address: str) -> None:
    """Raises `AdapterError`. One try may be too short for a machine that is busy."""
    for left in reversed(range(_TRIES)):
        try:
            await (await AccessBus.connect(address)).close()
            return
        except AdapterError:
            if not left:
                raise


def marked(mark: str) -> set[int]:
    """Processes that were started with `mark` in their environment."""
    found = set()
    for path in _PROC.glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # ended meanwhile, or another user's
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.add(int(path.parent.name))
    return found - {os.getpid()}
