"""Writing: order, acknowledgements, secrets, blobs, one writer, and a disk that fails."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ORIGIN, StepClock, fill

from deskcert_ledger import Ack, Blob, ProjectKey, RunLedger, Secret, expand, load_blob, openings, read_records

from deskcert_ledger import recover_run, verify_run  # isort: skip
from deskcert_ledger.checkpoint import Checkpoint, read_checkpoints
from deskcert_ledger.merkle import Tree, leaf_hash
from deskcert_ledger.notary import Following
from deskcert_ledger.note import parse_vkey
from deskcert_ledger.store import Disk
from deskcert_schema.errors import ContractError, LedgerFormatError, LedgerTampered, LedgerUnavailable, UsageError

Create = Callable[..., RunLedger]


def documents(folder: Path) -> list[dict[str, Any]]:
    """The lines as any program would read them, without our reader."""
    return [json.loads(line) for line in (folder / "ledger.jsonl").read_bytes().decode().split("\n")[:-1]]


def notes(folder: Path) -> list[Checkpoint]:
    with (folder / "checkpoints").open("rb") as file:
        found = list(read_checkpoints(file, limit=1 << 30))
    assert all(isinstance(item, Checkpoint) for item in found)
    return [item for item in found if isinstance(item, Checkpoint)]


def test_a_sealed_run_on_disk(sealed: Path, key: ProjectKey) -> None:
    lines = documents(sealed)
    assert [list(line)[:6] for line in lines] == [["v", "seq", "t", "m", "w", "kind"]] * len(lines)
    assert [line["seq"] for line in lines] == list(range(8))
    assert lines[0]["kind"] == "run.start"
    assert lines[-1]["kind"] == "run.end"
    assert lines[0]["origin"] == ORIGIN
    times = [line["m"] for line in lines]
    assert times == sorted(times)
    introduction = lines[0]["key_intro"]
    assert introduction.startswith(f"deskcert run key\n{ORIGIN}\n{lines[0]['vkey']}\n\n— {key.verifier.name} ")
    tree = Tree()
    for raw in (sealed / "ledger.jsonl").read_bytes().split(b"\n")[:-1]:
        tree.append(leaf_hash(raw))
    final = (sealed / "checkpoint").read_bytes()
    assert final == notes(sealed)[-1].raw
    assert (notes(sealed)[-1].size, notes(sealed)[-1].root) == (8, tree.root())
    assert all(note.note.holds(parse_vkey(lines[0]["vkey"])) for note in notes(sealed))
    assert (sealed / "disclosures.jsonl").stat().st_mode & 0o777 == 0o600


def test_the_hash_file_is_in_gos_order(sealed: Path) -> None:
    tree = Tree()
    cells = b"".join(
        b"".join(tree.append(leaf_hash(raw))) for raw in (sealed / "ledger.jsonl").read_bytes().split(b"\n")[:-1]
    )
    assert (sealed / "ledger.hashes").read_bytes() == cells


def test_the_seal_answers_with_the_final_checkpoint_and_destroys_the_key(create: Create) -> None:
    ledger = create()
    fill(ledger)
    done = ledger.seal()
    assert done.checkpoint_text == (ledger.folder / "checkpoint").read_text()
    assert (done.size, done.root) == ledger.head == (8, done.checkpoint_text.split("\n")[2])
    assert ledger.seal() == done
    with pytest.raises(LedgerUnavailable, match="sealed"):
        ledger.append("claim", {})
    with pytest.raises(LedgerFormatError, match="destroyed"):
        ledger._key.sign_note("text\n")


def test_secrets_leave_no_trace_but_their_openings(sealed: Path) -> None:
    everything = b"".join(path.read_bytes() for path in sealed.rglob("*") if path.is_file())
    assert b"4111" not in everything
    assert b"secret 1" not in everything  # base64 of the salted disclosure only
    assert sorted(openings(sealed).values()) == [("value", "secret 1"), ("value", "secret 2")]
    intent = documents(sealed)[2]
    assert list(intent["args"]) == ["_sd"]
    assert openings(sealed)[intent["args"]["_sd"][0]] == ("value", "secret 1")


def test_openings_can_be_deleted_without_changing_a_leaf(sealed: Path, key: ProjectKey) -> None:
    (sealed / "disclosures.jsonl").unlink()
    assert verify_run(sealed, pins=[key.vkey]).headline == "complete"
    assert openings(sealed) == {}


def test_a_blob_is_salted_and_named_by_its_bytes(sealed: Path) -> None:
    reference = documents(sealed)[1]["tree"]
    data = (sealed / "blobs" / reference["blob"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == reference["blob"]
    assert len(data) == reference["bytes"]
    assert load_blob(sealed, reference) == json.loads(data[16:])
    (sealed / "blobs" / reference["blob"]).write_bytes(data[:-1] + b"]")
    with pytest.raises(LedgerTampered):
        load_blob(sealed, reference)
    (sealed / "blobs" / reference["blob"]).unlink()
    with pytest.raises(LedgerFormatError):
        load_blob(sealed, reference)


def test_long_fields_become_blobs_and_short_neighbours_stay(create: Create) -> None:
    ledger = create()
    payload = {"policy": {"digest": "d", "content": "x" * 5000}, "plan": ["y" * 50] * 100, "text": "z" * 4000}
    ledger.append("claim", payload)
    ledger.append("claim", {f"field{number}": "w" * 4000 for number in range(30)})
    ledger.seal()
    record, crowded = list(read_records(ledger.folder))[1:]
    assert record.data["policy"]["digest"] == "d"
    assert load_blob(ledger.folder, record.data["policy"]["content"]) == "x" * 5000
    assert expand(ledger.folder, record.data["plan"]) == payload["plan"]
    assert record.data["text"] == expand(ledger.folder, record.data["text"]) == "z" * 4000
    assert all(expand(ledger.folder, value) == "w" * 4000 for value in crowded.data.values())


def test_foreign_data_that_looks_like_a_reference_does_not_pass_for_one(create: Create, key: ProjectKey) -> None:
    ledger = create()
    evil = {"blob": "ab" * 32, "bytes": 99}
    ledger.append("action.refused", {"args": {"x": evil}, "code": "INVALID_ARGS"})
    ledger.append("run.end", {"outcome": "finished"})
    ledger.seal()
    record = list(read_records(ledger.folder))[1]
    assert load_blob(ledger.folder, record.data["args"]["x"]) == evil
    assert verify_run(ledger.folder, pins=[key.vkey]).headline == "complete"


def test_the_payloads_own_kind_does_not_hide_the_records(create: Create) -> None:
    ledger = create()
    ledger.append("action.refused", {"kind": "forbidden_name"})
    record = list(read_records(ledger.folder))[1]
    assert (record.kind, record.data) == ("action.refused", {"detail_kind": "forbidden_name"})


@pytest.mark.parametrize(
    "payload",
    [{"seq": 1}, {"v": 1}, {"x": 1.5}, {"x": [Secret("s")]}, {"kind": "a", "detail_kind": "b"}, {"x": Blob(Blob(1))}],
)
def test_a_payload_that_cannot_stand_is_refused_at_once_and_nothing_is_written(
    create: Create, payload: dict[str, Any]
) -> None:
    ledger = create()
    with pytest.raises(ContractError):
        ledger.submit("claim", payload)
    assert ledger.append("claim", {}).seq == 1


def test_a_run_needs_a_folder_of_its_own(create: Create) -> None:
    create()
    with pytest.raises(UsageError, match="already"):
        create()


def test_two_writers_cannot_have_one_run(create: Create, key: ProjectKey) -> None:
    ledger = create()
    with pytest.raises(LedgerUnavailable, match="Another process"):
        recover_run(ledger.folder, key)
    ledger.seal()
    recover_run(ledger.folder, key)


def test_many_writers_get_one_gapless_order(create: Create, key: ProjectKey) -> None:
    ledger = create(following=Following.THREAD)
    seen: list[list[int]] = [[] for _ in range(8)]

    def write(number: int) -> None:
        for turn in range(50):
            match turn % 3:
                case 0:
                    receipt = ledger.append("claim", {"by": number, "turn": turn})
                case 1:
                    receipt = ledger.submit("claim", {"by": number, "turn": turn}).result()
                case _:
                    receipt = ledger.append("claim", {"by": number, "turn": turn}, ack=Ack.ORDERED)
            seen[number].append(receipt.seq)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.append("run.end", {})
    ledger.seal()
    assert sorted(seq for numbers in seen for seq in numbers) == list(range(1, 401))
    lines = documents(ledger.folder)
    for number, numbers in enumerate(seen):
        assert numbers == sorted(numbers)
        assert [(lines[seq]["by"], lines[seq]["turn"]) for seq in numbers] == [(number, turn) for turn in range(50)]
    assert verify_run(ledger.folder, pins=[key.vkey], every_signature=True).headline == "complete"


def test_records_in_flight_share_commits(create: Create) -> None:
    ledger = create(following=Following.THREAD)
    futures = [ledger.submit("claim", {"n": number}) for number in range(2000)]
    assert [future.result().seq for future in futures] == list(range(1, 2001))
    ledger.follow()
    assert len(notes(ledger.folder)) < 1000
    assert notes(ledger.folder)[-1].size == 2001


def test_an_ordered_record_is_on_the_disk_before_a_later_durable_one_is_acknowledged(create: Create) -> None:
    ledger = create()
    ordered = ledger.append("observation", {"n": 1}, ack=Ack.ORDERED)
    durable = ledger.append("action.intent", {"n": 2})
    assert (ordered.seq, ordered.commit_us, durable.seq) == (1, 0, 2)
    assert durable.commit_us > 0
    assert [line["seq"] for line in documents(ledger.folder)] == [0, 1, 2]


def test_a_note_follows_its_commit_by_itself(create: Create, key: ProjectKey) -> None:
    """In the notary's thread; whoever looks sees it without asking for it."""
    ledger = create(following=Following.THREAD)
    for size in (2, 3, 4):
        ledger.append("claim", {})
        while notes(ledger.folder)[-1].size < size:
            os.sched_yield()
    assert verify_run(ledger.folder, pins=[key.vkey], every_signature=True).headline == "unfinished"


def test_no_note_speaks_of_more_than_is_durable(create: Create) -> None:
    """Every write to `checkpoints` finds the lines it vouches for synced before."""
    disk = Order()
    ledger = create(disk=disk, following=Following.THREAD)
    threads = [threading.Thread(target=lambda: [ledger.append("claim", {}) for _ in range(60)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.append("run.end", {})
    ledger.seal()
    assert disk.vouched
    assert disk.early == []
    assert disk.vouched[-1] == 182


class Order(Disk):
    """Reads each note as it is written, and counts the lines that were synced by then."""

    def __init__(self) -> None:
        self.written = self.synced = 0
        self.vouched: list[int] = []
        self.early: list[int] = []

    def write(self, fd: int, data: bytes) -> int:
        name = Path(f"/proc/self/fd/{fd}").readlink().name
        if name == "checkpoints":
            size = int(data.split(b"\n")[1])
            self.vouched.append(size)
            if size > self.synced:
                self.early.append(size)
        done = super().write(fd, data)
        if name == "ledger.jsonl":
            self.written += data.count(b"\n")
        return done

    def datasync(self, fd: int) -> None:
        written = self.written
        super().datasync(fd)
        if Path(f"/proc/self/fd/{fd}").readlink().name == "ledger.jsonl":
            self.synced = written


@pytest.mark.parametrize("what", ["note", "cells", "checkpoint"])
def test_a_note_that_cannot_be_written_poisons_what_comes_after(create: Create, key: ProjectKey, what: str) -> None:
    """The record was durable and stays acknowledged; nothing further is."""
    disk, clock = FailingBeside(what), StepClock()
    ledger = create(disk=disk, clock=clock, following=Following.BY_HAND)
    clock.us += 2_000_000  # `checkpoint` is due again
    acknowledged = ledger.append("action.result", {"n": 1}).seq
    disk.failing = True
    with pytest.raises(LedgerUnavailable, match="Input/output"):
        ledger.follow()
    disk.failing = False
    with pytest.raises(LedgerUnavailable):
        ledger.append("action.intent", {"n": 2})
    with pytest.raises(LedgerUnavailable):
        ledger.seal()
    recover_run(ledger.folder, key)
    assert documents(ledger.folder)[acknowledged]["n"] == 1
    assert not any(line.get("n") == 2 for line in documents(ledger.folder))
    assert verify_run(ledger.folder, pins=[key.vkey]).headline == "interrupted"


class FailingBeside(Disk):
    def __init__(self, what: str) -> None:
        self.failing = False
        self.name = {"note": "checkpoints", "cells": "ledger.hashes", "checkpoint": ".checkpoint.tmp"}[what]

    def write(self, fd: int, data: bytes) -> int:
        if self.failing and Path(f"/proc/self/fd/{fd}").readlink().name == self.name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().write(fd, data)


class FailingDisk(Disk):
    """Works until told; then the named call fails, and whatever is tried after that is counted."""

    def __init__(self) -> None:
        self.failing = ""
        self.short = 0
        self.calls_after = 0

    def _maybe(self, name: str) -> None:
        if self.failing:
            self.calls_after += 1
        if name == self.failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def write(self, fd: int, data: bytes) -> int:
        if self.failing == "full":
            self.calls_after += 1
            if self.calls_after == 1:
                return super().write(fd, data[: self.short])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._maybe("write")
        return super().write(fd, data)

    def datasync(self, fd: int) -> None:
        self._maybe("datasync")
        super().datasync(fd)

    def sync(self, fd: int) -> None:
        self._maybe("sync")
        super().sync(fd)


@pytest.mark.parametrize("following", [Following.THREAD, Following.AT_ONCE])
@pytest.mark.parametrize("failing", ["write", "datasync", "full"])
def test_the_first_error_poisons_and_nothing_acknowledged_is_lost(
    create: Create, key: ProjectKey, failing: str, following: Following
) -> None:
    disk = FailingDisk()
    ledger = create(disk=disk, following=following)
    acknowledged = [ledger.append("action.result", {"n": number}).seq for number in range(3)]
    disk.failing, disk.short = failing, 40
    with pytest.raises(LedgerUnavailable):
        ledger.append("action.intent", {"n": "lost"})
    tried = disk.calls_after
    disk.failing = ""  # the disk works again; the ledger does not try
    assert ledger.poisoned is not None
    with pytest.raises(LedgerUnavailable):
        ledger.append("action.intent", {"n": "later"})
    with pytest.raises(LedgerUnavailable):
        ledger.submit("action.intent", {"n": "later"}).result()
    with pytest.raises(LedgerUnavailable):
        ledger.seal()
    assert disk.calls_after == tried
    recovered = recover_run(ledger.folder, key)
    lines = documents(ledger.folder)
    assert [line["seq"] for line in lines] == list(range(len(lines)))
    assert [lines[seq]["n"] for seq in acknowledged] == [0, 1, 2]
    assert not any(line.get("n") == "later" for line in lines)
    if failing == "datasync":  # it was written, and nobody was told so: an intent whose fate is not known
        assert recovered.open_intents == (4,)
    report = verify_run(ledger.folder, pins=[key.vkey])
    assert report.headline == "interrupted"


class OrderOfSyncs(Disk):
    def __init__(self) -> None:
        self.names: list[str] = []

    def sync(self, fd: int) -> None:
        self.names.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        super().sync(fd)


def test_the_notes_are_durable_before_checkpoint_is_replaced(create: Create) -> None:
    """Else a crash could leave a seal whose own note is torn among the others, which reads like tampering."""
    disk = OrderOfSyncs()
    create(disk=disk)
    at = disk.names.index(".checkpoint.tmp")
    assert disk.names[at - 1] == "checkpoints"


def test_a_folder_that_cannot_be_made_is_unavailable(create: Create, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerUnavailable):
        create("file/run")


def test_reading_stops_with_the_place_at_a_bad_line(sealed: Path) -> None:
    lines = (sealed / "ledger.jsonl").read_bytes().split(b"\n")
    lines[3] = lines[3].replace(b'"seq":3', b'"seq":4')
    (sealed / "ledger.jsonl").write_bytes(b"\n".join(lines))
    with pytest.raises(LedgerFormatError) as caught:
        list(read_records(sealed))
    assert (caught.value.line, caught.value.offset) == (4, sum(len(line) + 1 for line in lines[:3]))


def test_ill_formed_text_comes_back_as_it_was(sealed: Path) -> None:
    record = next(record for record in read_records(sealed) if record.kind == "claim")
    assert record.data["message"] == "Grüße \ud800"
