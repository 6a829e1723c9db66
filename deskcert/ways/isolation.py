"""Where an agent runs so that only deskcert can be reached: a bubblewrap sandbox, or a network of its own.

bwrap   own network (loopback only), own process ids, everything read-only but a private /tmp, and the ledgers, the
        applications' data, the key and every socket of the machine out of sight
netns   own network only: files and processes of the machine stay in sight
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deskcert_schema.errors import UsageError

__all__ = ["Sandbox", "available", "need"]

_PRIVATE: Final = (Path("/tmp"), Path("/var/tmp"), Path("/run"))  # noqa: S108 - what others put there is covered up
RELAY: Final = Path(__file__).with_name("relay.py")


@dataclass(frozen=True, slots=True)
class Sandbox:
    kind: str
    """`bwrap | netns | none`"""
    base: Path
    """The project's folder: the agent starts in it, and may read it."""
    hidden: tuple[Path, ...] = ()
    """Folders and files of which it sees nothing."""

    def command(
        self, command: Sequence[str], *, shared: Path | None = None, listen: tuple[int, Path] | None = None
    ) -> list[str]:
        """What is started instead of `command`. `shared`: a folder that it may read, wherever it lies. `listen`: answer
        this port of its loopback by the socket."""
        inner = list(command)
        relay = [sys.executable, "-I", "-S", str(RELAY), "run"]
        if listen is not None:
            relay += ["--listen", str(listen[0]), str(listen[1])]
        match self.kind:
            case "bwrap":
                inner = [*relay, "--", *inner] if listen is not None else inner
                return [*self._bubble(shared), "--", *inner]
            case "netns":
                return [*relay[:5], "--netns", *relay[5:], "--", *inner]
            case _:
                return inner

    def _bubble(self, shared: Path | None) -> list[str]:
        words = ["bwrap", "--die-with-parent", "--new-session", "--unshare-all"]
        words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        private = [p for p in _PRIVATE if p.is_dir() and not p.is_symlink()]
        for folder in private:
            words += ["--tmpfs", str(folder)]
        for folder in (self.base, Path(sys.prefix), Path(sys.base_prefix), RELAY.parents[2]):
            if any(folder.is_relative_to(p) for p in private):
                words += ["--ro-bind", str(folder), str(folder)]
        covered: list[Path] = []
        for path in sorted(self.hidden):
            if any(path.is_relative_to(c) for c in covered):
                continue
            covered.append(path)
            if path.is_dir():
                words += ["--tmpfs", str(path), "--remount-ro", str(path)]
            elif path.exists():
                words += ["--ro-bind", "/dev/null", str(path)]
        if shared is not None:
            words += ["--ro-bind", str(shared), str(shared)]
        return [*words, "--chdir", str(self.base)]


def available(kind: str) -> str | None:
    """None when it works here; otherwise why not, and what to do."""
    match kind:
        case "none":
            return None
        case "bwrap":
            if shutil.which("bwrap") is None:
                return "bubblewrap is not installed: apt-get install bubblewrap"
            command = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"]
        case _:
            command = [sys.executable, "-I", "-S", str(RELAY), "run", "--netns", "--", "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        return f"{kind} does not work here: {exc}"
    if done.returncode == 0:
        return None
    last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return f"{kind} does not work here ({last}); user namespaces may be switched off"


def need(kind: str) -> None:
    """Raises `UsageError` where this isolation cannot be had: running without it would certify something else."""
    why = available(kind)
    if why is not None:
        raise UsageError(f"isolation: {kind}: {why}; or choose isolation: none, which every run records")
