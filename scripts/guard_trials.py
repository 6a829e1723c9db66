"""Tries mutants of the guard against the tests that run through the changed place: a warm process, a fork for each.

`python -m scripts.guard_trials FIRST COUNT` prints one JSON line for each mutant: its name, and by what it died or that
it lives. Everything is imported and collected once. A fork changes the code of the one function, or carries out the one
statement of a module again, and runs the quickest tests first until one fails. More processor time than fits the tests
is a death too. Which test runs through which line is noted once for each state of the sources, in
`.evidence/`; so is what killed a mutant.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from scripts.evidence_parts import ROOT, scratch
from scripts.guard_mutation import FILES, Mutant, mutants
from scripts.guard_swap import Unswappable, fresh, module_of, swap

__all__ = ["Trial", "every_mutant", "trials"]

TESTS: Final = (
    *("tests/guard", "tests/contract", "tests/schema/test_dispositions_page.py"),
    *("tests/replay/test_looks_are_decided_again.py", "tests/adapters/test_contract_simulator.py"),
)
"""Without a browser, a process or a disk: these answer in a second what the others notice, too."""
HISTORIES_OF: Final = "tests/guard/test_guard_properties.py"
"""Random histories are left out: a second of processor time each, and what they notice the others notice sooner."""
SLOW_S: Final = 1.5
"""A test that takes longer takes no part."""
_TOO_MUCH_S: Final = 2.0
_TIMES: Final = 6
_STANDS_STILL_S: Final = 15.0
"""Of one test: processor time over this is a loop, and without any it waits for what never comes."""

_FEW: Final = 5
_USERS: Final = {"deskcert/guard/confusables.py": "deskcert/guard/names.py"}
"""Where all of a file is kept: who uses it."""
_ASKS: Final = {
    "deskcert/guard/confusables.py": (
        "tests/guard/test_guard_decides_as_before.py::test_every_text_is_read_as_before[tables]",
    )
}
"""And which tests ask it for what is kept, and so run through none of its lines."""

type Lines = dict[str, dict[str, list[int]]]
"""Test to file to the lines that it runs through."""


@dataclass(frozen=True, slots=True)
class Trial:
    mutant: Mutant
    killed_by: str | None
    """A test, or `time`; None: it lives."""
    tried: int
    """Tests that run through the place; none of them where it is known from before."""


def every_mutant() -> list[Mutant]:
    return list(chain.from_iterable(mutants(file) for file in FILES))


def trials(chosen: Sequence[Mutant], told: Callable[[Trial], None]) -> None:
    """In a process that has imported none of it. Raises `RuntimeError` when the tests fail without any mutant."""
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / p) for p in ("tests/session", "tests/adapters", "tests/replay")]
    with tempfile.TemporaryDirectory(prefix="deskcert-mutants-", dir=_fast_disk()) as folder:
        ignored = [f"--ignore={HISTORIES_OF}"]
        plugin = _Plugin(chosen, told)
        options = ["-o", "addopts=", "-s", "-x", "-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:randomly"]
        marks = ["-m", "not web and not evidence"]
        code = pytest.main([*options, *marks, f"--basetemp={folder}/t", *ignored, *TESTS], plugins=[plugin])
    if plugin.broken is not None or not plugin.done:
        raise RuntimeError(plugin.broken or f"no mutant was tried: pytest ended with {code}")


def _fast_disk() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


class _Dead:
    """What killed a mutant kills it again, as long as neither the file nor the file of the test has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self._known = {tuple(key): by for key, by in map(json.loads, lines)}

    def of(self, mutant: Mutant) -> str | None:
        by = self._known.get((_digest(mutant.file), mutant.number))
        return by[0] if by is not None and (by[0] == "time" or _digest(_test_file(by[0])) == by[1]) else None

    def add(self, mutant: Mutant, by: str) -> None:
        if by != "time" and "::" not in by:
            return
        line = [[_digest(mutant.file), mutant.number], [by, "" if by == "time" else _digest(_test_file(by))]]
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def _test_file(test: str) -> Path:
    return ROOT / test.partition("::")[0]


@cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.exists() else ""


class _Plugin:
    def __init__(self, chosen: Sequence[Mutant], told: Callable[[Trial], None]) -> None:
        self._chosen, self._told = chosen, told
        self._killers: dict[tuple[str, str], list[str]] = {}
        self._dead = _Dead(scratch() / "guard_dead.jsonl")
        self.broken: str | None = None
        self.done = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            self.broken = "the tests cannot be collected"
            return True
        items = {item.nodeid: item for item in session.items}
        _settle(items.values())
        known = _known(items)
        if not known["fine"]:
            self.broken = f"fails without any mutant: {known['failed']}"
            return True
        seconds: dict[str, float] = known["seconds"]
        for mutant in self._chosen:
            by = self._dead.of(mutant)
            if by is not None:
                self._told(Trial(mutant, by, 0))
                continue
            told = self._try(mutant, items, known["lines"], seconds)
            if told.killed_by is not None:
                self._dead.add(mutant, told.killed_by)
            self._told(told)
        self.done = True
        return True

    def _try(self, mutant: Mutant, items: dict[str, pytest.Item], lines: Lines, seconds: dict[str, float]) -> Trial:
        file = str(mutant.file.relative_to(ROOT))
        wanted = set(mutant.lines) if mutant.function else None
        through = [
            name
            for name, files in lines.items()
            if name in items and file in files and (wanted is None or not wanted.isdisjoint(files[file]))
        ]
        if len(through) < _FEW:
            # What a function keeps of earlier calls hides it from later tests: whoever uses its file may notice.
            user = _USERS.get(file, file)
            through = [name for name, files in lines.items() if name in items and {file, user} & files.keys()]
            through += [name for name in _ASKS.get(file, ()) if name in items and name not in through]
        place = (file, mutant.function)
        before = self._killers.setdefault(place, [])
        through.sort(key=lambda name: (name not in before, seconds[name]))

        def work() -> str | None:
            try:
                swap(mutant)
                _forget()
            except Unswappable:
                return fresh(mutant)
            except Exception as error:  # it cannot even be carried out: that is seen by whoever imports it
                return type(error).__name__
            return _first_failure([items[name] for name in through], seconds)

        killer = _in_a_fork(work)
        if killer in items:
            before[:] = [killer, *(k for k in before if k != killer)][:5]
        return Trial(mutant, killer, len(through))


def _forget() -> None:
    """What functions of the guard keep of earlier calls."""
    for file in FILES:
        for found in vars(sys.modules[module_of(file)]).values():
            getattr(found, "cache_clear", lambda: None)()


def _settle(items: Iterable[pytest.Item]) -> None:
    """The same random examples each time."""
    from hypothesis import HealthCheck, settings

    quiet: dict[str, Any] = {"derandomize": True, "database": None, "deadline": None}
    for item in items:
        function = getattr(item, "obj", None)
        function = getattr(function, "__func__", function)
        kept = getattr(function, "_hypothesis_internal_use_settings", None)
        if kept is not None:
            chosen = settings(kept, suppress_health_check=list(HealthCheck), **quiet)
            function._hypothesis_internal_use_settings = chosen  # type: ignore[union-attr]


def _first_failure(items: Sequence[pytest.Item], seconds: Mapping[str, float]) -> str | None:
    from _pytest.runner import runtestprotocol

    for item, following in pairwise((*items, None)):
        assert item is not None
        _limit(seconds.get(item.nodeid, 60.0))
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return item.nodeid
    return None


def _limit(usual_s: float) -> None:
    """The system ends this process when the next test takes far longer."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    most = int(used + _TOO_MUCH_S + _TIMES * usual_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
    signal.alarm(int(_STANDS_STILL_S + 10 * _TIMES * usual_s))


def _in_a_fork(work: Callable[[], str | None]) -> str | None:
    """What it answers, or `time`."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _alone(work, writing)
    os.close(writing)
    answer = b"".join(iter(lambda: os.read(reading, 65_536), b"")).decode()
    os.close(reading)
    os.waitpid(child, 0)
    return "time" if not answer else None if answer == "-" else answer


def _alone(work: Callable[[], str | None], writing: int) -> None:
    """The fork. Never returns."""
    try:
        silent = os.open(os.devnull, os.O_RDWR)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        answer = work() or "-"
    except BaseException as error:  # whatever it broke, it was noticed
        answer = type(error).__name__
    os.write(writing, answer.encode()[:60_000])
    os._exit(0)


def _known(items: dict[str, pytest.Item]) -> dict[str, Any]:
    """Which test runs through which line, and how long it takes: from `.evidence/`, or noted now, in a fork."""
    sources = chain(FILES, *((ROOT / t).rglob("*.py") if (ROOT / t).is_dir() else [ROOT / t] for t in TESTS))
    digest = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(sources))).hexdigest()[:16]
    kept = scratch() / f"guard_lines_{digest}.json"
    if not kept.exists():
        beside = kept.with_suffix(f".{os.getpid()}")

        def work() -> None:
            beside.write_text(json.dumps(_noted(items)))

        _in_a_fork(work)
        beside.replace(kept)
    found: dict[str, Any] = json.loads(kept.read_text())
    return found


def _noted(items: dict[str, pytest.Item]) -> dict[str, Any]:
    tool, monitoring = 4, sys.monitoring
    ours = {str(file): str(file.relative_to(ROOT)) for file in FILES}
    seen: set[tuple[str, int]] = set()

    def line(code: Any, number: int) -> object:
        if code.co_filename in ours:
            seen.add((ours[code.co_filename], number))
        return monitoring.DISABLE

    monitoring.use_tool_id(tool, "guard_trials")
    monitoring.register_callback(tool, monitoring.events.LINE, line)
    monitoring.set_events(tool, monitoring.events.LINE)
    lines: Lines = {}
    seconds: dict[str, float] = {}
    failed = []
    for name, item in items.items():
        seen.clear()
        monitoring.restart_events()
        began = time.process_time()
        if _first_failure([item], {}) is not None:
            failed.append(name)
        seconds[name] = round(time.process_time() - began, 4)
        if seen and seconds[name] < SLOW_S:
            files: dict[str, list[int]] = {}
            for file, number in sorted(seen):
                files.setdefault(file, []).append(number)
            lines[name] = files
    monitoring.set_events(tool, 0)
    monitoring.free_tool_id(tool)
    return {"fine": not failed, "failed": failed, "lines": lines, "seconds": seconds}


def main() -> None:
    first, count, step = (*map(int, sys.argv[1:4]), 1)[:3]
    out = os.fdopen(os.dup(1), "w")

    def told(trial: Trial) -> None:
        entry = {"name": trial.mutant.name, "killed_by": trial.killed_by, "tried": trial.tried}
        out.write(json.dumps(entry) + "\n")
        out.flush()

    trials(every_mutant()[first::step][:count], told)


if __name__ == "__main__":
    main()
