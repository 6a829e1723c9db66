"""A private desktop for tests: an X server, a session bus, and the programs started on it. All end with it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from deskcert.adapters.linux.bus import AccessBus

QT_WINDOW = Path(__file__).with_name("qt_window.py")
NEEDED = ("Xvfb", "dbus-daemon")
LAUNCHERS = ("/usr/libexec/at-spi-bus-launcher", "/usr/lib/at-spi2-core/at-spi-bus-launcher")


def missing() -> list[str]:
    """What a desktop for tests lacks on this machine."""
    lacking = [name for name in NEEDED if shutil.which(name) is None]
    lacking += [] if any(Path(path).exists() for path in LAUNCHERS) else ["at-spi2-core"]
    return lacking + ([] if importlib.util.find_spec("PySide6") else ["PySide6"])


class Desktop:
    """Started when it is entered. `env` is what a program needs to be on it."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[Any]] = []
        self._folder = Path(tempfile.mkdtemp(prefix="deskcert-desktop-"))
        self.home = self._folder / "home"
        self.env: dict[str, str] = {}

    def __enter__(self) -> Self:
        for folder in (self.home, self._folder / "run"):
            folder.mkdir(mode=0o700)
        try:
            read, write = os.pipe()
            xvfb = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x900x24", "-nolisten", "tcp"]
            self._spawn(xvfb, pass_fds=(write,), stderr=subprocess.DEVNULL)
            os.close(write)
            with os.fdopen(read) as numbers:
                number = numbers.readline().strip()
            kept = {k: os.environ[k] for k in ("PATH",) if k in os.environ}
            self.env = kept | {
                "DISPLAY": f":{number}",
                "HOME": str(self.home),
                "XDG_RUNTIME_DIR": str(self._folder / "run"),
                "LC_ALL": "C.UTF-8",
                "GSETTINGS_BACKEND": "memory",
                "GIO_USE_VFS": "local",
                "GTK_RECENT_FILES_ENABLED": "0",
                "GNOME_ACCESSIBILITY": "1",
                "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
                "QT_QPA_PLATFORM": "xcb",
            }
            listen = f"--address=unix:path={self._folder / 'run' / 'bus'}"
            command = ["dbus-daemon", "--session", "--nofork", "--print-address=1", listen]
            bus = self._spawn(command, stdout=subprocess.PIPE)
            assert bus.stdout is not None
            self.env["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().decode().strip()
            # A program that comes before the accessibility bus does not wait for it.
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, _accessible(self.bus)).result()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    @property
    def bus(self) -> str:
        return self.env["DBUS_SESSION_BUS_ADDRESS"]

    @property
    def display(self) -> str:
        return self.env["DISPLAY"]

    def _spawn(self, command: list[str], **more: Any) -> subprocess.Popen[Any]:
        started = subprocess.Popen(command, env=self.env or None, start_new_session=True, **more)
        self._started.append(started)
        return started

    def start(self, *command: str, **env: str) -> Program:
        started = subprocess.Popen(
            command,
            env=self.env | env,
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.home,
            text=True,
        )
        self._started.append(started)
        return Program(started)

    def window(self) -> Program:
        """The tests' own Qt window."""
        return self.start(sys.executable, str(QT_WINDOW))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for process in reversed(self._started):
            # X server and bus are asked: killed, they leave their sockets behind.
            end = process.terminate if process in self._started[:2] else process.kill
            with contextlib.suppress(ProcessLookupError):
                end()
            process.wait()
        # What the bus itself has started (the accessibility bus, its registry) carries our folder in its environment.
        for pid in _with_environment(f"XDG_RUNTIME_DIR={self._folder / 'run'}"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)


class Program:
    """One running program. `lines` is what it has printed: its own log of effects."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._told = threading.Condition()
        assert process.stdout is not None
        threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def _read(self, out: IO[str]) -> None:
        for line in out:
            with self._told:
                self.lines.append(line.rstrip("\n"))
                self._told.notify_all()
        with self._told:
            self._told.notify_all()

    def wait_for(self, holds: Callable[[list[str]], bool], timeout: float = 15) -> bool:
        with self._told:
            return self._told.wait_for(lambda: holds(self.lines), timeout)

    def tell(self, line: str, timeout: float = 30) -> None:
        """An order to the Qt window, which has been carried out when this returns."""
        assert self.process.stdin is not None
        done = f"done {line}"
        before = self.lines.count(done)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.wait_for(lambda lines: lines.count(done) > before, timeout), (line, self.lines)

    def effects(self) -> list[str]:
        return [line.removeprefix("effect ") for line in self.lines if line.startswith("effect ")]

    def stop(self) -> None:
        """Stopped, as by a debugger: it answers nothing until `go`."""
        self.process.send_signal(signal.SIGSTOP)
        _until(lambda: _state(self.pid) == "T")

    def go(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


async def _accessible(bus: str) -> None:
    await (await AccessBus.connect(bus)).close()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _until(holds: Callable[[], bool], timeout: float = 10) -> None:
    end = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def _with_environment(entry: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if entry.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found
