"""Verifying a run that is being written, and one whose clock was set back."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import StepClock

from deskcert_ledger import Blob, ProjectKey, RunLedger, SystemClock, read_records, verify_run
from deskcert_ledger.notary import Following

Create = Callable[..., RunLedger]


@contextmanager
def at_look(number: int, step: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Do `step` before the look at the disk with this number: a file that is opened, or asked for."""
    looks, within = [0], [False]

    def counted[**P, R](look: Callable[P, R]) -> Callable[P, R]:
        def counting(*args: P.args, **kwargs: P.kwargs) -> R:
            if not within[0]:
                looks[0] += 1
                if looks[0] == number:
                    within[0] = True
                    step()
                    within[0] = False
            return look(*args, **kwargs)

        return counting

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", counted(os.open))
        patch.setattr(Path, "exists", counted(Path.exists))
        patch.setattr(Path, "is_file", counted(Path.is_file))
        yield looks


@pytest.mark.parametrize("goes_on", ["a record", "the seal", "to its end"])
def test_a_run_that_goes_on_at_any_look_of_its_verification_is_never_tampered(
    create: Create, key: ProjectKey, goes_on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, looks, words = 0, [1], set()
    while number <= looks[0]:
        number += 1
        clock = StepClock()
        ledger = create(f"run-{number}", clock=clock)
        ledger.append("observation", {"tree": Blob({"n": 1})})
        clock.us += 2_000_000  # `checkpoint` is due: it vouches for all that is there
        ledger.append("run.end" if goes_on == "the seal" else "action.result", {"of": 0})

        def step(ledger: RunLedger = ledger) -> None:
            if goes_on != "the seal":
                ledger.append("observation", {"tree": Blob({"n": 2})})
            if goes_on == "to its end":
                ledger.append("run.end", {})
            if goes_on != "a record":
                ledger.seal()

        with at_look(number, step, monkeypatch) as looks:
            report = verify_run(ledger.folder, pins=[key.vkey])
        assert report.headline.partition("(")[0] in {"prefix", "unfinished", "complete"}, (number, report.problems)
        assert report.headline != "complete" or goes_on != "a record"
        words.add(report.headline)
        ledger.abandon()
    assert len(words) > 1 or goes_on == "the seal"
    assert number > 10


def test_a_run_is_verified_again_and_again_while_a_thread_writes_it(create: Create, key: ProjectKey) -> None:
    ledger = create(clock=SystemClock(), following=Following.THREAD)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            intent = ledger.append("action.intent", {"action": 1})
            ledger.append("action.result", {"of": intent.seq, "ok": True, "delivery": "delivered_verified"})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        reports = [verify_run(ledger.folder, pins=[key.vkey]) for _ in range(30)]
    finally:
        stop.set()
        writer.join()
    assert {report.headline.partition("(")[0] for report in reports} <= {"prefix", "unfinished", "interrupted"}
    assert reports[-1].size > reports[0].size


def test_a_copy_cut_back_to_an_earlier_checkpoint_is_tampering_still(create: Create, key: ProjectKey) -> None:
    """What excuses a certificate of a later state is that the ledger itself is longer by then, and nothing else."""
    clock = StepClock()
    ledger = create(clock=clock)
    clock.us += 2_000_000
    ledger.append("action.result", {"of": 0})
    names = ("ledger.jsonl", "checkpoints", "checkpoint")
    early = {name: (ledger.folder / name).read_bytes() for name in names}
    ledger.append("run.end", {})
    ledger.seal()
    for name, data in early.items():
        (ledger.folder / name).write_bytes(data)
    report = verify_run(ledger.folder, pins=[key.vkey])
    assert report.headline == "tampered"
    assert "another state of this one" in report.problems[0].text


class SetBack(StepClock):
    """Somebody sets the clock back by a day, again and again."""

    def now(self) -> datetime:
        return datetime(2026, 11, 30, 20, 0, tzinfo=UTC) - timedelta(days=self.us // 1000)


def test_a_clock_that_is_set_back_within_a_run_changes_no_order(create: Create, key: ProjectKey) -> None:
    ledger = create(clock=SetBack())
    for _ in range(30):
        intent = ledger.append("action.intent", {"action": 1})
        ledger.append("action.result", {"of": intent.seq, "ok": True, "delivery": "delivered_verified"})
    ledger.append("run.end", {})
    ledger.seal()
    report = verify_run(ledger.folder, pins=[key.vkey], schema=False)
    assert (report.headline, report.problems) == ("complete", ())
    records = list(read_records(ledger.folder))
    assert [record.seq for record in records] == list(range(62))
    assert [record.m for record in records] == sorted(record.m for record in records)
    assert records[0].t > records[-1].t
