"""The long runs behind what the documents claim: `make evidence`, or `make evidence ONLY=ledger`.

Each piece is `scripts/evidence_<name>.py` with `PARTS`; its result is `docs/evidence/<name>.json`. A run that is
stopped goes on where it was: finished tasks are kept in `.evidence/`, and in the result for as long as it is not
complete, so that another checkout goes on too; `--again` begins anew. Every task has a seed of its own, made of the
run's seed, so that one failure can be repeated alone.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from scripts.evidence_parts import ROOT, Outcome, Part, commit, machine, seed_of

STATE = ROOT / ".evidence"
RESULTS = ROOT / "docs" / "evidence"
_MAX_FAILURES = 50
_LOG_SECONDS = 30.0


def names() -> list[str]:
    """All pieces there are."""
    found = []
    for path in sorted(Path(__file__).parent.glob("evidence_*.py")):
        if "\nPARTS" in path.read_text(encoding="utf-8"):
            found.append(path.stem.removeprefix("evidence_"))
    return found


class State:
    """What is finished, on disk after each task."""

    def __init__(self, name: str, folder: Path, *, seed: int | None, again: bool) -> None:
        self.path = folder / f"{name}.json"
        kept: dict[str, Any] = {} if again else self._kept(name)
        if seed is not None and kept.get("seed", seed) != seed:
            kept = {}
        self.seed: int = kept.get("seed", secrets.randbits(32) if seed is None else seed)
        self.parts: dict[str, dict[str, Any]] = kept.get("parts", {})
        now = commit()
        self.commits: list[str] = list(dict.fromkeys([*kept.get("commits", []), now]))
        """More than one when a run was resumed after a change."""

    def _kept(self, name: str) -> dict[str, Any]:
        if self.path.exists():
            return dict(json.loads(self.path.read_text()))
        written = RESULTS / f"{name}.json"
        before: dict[str, Any] = json.loads(written.read_text()) if written.exists() else {}
        unfinished = any(part.get("tasks") for part in before.get("parts", {}).values())
        return before if unfinished else {}

    def part(self, name: str) -> dict[str, Any]:
        fresh: dict[str, Any] = {"done": 0, "tasks": [], "counts": {}, "failures": [], "seconds": 0}
        return self.parts.setdefault(name, fresh)

    def add(self, part: str, task: int, outcome: Outcome, seconds: float) -> None:
        entry = self.part(part)
        entry["tasks"].append(task)
        entry["done"] += outcome.done
        entry["seconds"] = round(entry["seconds"] + seconds, 1)
        for name, count in outcome.counts.items():
            old = entry["counts"].get(name, 0)
            entry["counts"][name] = max(old, count) if name.startswith("max_") else old + count
        room = _MAX_FAILURES - len(entry["failures"])
        entry["failures"] += outcome.failures[:room]
        self.save()

    def save(self) -> None:
        self.path.parent.mkdir(exist_ok=True)
        text = json.dumps({"seed": self.seed, "commits": self.commits, "parts": self.parts})
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(text)
        temporary.replace(self.path)


class Show:
    """A bar in a terminal, a line now and then in a log."""

    def __init__(self, part: Part, done: int, goal: int) -> None:
        self._part, self._goal, self._last = part, goal, 0.0
        self._bar: Any = None
        if sys.stdout.isatty():
            from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

            self._bar = Progress(*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
            self._bar.start()
            self._task = self._bar.add_task(part.name, total=goal, completed=done)

    def at(self, done: int, failures: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
        elif done >= self._goal or time.monotonic() - self._last >= _LOG_SECONDS:
            self._last = time.monotonic()
            sys.stdout.write(f"{self._part.name}: {done} of {self._goal}, {failures} failures\n")
            sys.stdout.flush()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    # A thread for each task would fork with threads alive; a forkserver starts clean processes.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("forkserver"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def run_part(part: Part, state: State, goal: int) -> None:
    """Do what is left of one part."""
    finished = set(state.part(part.name)["tasks"])
    tasks = iter([task for task in range((goal + part.task - 1) // part.task) if task not in finished])
    workers = min(part.workers, os.cpu_count() or 1)
    show = Show(part, state.part(part.name)["done"], goal)
    with _pool(workers) as pool:
        running: dict[Future[Outcome], tuple[int, float]] = {}

        def start() -> None:
            task = next(tasks, None)
            if task is not None:
                units = min(part.task, goal - task * part.task)
                future = pool.submit(part.work, seed_of(state.seed, part.name, task), units)
                running[future] = (task, time.monotonic())

        try:
            for _ in range(workers):
                start()
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task, began = running.pop(future)
                    state.add(part.name, task, future.result(), time.monotonic() - began)
                    show.at(state.part(part.name)["done"], len(state.part(part.name)["failures"]))
                    start()
        finally:
            show.close()


def result(name: str, parts: list[Part], state: State, command: str) -> dict[str, Any]:
    shown = {}
    for part in parts:
        entry = state.part(part.name)
        shown[part.name] = {**entry, "goal": part.goal, "reached": entry["done"] >= part.goal}
    complete = all(entry["reached"] for entry in shown.values())
    if complete:
        for entry in shown.values():
            del entry["tasks"]
    return {
        "name": name,
        "command": command,
        "commits": state.commits,
        "seed": state.seed,
        "written": datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
        "complete": complete,
        "failures": sum(len(entry["failures"]) for entry in shown.values()),
        "parts": shown,
        "machine": machine(),
    }


def gather(name: str, *, seed: int | None, share: float, again: bool, write_only: bool, only_part: str) -> bool:
    """Run one piece and write its result. True when it is whole and without a failure."""
    parts: list[Part] = importlib.import_module(f"scripts.evidence_{name}").PARTS
    state = State(name, STATE, seed=seed, again=again)
    sys.stdout.write(f"{name}: seed {state.seed}\n")
    for part in parts:
        if not write_only and only_part in ("", part.name):
            run_part(part, state, max(1, int(part.goal * share)))
    RESULTS.mkdir(parents=True, exist_ok=True)
    document = result(name, parts, state, f"make evidence ONLY={name}")
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
    words = "complete" if document["complete"] else "not complete"
    sys.stdout.write(f"docs/evidence/{name}.json: {words}, {document['failures']} failures\n")
    return bool(document["complete"]) and document["failures"] == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=names(), help="one piece")
    parser.add_argument("--part", default="", help="one part of it")
    parser.add_argument("--seed", type=int, help="default: that of the run that is resumed, or a fresh one")
    parser.add_argument("--share", type=float, default=1.0, help="share of each goal, 0.01 for one per cent")
    parser.add_argument("--again", action="store_true", help="forget what is finished")
    parser.add_argument("--write", action="store_true", help="run nothing: write down what is finished")
    asked = parser.parse_args()
    chosen = [asked.only] if asked.only else names()
    whole = [
        gather(
            name, seed=asked.seed, share=asked.share, again=asked.again, write_only=asked.write, only_part=asked.part
        )
        for name in chosen
    ]
    return 0 if all(whole) else 1


if __name__ == "__main__":
    sys.exit(main())
