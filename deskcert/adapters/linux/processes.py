"""The process behind a bus name: its generation, whether it lives, and whether it is stopped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Process", "process", "state_of"]


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    start: int
    """Clock ticks after boot, from `/proc/<pid>/stat`: a number that is used again has another start."""

    def generation(self, bus: str) -> str:
        return f"{bus}#{self.pid}@{self.start}"

    @property
    def alive(self) -> bool:
        fields = _stat(self.pid)  # once: between two looks it could end and be buried
        return fields is not None and int(fields[19]) == self.start and fields[0] not in ("Z", "X")


def process(pid: int) -> Process | None:
    """None where there is no such process."""
    fields = _stat(pid)
    return Process(pid, int(fields[19])) if fields is not None else None


def state_of(pid: int) -> str | None:
    """One letter: `R S D T Z X …`; None where there is no such process."""
    fields = _stat(pid)
    return fields[0] if fields is not None else None


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The command's name stands in brackets and may hold anything, brackets and blanks included.
    return text[text.rindex(")") + 2 :].split()
