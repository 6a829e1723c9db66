"""Many runs at once: one process a core, answers in the order of the runs. An unreadable run is an answer, too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from deskcert.replay.backtest import Reconsidered, back_test
from deskcert.replay.decisions import Recomputed, expanded, recompute_records
from deskcert_ledger import openings, verify_run
from deskcert_schema.errors import LedgerError

__all__ = ["Replayed", "Tested", "backtest_all", "replay_all"]

_ALONE: Final = 8
"""Up to so many runs one process is quicker than starting others."""


@dataclass(frozen=True, slots=True)
class Replayed:
    folder: Path
    word: str
    """The ledger's headline."""
    again: Recomputed | None
    """None where the ledger could not be read."""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Tested:
    folder: Path
    actions: tuple[Reconsidered, ...]
    trouble: str = ""


def replay_all(folders: Sequence[Path], pins: Sequence[str]) -> Iterator[Replayed]:
    """`pins` as vkey texts, which travel to other processes."""
    return _map(partial(_replay, pins=tuple(pins)), folders)


def backtest_all(folders: Sequence[Path], new: Mapping[str, Any]) -> Iterator[Tested]:
    """Raises `ConfigError` for a policy that cannot be compiled."""
    return _map(partial(_test, new=new), folders)


def _map[T](work: Callable[[Path], T], folders: Sequence[Path]) -> Iterator[T]:
    cores = min(len(os.sched_getaffinity(0)), len(folders))
    if cores < 2 or len(folders) <= _ALONE:
        yield from map(work, folders)
        return
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, folders, chunksize=max(1, min(16, len(folders) // (4 * cores))))


def _replay(folder: Path, *, pins: tuple[str, ...]) -> Replayed:
    try:
        word = verify_run(folder, pins=pins).headline
        return Replayed(folder, word, recompute_records(expanded(folder)))
    except LedgerError as exc:
        return Replayed(folder, "unreadable", None, str(exc))


def _test(folder: Path, *, new: Mapping[str, Any]) -> Tested:
    try:
        return Tested(folder, tuple(back_test(expanded(folder), new, openings(folder))))
    except (LedgerError, KeyError, TypeError) as exc:
        return Tested(folder, (), f"{type(exc).__name__}: {exc}" if not isinstance(exc, LedgerError) else str(exc))
