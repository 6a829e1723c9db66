"""After a crash: nothing acknowledged is lost, nothing torn is kept as if it were whole, and the ledger says so."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import StepClock, fill, seeded

from deskcert_ledger import Ack, ProjectKey, Recovered, RunLedger, recover_run, verify_run
from deskcert_ledger.checkpoint import Checkpoint, read_checkpoints
from deskcert_ledger.recovery import Outcome
from deskcert_schema.errors import LedgerFormatError, LedgerTampered, UsageError

Create = Callable[..., RunLedger]


def recover(folder: Path, key: ProjectKey, seed: str = "recovery") -> Recovered:
    return recover_run(folder, key, clock=StepClock(), rng=seeded(seed))


def lines(folder: Path) -> list[bytes]:
    return (folder / "ledger.jsonl").read_bytes().split(b"\n")[:-1]


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(folder)]


@pytest.fixture
def crashed(create: Create) -> Path:
    """A run whose process died with an open intent: a copy of the folder while it is being written."""
    ledger = create()
    ledger.append("action.intent", {"action": 1})
    ledger.append("action.result", {"of": 1, "ok": True, "delivery": "delivered_verified"})
    ledger.append("action.intent", {"action": 2})
    folder = ledger.folder.with_name("crashed")
    shutil.copytree(ledger.folder, folder)
    return folder


def test_an_open_intent_becomes_unknown_in_a_new_epoch(crashed: Path, key: ProjectKey) -> None:
    before = lines(crashed)
    size = (crashed / "ledger.jsonl").stat().st_size
    done = recover(crashed, key)
    assert (done.outcome, done.open_intents, done.signed_size, done.cut) == (Outcome.RECOVERED, (3,), 4, 0)
    assert lines(crashed)[:4] == before
    recovery, result = records(crashed)[4:]
    assert (recovery["kind"], recovery["size"], recovery["cut"]) == ("recovery", 4, size)
    assert recovery["vkey"] != records(crashed)[0]["vkey"]
    assert (result["kind"], result["of"], result["ok"]) == ("action.result", 3, False)
    assert (result["delivery"], result["retry"], result["cause"]) == ("unknown", "never_automatic", "crash")
    report = verify_run(crashed, pins=[key.vkey], every_signature=True)
    assert (report.headline, report.open_intents, report.signed_size) == ("interrupted", (), 6)
    assert [epoch.first for epoch in report.epochs] == [0, 4]


def test_the_written_records_fit_their_schema(crashed: Path, key: ProjectKey) -> None:
    from deskcert_schema.validate import check

    recover(crashed, key)
    assert [check("record", record) for record in records(crashed)[4:]] == [[], []]


def test_recovering_again_changes_nothing(crashed: Path, key: ProjectKey) -> None:
    recover(crashed, key)
    before = {path: path.read_bytes() for path in crashed.rglob("*") if path.is_file()}
    assert recover(crashed, key, "again").outcome is Outcome.NOTHING_TO_DO
    assert {path: path.read_bytes() for path in crashed.rglob("*") if path.is_file()} == before


def test_a_sealed_run_is_left_alone(sealed: Path, key: ProjectKey) -> None:
    before = {path: path.read_bytes() for path in sealed.rglob("*") if path.is_file()}
    assert recover(sealed, key).outcome is Outcome.NOTHING_TO_DO
    assert {path: path.read_bytes() for path in sealed.rglob("*") if path.is_file()} == before


def test_a_run_that_ended_and_was_not_sealed_only_gets_its_seal(create: Create, key: ProjectKey) -> None:
    ledger = create()
    early = (ledger.folder / "checkpoint").read_bytes()
    fill(ledger)
    folder = ledger.folder.with_name("crashed")
    shutil.copytree(ledger.folder, folder)
    (folder / "checkpoint").write_bytes(early)
    assert verify_run(folder, pins=[key.vkey]).headline == "unfinished"
    assert recover(folder, key).outcome is Outcome.SEALED
    assert verify_run(folder, pins=[key.vkey]).headline == "complete"


def test_lines_past_the_last_note_are_kept_and_reported(crashed: Path, key: ProjectKey) -> None:
    """The notes are appended without a sync: a power failure can lose them, not the lines."""
    with (crashed / "checkpoints").open("rb") as file:
        notes = [item for item in read_checkpoints(file, limit=1 << 20) if isinstance(item, Checkpoint)]
    (crashed / "checkpoints").write_bytes(notes[0].raw + notes[1].raw[:50])
    assert verify_run(crashed, pins=[key.vkey]).words == ("interrupted", "prefix(1,3)")
    done = recover(crashed, key)
    assert done.signed_size == 1
    report = verify_run(crashed, pins=[key.vkey])
    assert report.headline == "interrupted"
    assert report.problems == ()
    assert report.epochs[1].as_json()["unsigned_until_recovery"] == [1, 4]
    assert (crashed / "torn" / f"checkpoints.{records(crashed)[4]['cut']}").exists()


def test_a_checkpoint_that_outlived_its_note_among_the_others_is_mended(crashed: Path, key: ProjectKey) -> None:
    """`checkpoint` is durable, `checkpoints` need not be: recovery puts the note back, and keeps what was there."""
    recover(crashed, key)
    whole = (crashed / "checkpoints").read_bytes()
    (crashed / "checkpoints").write_bytes(whole[:-40] + bytes(40))
    assert recover(crashed, key, "again").outcome is Outcome.SEALED
    report = verify_run(crashed, pins=[key.vkey])
    assert (report.headline, report.problems) == ("interrupted", ())
    assert (crashed / "checkpoints").read_bytes().endswith((crashed / "checkpoint").read_bytes())


def test_an_intent_without_result_is_made_unknown_even_after_run_end(create: Create, key: ProjectKey) -> None:
    ledger = create()
    ledger.append("action.intent", {"action": 1})
    ledger.append("run.end", {"outcome": "finished"})
    note = ledger._sequencer.last_note
    ledger.abandon()
    (ledger.folder / "checkpoint").write_bytes(note)  # as when it is written anew in that moment
    assert recover(ledger.folder, key).open_intents == (1,)


def tails(whole: bytes, choose: random.Random) -> list[bytes]:
    """What a crash can leave after the last durable byte: pieces of the next lines, zeros, pages out of order."""
    cut = choose.randrange(len(whole))
    middle = choose.randrange(len(whole))
    length = choose.randrange(1, 64)
    return [
        whole[:cut],
        bytes(choose.randrange(1, 5000)),
        whole[:cut] + bytes(length),
        whole[:middle] + bytes(length) + whole[middle + length :],  # a hole: the size is there, the data is not
        bytes(cut) + whole[cut:],
        choose.randbytes(length),
        whole,
    ]


def test_torn_tails_lose_nothing_acknowledged_and_keep_nothing_torn(
    create: Create, key: ProjectKey, fresh_seed: int
) -> None:
    choose = random.Random(fresh_seed)
    ledger = create()
    for number in range(3):
        ledger.append("action.result", {"n": number})
    durable = (ledger.folder / "ledger.jsonl").read_bytes()
    kept = ledger.folder.with_name("kept")
    shutil.copytree(ledger.folder, kept)
    ledger.append("action.intent", {"n": "next", "text": "x" * 300}, ack=Ack.ORDERED)
    ledger.append("action.intent", {"n": "last"})
    whole = (ledger.folder / "ledger.jsonl").read_bytes()[len(durable) :]
    for turn in range(15):
        for number, tail in enumerate(tails(whole, choose)):
            folder = kept.with_name(f"state-{turn}-{number}")
            shutil.copytree(kept, folder)
            with (folder / "ledger.jsonl").open("ab") as file:
                file.write(tail)
            if choose.random() < 0.5:
                with (folder / "checkpoints").open("ab") as file:
                    file.write(choose.choice([bytes(200), b"deskcert/test/run-1\n6\nAAAA", b"\n"]))
            recover(folder, key)
            after = (folder / "ledger.jsonl").read_bytes()
            assert after.startswith(durable)
            good = [line for line in records(folder) if line["w"] == "guard"]
            assert (durable + whole).startswith(b"".join(line + b"\n" for line in lines(folder)[: len(good)]))
            recovery = records(folder)[len(good)]
            cut = (durable + tail)[recovery["cut"] :]
            assert recovery["torn_bytes"] == len(cut)
            if cut:
                assert (folder / "torn" / str(recovery["cut"])).read_bytes() == cut
            opened = {line["seq"] for line in good if line["kind"] == "action.intent"}
            assert {line["of"] for line in records(folder)[len(good) + 1 :]} == opened
            report = verify_run(folder, pins=[key.vkey], every_signature=True)
            assert (report.headline, report.problems) == ("interrupted", ())
            shutil.rmtree(folder)


def test_a_changed_signed_line_is_refused_and_nothing_is_touched(crashed: Path, key: ProjectKey) -> None:
    path = crashed / "ledger.jsonl"
    for damage in (
        path.read_bytes().replace(b"delivered_verified", b"delivered_verifieD"),
        path.read_bytes()[:-30],
        b"\n".join([*lines(crashed)[:2], b""]),
        b"",
    ):
        kept = path.read_bytes()
        path.write_bytes(damage)
        before = {item: item.read_bytes() for item in crashed.rglob("*") if item.is_file()}
        with pytest.raises(LedgerTampered, match="Nothing was changed"):
            recover(crashed, key)
        assert {item: item.read_bytes() for item in crashed.rglob("*") if item.is_file()} == before
        path.write_bytes(kept)


def test_another_projects_key_cannot_recover(crashed: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerTampered):
        recover(crashed, ProjectKey.load_or_create(tmp_path / "other"))


def test_a_folder_without_records_has_nothing_to_recover(tmp_path: Path, key: ProjectKey) -> None:
    with pytest.raises(LedgerFormatError):
        recover(tmp_path, key)
    (tmp_path / "ledger.jsonl").write_bytes(b"")
    assert recover(tmp_path, key).outcome is Outcome.EMPTY


def test_a_recovery_killed_at_any_commit_can_be_recovered(crashed: Path, key: ProjectKey) -> None:
    """Cut the recovered ledger anywhere past the crash, as a second crash would, and recover again."""
    size = (crashed / "ledger.jsonl").stat().st_size
    with (crashed / "checkpoints").open("rb") as file:
        notes = file.read()
    first = crashed.with_name("first")
    shutil.copytree(crashed, first)
    recover(first, key)
    whole = (first / "ledger.jsonl").read_bytes()
    for end in range(size, len(whole), 37):
        folder = crashed.with_name(f"second-{end}")
        shutil.copytree(first, folder)
        (folder / "ledger.jsonl").write_bytes(whole[:end])
        (folder / "checkpoints").write_bytes(notes)
        shutil.copy(crashed / "checkpoint", folder / "checkpoint")
        recover(folder, key, "second")
        report = verify_run(folder, pins=[key.vkey], every_signature=True)
        assert (report.headline, report.open_intents, report.problems) == ("interrupted", (), ())
        shutil.rmtree(folder)


_WRITER = """
import os, sys
from pathlib import Path
from deskcert_ledger import Ack, ProjectKey, RunLedger, SystemClock
folder, key = Path(sys.argv[1]), ProjectKey.load(Path(sys.argv[2]))
ledger = RunLedger.create(
    folder, origin="deskcert/test/killed", start={}, project_key=key, clock=SystemClock(), rng=os.urandom
)
print(0, flush=True)
number = 0
while True:
    number += 1
    ledger.append("observation", {"n": number}, ack=Ack.ORDERED)
    intent = ledger.append("action.intent", {"n": number})
    print(intent.seq, flush=True)
    print(ledger.append("action.result", {"of": intent.seq, "n": number}).seq, flush=True)
"""


@pytest.mark.parametrize("turn", range(6))
def test_sigkill_of_a_real_writer_loses_nothing_acknowledged(
    tmp_path: Path, key: ProjectKey, fresh_seed: int, turn: int
) -> None:
    folder = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(folder), str(tmp_path / ".deskcert" / "key")], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    wanted = random.Random(fresh_seed + turn).randrange(1, 120)
    acknowledged = [int(process.stdout.readline()) for _ in range(wanted)]
    os.kill(process.pid, signal.SIGKILL)
    acknowledged += [int(line) for line in process.stdout.read().splitlines()]
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    recover_run(folder, key)
    found = records(folder)
    assert [record["seq"] for record in found] == list(range(len(found)))
    kinds = {record["seq"]: (record["kind"], record["w"]) for record in found}
    assert all(kinds[seq][1] == "guard" for seq in acknowledged)
    results = {record["of"]: record for record in found if record["kind"] == "action.result"}
    for record in found:
        if record["kind"] == "action.intent":
            assert record["seq"] in results
    report = verify_run(folder, pins=[key.vkey], every_signature=True)
    assert (report.headline, report.problems) == ("interrupted", ())
    with pytest.raises(UsageError):  # the next run needs another folder; this one is not written over
        RunLedger.create(
            folder, origin="deskcert/test/x", start={}, project_key=key, clock=StepClock(), rng=seeded("x")
        )
