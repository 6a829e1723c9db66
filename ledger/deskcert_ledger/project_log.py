"""The project's log: one leaf for each run that was begun, so that a run which is left out shows.

A run folder can be deleted whole, and the streams that survive do not say so. Before a run writes its first record its
origin and its key become a leaf here; `run.start` holds size and root of the log with that leaf in it. The tree and the
note are those of a ledger; the project's key signs. One writer at a time: whoever has locked the file.

A campaign leaves a copy beside its runs. Whoever verifies the folder recomputes the root, looks for the leaf of each
run, and for the run of each leaf of the campaigns that are there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from deskcert_ledger.b64 import b64encode
from deskcert_ledger.checkpoint import checkpoint_text, parse_checkpoint
from deskcert_ledger.clock import Clock, timestamp
from deskcert_ledger.files import open_own, open_regular, read_bounded
from deskcert_ledger.keys import ProjectKey
from deskcert_ledger.line import decode, encode
from deskcert_ledger.merkle import Tree, leaf_hash
from deskcert_ledger.note import MAX_NOTE_BYTES, Verifier
from deskcert_schema.errors import LedgerFormatError, LedgerTampered, LedgerUnavailable

__all__ = ["COPY", "LogReport", "ProjectLog", "check_log"]

LINES: Final = "log.jsonl"
CHECKPOINT: Final = "checkpoint"
COPY: Final = "project-log"
"""The folder of the copy, beside `runs`."""
_MAX_LINE: Final = 4096
_MAX_RUNS: Final = 1_000_000
"""What is read of a log that somebody else made: its entries are kept."""


@dataclass(frozen=True, slots=True)
class _Entry:
    origin: str
    run: str
    vkey: str
    campaign: str


class ProjectLog:
    """The log in `folder`, made when it is first written. `campaign`: what is begun together."""

    def __init__(self, folder: Path, key: ProjectKey, clock: Clock, *, campaign: str) -> None:
        self._folder, self._key, self._clock, self.campaign = folder, key, clock, campaign

    def begin(self, run: str) -> Callable[[str, str], dict[str, Any]]:
        """For `RunLedger.create`: writes the leaf when there is a run key, and gives what `run.start` says of it."""

        def register(origin: str, vkey: str) -> dict[str, Any]:
            size, root = self._append(_Entry(origin, run, vkey, self.campaign))
            return {"project_log": {"size": size, "root": b64encode(root)}}

        return register

    def copy(self, to: Path) -> None:
        """Leave what stands in the log now in the folder `to`. Raises `LedgerUnavailable`, `LedgerTampered`."""
        try:
            with self._locked(), _made(to):
                held = _read(self._folder, (self._key.verifier,))
                if held.signed != held.tree.size:  # a process that died left a leaf without its checkpoint
                    self._sign(held.tree)
                for name in (LINES, CHECKPOINT):
                    if (self._folder / name).exists():
                        shutil.copyfile(self._folder / name, to / name)
        except OSError as error:
            raise LedgerUnavailable(f"The project's log cannot be copied to {to}: {error.strerror}.") from error

    def _append(self, entry: _Entry) -> tuple[int, bytes]:
        """Raises `LedgerUnavailable`, `LedgerTampered`."""
        try:
            with self._locked() as fd:
                tree, end = self._stand()
                os.ftruncate(fd, end)  # a line that a crash tore; nobody was told of it
                line = encode({
                    "v": 1, "n": tree.size, "t": timestamp(self._clock.now()), "origin": entry.origin, "run": entry.run,
                    "vkey": entry.vkey, "campaign": entry.campaign,
                }, limit=_MAX_LINE)  # fmt: skip
                os.write(fd, line + b"\n")
                os.fdatasync(fd)
                tree.append(leaf_hash(line))
                self._sign(tree)
                return tree.size, tree.root()
        except OSError as error:
            raise LedgerUnavailable(
                f"The project's log in {self._folder} cannot be written: {error.strerror}."
            ) from error

    @contextmanager
    def _locked(self) -> Iterator[int]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = open_own(self._folder / LINES, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield fd
        finally:
            os.close(fd)

    def _stand(self) -> tuple[Tree, int]:
        """The tree over the whole lines, and where they end. Raises `LedgerTampered` when the checkpoint differs."""
        held = _read(self._folder, (self._key.verifier,))
        return held.tree, held.end

    def _sign(self, tree: Tree) -> None:
        note = self._key.sign_note(checkpoint_text(self._key.verifier.name, tree.size, tree.root()))
        temporary = self._folder / f".{CHECKPOINT}.tmp"
        fd = open_own(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            os.write(fd, note.encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        temporary.replace(self._folder / CHECKPOINT)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    yield


@dataclass(slots=True)
class _Held:
    """What stands in a log."""

    tree: Tree = field(default_factory=Tree)
    end: int = 0
    entries: list[_Entry] = field(default_factory=list)
    roots: dict[int, bytes] = field(default_factory=dict)
    """At the sizes that were asked for."""
    signed: int = 0


def _read(folder: Path, pins: Sequence[Verifier], sizes: frozenset[int] = frozenset()) -> _Held:
    """Raises `LedgerTampered`; reads up to the first line that is none."""
    held = _Held()
    note = None
    try:
        note = parse_checkpoint(read_bounded(folder / CHECKPOINT, MAX_NOTE_BYTES))
    except FileNotFoundError:
        pass
    except LedgerFormatError as error:
        raise LedgerTampered(f"the project log's checkpoint is none: {error}") from error
    if note is not None and pins and not any(note.note.holds(pin) and note.origin == pin.name for pin in pins):
        raise LedgerTampered("the project log's checkpoint is not signed by the pinned key")
    with open_regular(folder / LINES) as file:
        while held.tree.size < _MAX_RUNS and (line := file.readline(_MAX_LINE + 2)).endswith(b"\n"):
            entry = _entry(line[:-1], held.tree.size)
            if entry is None:
                break
            held.tree.append(leaf_hash(line[:-1]))
            held.end += len(line)
            held.entries.append(entry)
            if held.tree.size in sizes:
                held.roots[held.tree.size] = held.tree.root()
            if note is not None and note.size == held.tree.size:
                held.signed = note.size
                if note.root != held.tree.root():
                    raise LedgerTampered(f"the project log's lines do not match its checkpoint of size {note.size}")
    if note is not None and held.signed != note.size:
        raise LedgerTampered(f"the project log's checkpoint vouches for {note.size} runs, {held.tree.size} are there")
    return held


def _entry(line: bytes, number: int) -> _Entry | None:
    try:
        raw = decode(line, limit=_MAX_LINE)
    except LedgerFormatError:
        return None
    if not isinstance(raw, dict) or raw.get("n") != number:
        return None
    texts = [raw.get(name) for name in ("origin", "run", "vkey", "campaign")]
    return _Entry(*map(str, texts)) if all(isinstance(text, str) for text in texts) else None


@dataclass(frozen=True, slots=True)
class LogReport:
    size: int
    """Runs the log holds."""
    expected: int
    """Runs that the campaigns began of which runs are here."""
    missing: tuple[str, ...]
    """Those of them that are not here."""
    problems: tuple[str, ...]
    """What contradicts the log: a changed line, a run that it does not know."""
    without: int = 0
    """Runs here that were begun without a log."""

    @property
    def good(self) -> bool:
        return not self.missing and not self.problems

    def as_json(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "expected": self.expected,
            "missing": list(self.missing),
            "problems": list(self.problems),
            "without": self.without,
        }


def check_log(folder: Path, pins: Sequence[Verifier], starts: Sequence[dict[str, Any]]) -> LogReport:
    """Hold the `run.start` records of the runs that are here against the log in `folder`. Never writes.

    Raises `LedgerFormatError` when there is no log.
    """
    logged = [(start, item) for start in starts if isinstance(item := start.get("project_log"), dict)]
    sizes = frozenset(item["size"] for _, item in logged if type(item.get("size")) is int)
    try:
        held = _read(folder, pins, sizes)
    except OSError as error:
        raise LedgerFormatError(f"there is no project log in {folder}") from error
    except LedgerTampered as error:
        return LogReport(0, 0, (), (str(error),))
    by_origin = {entry.origin: entry for entry in held.entries}
    problems = ["two leaves of the project log are of one run"] if len(by_origin) < len(held.entries) else []
    if held.signed != held.tree.size:  # else its last leaves, and with them the last runs, could be dropped unseen
        problems.append(f"only {held.signed} of the project log's {held.tree.size} leaves are under its checkpoint")
    campaigns: set[str] = set()
    for start, item in logged:
        entry = by_origin.get(str(start.get("origin")))
        if entry is None or entry.vkey != start.get("vkey"):
            problems.append(f"run {start.get('run')} is not the one in the project log")
            continue
        campaigns.add(entry.campaign)
        size = item.get("size")
        if type(size) is not int or item.get("root") != b64encode(held.roots.get(size, b"")):
            problems.append(f"run {entry.run} began with another project log than this one")
    here = {str(start.get("origin")) for start in starts}
    wanted = [entry for entry in held.entries if entry.campaign in campaigns]
    missing = tuple(entry.run for entry in wanted if entry.origin not in here)
    return LogReport(held.tree.size, len(wanted), missing, tuple(problems), len(starts) - len(logged))
