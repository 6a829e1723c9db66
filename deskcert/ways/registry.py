"""The open sessions of this user: one file and one socket each, in a private folder. Light: every one-shot command
reads it."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

from deskcert_schema.errors import UsageError

__all__ = ["Entry", "choose", "entries", "forget", "read_all", "remember", "runtime_folder"]


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    pid: int
    started: str
    """The process's start, in clock ticks since boot: with it a number used again names nobody."""
    url: str
    ledger: str
    base: str
    """The project's folder, whose key the ledger is introduced by."""

    @property
    def socket(self) -> Path:
        return runtime_folder() / f"{self.name}.sock"

    @property
    def alive(self) -> bool:
        return started_at(self.pid) == self.started


def started_at(pid: int) -> str:
    """Empty for a process that is not there, or a zombie."""
    try:
        # The name in parentheses may hold anything: count after the last one.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def runtime_folder() -> Path:
    """Made with mode 0700. Raises `UsageError` for one that others could have made or can read."""
    outer = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(outer) / "deskcert" if outer else Path(f"/tmp/deskcert-{os.getuid()}")  # noqa: S108 - checked below
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise UsageError(f"{folder} is not a private folder of yours; remove it, or set XDG_RUNTIME_DIR")
    return folder


def remember(entry: Entry) -> None:
    path = runtime_folder() / f"{entry.name}.json"
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(asdict(entry)), "utf-8")
    beside.replace(path)


def forget(name: str) -> None:
    for suffix in (".json", ".sock"):
        (runtime_folder() / f"{name}{suffix}").unlink(missing_ok=True)


def read_all() -> list[Entry]:
    """Also those whose process is gone; a file that is none is passed over."""
    found = []
    for path in sorted(runtime_folder().glob("*.json")):
        try:
            found.append(Entry(**json.loads(path.read_text("utf-8"))))
        except (OSError, ValueError, TypeError):
            continue
    return found


def entries() -> list[Entry]:
    return [e for e in read_all() if e.alive]


def choose(name: str | None) -> Entry:
    """The named session, or the only one. Raises `UsageError` with what to type."""
    wanted = name or os.environ.get("DESKCERT_SESSION")
    open_ones = entries()
    if wanted:
        for entry in open_ones:
            if entry.name == wanted:
                return entry
        raise UsageError(f"there is no open session {wanted!r}; {_known(open_ones)}")
    if len(open_ones) == 1:
        return open_ones[0]
    if not open_ones:
        raise UsageError("no session is open: deskcert session start --url URL --policy policy.yaml")
    raise UsageError(f"several sessions are open: give --session NAME or set DESKCERT_SESSION; {_known(open_ones)}")


def _known(open_ones: list[Entry]) -> str:
    return f"open are {', '.join(e.name for e in open_ones)}" if open_ones else "none is open"
