"""Verification: every changed byte is seen, every truncation gets its word, and only the pinned key counts."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import ORIGIN, StepClock, fill, seeded

from deskcert_ledger import ProjectKey, RunLedger, RunReport, read_records, verify_run
from deskcert_ledger.note import Signer
from deskcert_schema.errors import LedgerFormatError

Create = Callable[..., RunLedger]


def word(folder: Path, key: ProjectKey) -> str:
    return verify_run(folder, pins=[key.vkey]).headline


def offsets(raw: bytes) -> list[int]:
    """Where each line begins, and where the last one ends."""
    found = [0]
    for line in raw.split(b"\n")[:-1]:
        found.append(found[-1] + len(line) + 1)
    return found


@contextmanager
def changed(path: Path, position: int, new: int) -> Iterator[None]:
    """The file with another byte at `position`, for a while."""
    fd = os.open(path, os.O_RDWR)
    try:
        old = os.pread(fd, 1, position)
        os.pwrite(fd, bytes([new]), position)
        yield
        os.pwrite(fd, old, position)
    finally:
        os.close(fd)


def test_a_sealed_run_is_complete_and_says_what_was_not_checked(sealed: Path, key: ProjectKey) -> None:
    report = verify_run(sealed, pins=[key.vkey])
    assert (report.headline, report.words, report.exit_code) == ("complete", ("complete",), 0)
    assert (report.size, report.signed_size, report.origin, report.run) == (8, 8, ORIGIN, "run-1")
    assert report.checkpoint == (sealed / "checkpoint").read_text()
    assert report.problems == ()
    assert report.kinds["action.intent"] == 2
    said = " ".join(report.not_checked)
    for subject in ("--every-signature", "--schema", "witness", "project log", "not truth"):
        assert subject in said
    said = " ".join(verify_run(sealed, pins=[key.vkey], every_signature=True).not_checked)
    assert "--every-signature" not in said


def test_verification_writes_nothing(sealed: Path, key: ProjectKey) -> None:
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in sealed.rglob("*") if path.is_file()}
    word(sealed, key)
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in sealed.rglob("*") if path.is_file()}
    assert before == after


def test_every_single_byte_change_of_a_sealed_ledger_is_seen(sealed: Path, key: ProjectKey, fresh_seed: int) -> None:
    """Every position; at each a flipped bit, one byte that parsers care about, and one at random."""
    path = sealed / "ledger.jsonl"
    raw, choose = path.read_bytes(), random.Random(fresh_seed)
    starts = offsets(raw)
    for position, old in enumerate(raw):
        for new in {old ^ 1, b'\n\0 "\\,1}'[position % 8], choose.randrange(256)} - {old}:
            with changed(path, position, new):
                report = verify_run(sealed, pins=[key.vkey])
            assert (report.headline, report.exit_code) == ("tampered", 1), (position, new)
            seq = report.problems[0].seq
            assert seq is not None
            assert starts[seq] <= position < starts[seq + 1] or new == 0x0A or old == 0x0A, (position, new)


def test_all_255_values_at_every_byte_of_one_record_are_seen(create: Create, key: ProjectKey) -> None:
    ledger = create()
    ledger.append("run.end", {"x": "é"}, w="g")
    ledger.seal()
    path = ledger.folder / "ledger.jsonl"
    raw = path.read_bytes()
    for position in range(offsets(raw)[1], len(raw)):
        for new in range(256):
            if new != raw[position]:
                with changed(path, position, new):
                    assert verify_run(ledger.folder).headline == "tampered", (position, new)


def test_a_byte_put_in_or_taken_out_or_lines_exchanged_are_seen(sealed: Path, key: ProjectKey) -> None:
    path = sealed / "ledger.jsonl"
    raw = path.read_bytes()
    for position in range(len(raw)):
        path.write_bytes(raw[:position] + raw[position + 1 :])
        assert word(sealed, key) == "tampered", position
    for position in range(0, len(raw) + 1, 7):
        path.write_bytes(raw[:position] + b" " + raw[position:])
        assert word(sealed, key) in {"tampered", "prefix(8,0)"}, position
    lines = raw.split(b"\n")
    path.write_bytes(b"\n".join([*lines[:3], lines[4], lines[3], *lines[5:]]))
    assert word(sealed, key) == "tampered"


def test_every_byte_of_every_note_counts_or_its_loss_is_named(sealed: Path, key: ProjectKey) -> None:
    for name in ("checkpoint", "checkpoints"):
        path = sealed / name
        raw = path.read_bytes()
        for position in range(len(raw)):
            path.write_bytes(raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :])
            report = verify_run(sealed, pins=[key.vkey], every_signature=True)
            assert report.headline == "tampered", (name, position)
            if verify_run(sealed, pins=[key.vkey]).headline == "complete":
                named = " ".join(verify_run(sealed, pins=[key.vkey]).not_checked)
                assert "signatures of" in named
        path.write_bytes(raw)


def test_a_changed_record_is_named_by_number_and_byte(sealed: Path, key: ProjectKey) -> None:
    path = sealed / "ledger.jsonl"
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"delivered_verified", b"delivered_verifieD", 1))
    report = verify_run(sealed, pins=[key.vkey])
    assert (report.problems[0].seq, report.problems[0].byte) == (3, offsets(raw)[3])
    (sealed / "ledger.hashes").unlink()
    report = verify_run(sealed, pins=[key.vkey])
    assert report.headline == "tampered"
    assert "a record from here to" in report.problems[0].text


def test_truncation_at_every_record_boundary_has_the_word_its_evidence_allows(sealed: Path, key: ProjectKey) -> None:
    """Under the seal it is tampering. With the later notes gone too, what is left is honest about its end."""
    raw = (sealed / "ledger.jsonl").read_bytes()
    notes = (sealed / "checkpoints").read_bytes()
    blocks = [ORIGIN.encode() + b"\n" + part for part in notes.split(b"\n" + ORIGIN.encode() + b"\n")]
    blocks[0] = blocks[0].removeprefix(ORIGIN.encode() + b"\n")
    blocks = [block.rstrip(b"\n") + b"\n" for block in blocks]
    sizes = [int(block.split(b"\n")[1]) for block in blocks]
    assert sizes == [1, 3, 4, 5, 6, 7, 8]
    starts = offsets(raw)
    for size in range(8):
        (sealed / "ledger.jsonl").write_bytes(raw[: starts[size]])
        assert word(sealed, key) == "tampered", size
    (sealed / "checkpoint").unlink()
    for size in range(1, 8):
        (sealed / "ledger.jsonl").write_bytes(raw[: starts[size]])
        (sealed / "checkpoints").write_bytes(b"".join(b for s, b in zip(sizes, blocks, strict=True) if s <= size))
        report = verify_run(sealed, pins=[key.vkey])
        signed = max(s for s in sizes if s <= size)
        expected = "prefix(1,1)" if size == 2 else "interrupted" if size in {3, 5} else "unfinished"
        assert report.headline == expected, size
        assert (report.size, report.signed_size, report.exit_code) == (size, signed, 1)
    (sealed / "ledger.jsonl").write_bytes(b"")
    (sealed / "checkpoints").write_bytes(b"")
    with pytest.raises(LedgerFormatError, match="without a record"):
        verify_run(sealed)


def test_a_missing_final_checkpoint_is_not_a_seal(sealed: Path, key: ProjectKey) -> None:
    (sealed / "checkpoint").unlink()
    assert word(sealed, key) == "unfinished"


def test_without_any_note_nothing_is_signed(sealed: Path, key: ProjectKey) -> None:
    (sealed / "checkpoint").unlink()
    (sealed / "checkpoints").unlink()
    assert word(sealed, key) == "prefix(0,8)"


def test_missing_earlier_notes_are_named(sealed: Path, key: ProjectKey) -> None:
    (sealed / "checkpoints").unlink()
    report = verify_run(sealed, pins=[key.vkey])
    assert report.headline == "complete"
    assert any("`checkpoints` is missing" in text for text in report.not_checked)


def test_a_blob_changed_or_gone_is_tampering(sealed: Path, key: ProjectKey) -> None:
    blob = next((sealed / "blobs").iterdir())
    data = blob.read_bytes()
    for changed in (data[:-1], data + b" ", bytes([data[0] ^ 1]) + data[1:]):
        blob.write_bytes(changed)
        report = verify_run(sealed, pins=[key.vkey])
        assert (report.headline, report.problems[0].seq) == ("tampered", 1)
    blob.unlink()
    assert word(sealed, key) == "tampered"


class TestWhoseKey:
    def test_without_a_pin_it_is_unverifiable(self, sealed: Path) -> None:
        report = verify_run(sealed)
        assert (report.headline, report.exit_code) == ("unverifiable", 3)

    def test_another_projects_key_contradicts_the_pin(self, sealed: Path, tmp_path: Path) -> None:
        other = ProjectKey.load_or_create(tmp_path / "other")
        report = verify_run(sealed, pins=[other.vkey])
        assert report.headline == "tampered"
        assert "not introduced by the pinned key" in report.problems[0].text

    def test_one_of_several_pins_is_enough(self, sealed: Path, key: ProjectKey, tmp_path: Path) -> None:
        other = ProjectKey.load_or_create(tmp_path / "other")
        assert verify_run(sealed, pins=[other.vkey, key.vkey]).headline == "complete"

    def test_a_run_written_anew_with_a_key_of_ones_own_is_refused(
        self, create: Create, sealed: Path, key: ProjectKey, tmp_path: Path
    ) -> None:
        """The forger has everything but the project key, even the same name for it."""
        forger = ProjectKey.load_or_create(tmp_path / "forger", name=key.verifier.name)
        forged = create("forged", project_key=forger)
        fill(forged)
        forged.seal()
        assert verify_run(forged.folder, pins=[forger.vkey]).headline == "complete"
        assert word(forged.folder, key) == "tampered"

    def test_an_introduction_for_another_run_does_not_count(
        self, create: Create, sealed: Path, key: ProjectKey
    ) -> None:
        stolen = next(read_records(sealed)).data["key_intro"]

        class Stolen(ProjectKey):
            def introduce(self, origin: str, run_vkey: str) -> str:
                return stolen

        forged = create("forged", project_key=Stolen(key._signer))
        fill(forged)
        forged.seal()
        assert word(forged.folder, key) == "tampered"

    def test_notes_of_another_key_are_refused(self, create: Create, sealed: Path, key: ProjectKey) -> None:
        other = create("other")
        fill(other)
        other.seal()
        for name in ("checkpoint", "checkpoints"):
            kept = (sealed / name).read_bytes()
            shutil.copy(other.folder / name, sealed / name)
            assert word(sealed, key) == "tampered"
            (sealed / name).write_bytes(kept)

    def test_the_same_root_signed_by_another_key_is_refused(self, sealed: Path, key: ProjectKey) -> None:
        text = (sealed / "checkpoint").read_text().split("\n\n")[0] + "\n"
        (sealed / "checkpoint").write_text(Signer(ORIGIN, b"\7" * 32).sign_note(text))
        assert word(sealed, key) == "tampered"


class TestRangesOfKeys:
    def test_an_earlier_note_signed_by_a_foreign_key_is_refused(self, sealed: Path, key: ProjectKey) -> None:
        """Its text and root are right, and its signature is not among those that are checked by default."""
        notes = (sealed / "checkpoints").read_text()
        text = notes[: notes.index("\n\n") + 1]
        first = notes[: notes.index(ORIGIN, 5 + len(ORIGIN) + notes.index("— "))]
        (sealed / "checkpoints").write_text(notes.replace(first, Signer(ORIGIN, b"\7" * 32).sign_note(text), 1))
        report = verify_run(sealed, pins=[key.vkey])
        assert report.headline == "tampered"
        assert "not signed by the key of its range" in report.problems[0].text

    @pytest.mark.parametrize("wrong", [{}, {"cut": 1}, {"size": 1}, {"root": "A" * 43 + "="}, {"key_intro": "x\n"}])
    def test_a_recovery_has_to_name_the_last_note_and_its_own_place(
        self, create: Create, key: ProjectKey, wrong: dict[str, object]
    ) -> None:
        """With the key of its own epoch, whoever writes it: only the right one opens another range."""
        ledger = create()
        ledger.append("claim", {})
        size, root = ledger.head
        next_key = Signer(ORIGIN, b"\5" * 32)
        vkey = str(next_key.verifier)
        right = {"vkey": vkey, "key_intro": key.introduce(ORIGIN, vkey), "size": size, "root": root}
        right["cut"] = (ledger.folder / "ledger.jsonl").stat().st_size
        ledger._key._signer = next_key
        ledger.append("recovery", {**right, **wrong})
        assert word(ledger.folder, key) == ("tampered" if wrong else "interrupted")

    def test_the_old_key_signs_nothing_after_a_recovery(self, create: Create, key: ProjectKey) -> None:
        ledger = create()
        size, root = ledger.head
        vkey = str(Signer(ORIGIN, b"\5" * 32).verifier)
        right = {"vkey": vkey, "key_intro": key.introduce(ORIGIN, vkey), "size": size, "root": root}
        ledger.append("recovery", {**right, "cut": (ledger.folder / "ledger.jsonl").stat().st_size})
        assert word(ledger.folder, key) == "tampered"


def test_an_open_run_is_unfinished_and_reading_it_does_no_harm(create: Create, key: ProjectKey) -> None:
    ledger = create()
    ledger.append("claim", {})
    assert word(ledger.folder, key) == "unfinished"
    ledger.append("action.intent", {})
    report = verify_run(ledger.folder, pins=[key.vkey])
    assert (report.headline, report.open_intents) == ("interrupted", (2,))
    assert ledger.append("claim", {}).seq == 3


@pytest.mark.parametrize("content", [b"", b"\n", b"hello\n", b"{}\n", b"\0" * 4096, b"x" * 200_000, b'{"v":1}\n'])
def test_what_is_no_ledger_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ledger.jsonl").write_bytes(content)
    with pytest.raises(LedgerFormatError):
        verify_run(tmp_path)


def test_a_folder_without_ledger_is_none(tmp_path: Path) -> None:
    with pytest.raises(LedgerFormatError, match="no run folder"):
        verify_run(tmp_path)


def test_unknown_kinds_are_kept_and_counted(create: Create, key: ProjectKey) -> None:
    ledger = create()
    ledger.append("some.later.kind", {"x": 1})
    ledger.append("run.end", {})
    ledger.seal()
    report: RunReport = verify_run(ledger.folder, pins=[key.vkey])
    assert (report.headline, report.kinds["some.later.kind"]) == ("complete", 1)


def test_schema_problems_are_named_and_change_the_exit_code(sealed: Path, key: ProjectKey) -> None:
    report = verify_run(sealed, pins=[key.vkey], schema=True)
    assert (report.headline, report.exit_code) == ("complete", 1)
    assert any("schema" in finding.text for finding in report.problems)


def test_the_same_run_gives_the_same_bytes(tmp_path: Path, key: ProjectKey, sealed: Path) -> None:
    again = RunLedger.create(
        tmp_path / "again",
        origin=ORIGIN,
        start={"run": "run-1"},
        project_key=key,
        clock=StepClock(),
        rng=seeded("run-1"),
    )
    fill(again)
    again.seal()
    first, second = ((folder / "ledger.jsonl").read_bytes().split(b"\n") for folder in (sealed, again.folder))
    assert [line.split(b'"w"')[1] for line in first[:-1]] == [line.split(b'"w"')[1] for line in second[:-1]]
