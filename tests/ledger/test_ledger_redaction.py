"""Redaction: what is deleted is gone, the proof stays, and only the project can say that it was deleted on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from conftest import fill

from deskcert_ledger import ProjectKey, RunLedger, openings, recover_run, verify_run
from deskcert_ledger.elision import elide, elided_leaf
from deskcert_ledger.merkle import leaf_hash
from deskcert_ledger.redaction import Redaction, read_redactions, redact_sealed
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

Create = Callable[..., RunLedger]
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def redact(folder: Path, key: ProjectKey, *seqs: int, blobs: bool = False) -> Redaction | None:
    return redact_sealed(folder, key, seqs=seqs or None, blobs=blobs, reason="asked to", now=NOW)


def blob_files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "blobs").iterdir())


def test_an_opening_is_gone_and_the_run_is_as_complete_as_before(sealed: Path, key: ProjectKey) -> None:
    before = (sealed / "ledger.jsonl").read_bytes()
    assert {value for _, value in openings(sealed).values()} == {"secret 1", "secret 2"}
    done = redact(sealed, key, 2)
    assert done is not None
    assert (len(done.openings), done.blobs) == (1, ())
    assert {value for _, value in openings(sealed).values()} == {"secret 2"}
    assert (sealed / "disclosures.jsonl").stat().st_mode & 0o777 == 0o600
    assert (sealed / "ledger.jsonl").read_bytes() == before
    report = verify_run(sealed, pins=[key.vkey])
    assert (report.headline, report.exit_code, report.problems) == ("complete", 0, ())
    assert "1 openings that were redacted" in report.not_checked
    assert any("redactions: signed" in text for text in report.checked)


def test_a_redacted_blob_is_named_and_a_missing_one_is_tampering(sealed: Path, key: ProjectKey) -> None:
    (name,) = blob_files(sealed)
    kept = (sealed / "blobs" / name).read_bytes()
    (sealed / "blobs" / name).unlink()
    assert verify_run(sealed, pins=[key.vkey]).headline == "tampered"
    (sealed / "blobs" / name).write_bytes(kept)
    done = redact(sealed, key, 1, blobs=True)
    assert done is not None
    assert done.blobs == (name,)
    assert blob_files(sealed) == []
    report = verify_run(sealed, pins=[key.vkey])
    assert (report.headline, report.problems) == ("complete", ())
    assert "1 blobs that were redacted" in report.not_checked
    (sealed / "redactions.jsonl").unlink()  # whoever drops the redaction has a missing blob again
    assert verify_run(sealed, pins=[key.vkey]).headline == "tampered"


def test_a_redaction_that_was_not_carried_out_is_said(sealed: Path, key: ProjectKey) -> None:
    (name,) = blob_files(sealed)
    kept = (sealed / "blobs" / name).read_bytes()
    redact(sealed, key, blobs=True)
    (sealed / "blobs" / name).write_bytes(kept)
    report = verify_run(sealed, pins=[key.vkey])
    assert "was redacted and is still there" in report.problems[0].text
    (sealed / "blobs" / name).write_bytes(kept[:-1] + b"x")
    assert verify_run(sealed, pins=[key.vkey]).headline == "tampered"


def test_redactions_are_a_chain(sealed: Path, key: ProjectKey) -> None:
    redact(sealed, key, 2)
    redact(sealed, key, blobs=True)
    assert redact(sealed, key) is None  # nothing is left
    path = sealed / "redactions.jsonl"
    first, second = path.read_bytes().splitlines()
    assert len(read_redactions(sealed, [key.verifier]).entries) == 2
    assert sha256(first).hexdigest() in json.loads(second)["note"]
    for lines in ([second], [second, first], [first, first], [first, b""]):
        path.write_bytes(b"\n".join([*lines, b""]))
        with pytest.raises(LedgerTampered):
            read_redactions(sealed, [key.verifier])
        assert verify_run(sealed, pins=[key.vkey]).headline == "tampered"


def test_no_byte_of_a_redaction_can_be_changed(sealed: Path, key: ProjectKey) -> None:
    redact(sealed, key, blobs=True)
    path = sealed / "redactions.jsonl"
    raw = path.read_bytes()
    for position in range(len(raw)):
        path.write_bytes(raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :])
        with pytest.raises(LedgerTampered):
            read_redactions(sealed, [key.verifier])


def test_a_redaction_by_another_key_or_of_another_run_does_not_count(
    sealed: Path, create: Create, key: ProjectKey, tmp_path: Path
) -> None:
    stranger = ProjectKey.load_or_create(tmp_path / "other")
    with pytest.raises(LedgerTampered):
        redact(sealed, stranger, 2)
    assert not (sealed / "redactions.jsonl").exists()
    other = create("run-2", origin="deskcert/test/run-2")
    fill(other)
    other.seal()
    redact(other.folder, key)
    (sealed / "redactions.jsonl").write_bytes((other.folder / "redactions.jsonl").read_bytes())
    report = verify_run(sealed, pins=[key.vkey])
    assert report.headline == "tampered"
    assert "another ledger" in report.problems[0].text


def test_what_does_not_verify_or_is_not_sealed_is_not_redacted(create: Create, sealed: Path, key: ProjectKey) -> None:
    with pytest.raises(LedgerFormatError, match="no record 99"):
        redact(sealed, key, 99)
    ledger = create("open")
    fill(ledger)
    ledger.abandon()
    (ledger.folder / "checkpoint").unlink()
    with pytest.raises(LedgerTampered, match="only a sealed run"):
        redact(ledger.folder, key)


def test_without_a_pin_it_is_said_that_nobody_knows_whose_redactions_these_are(sealed: Path, key: ProjectKey) -> None:
    redact(sealed, key, blobs=True)
    report = verify_run(sealed)
    assert report.headline == "unverifiable"
    assert any("whose the redactions are" in text for text in report.not_checked)


def test_an_open_run_says_it_in_a_record(create: Create, key: ProjectKey) -> None:
    ledger = create()
    fill(ledger)
    (name,) = blob_files(ledger.folder)
    ledger.append("redaction", {"openings": [], "blobs": [name], "reason": "asked to"})
    (ledger.folder / "blobs" / name).unlink()
    ledger.append("run.end", {"outcome": "finished"})
    ledger.seal()
    report = verify_run(ledger.folder, pins=[key.vkey])
    assert report.headline == "complete"
    assert "1 blobs that were redacted" in report.not_checked


def test_a_blob_that_a_recovery_missed_is_named_by_its_record(create: Create, key: ProjectKey) -> None:
    ledger = create()
    fill(ledger)
    (name,) = blob_files(ledger.folder)
    (ledger.folder / "blobs" / name).unlink()
    ledger.append("blob.missing", {"blob": name, "of": 1})
    ledger.append("run.end", {"outcome": "finished"})
    ledger.seal()
    report = verify_run(ledger.folder, pins=[key.vkey])
    assert report.headline != "tampered"
    assert "as a later record says" in report.problems[0].text


# -- elided lines ------------------------------------------------------------------------------------------------------


def test_an_elided_line_keeps_the_tree_and_is_counted(sealed: Path, key: ProjectKey) -> None:
    path = sealed / "ledger.jsonl"
    root = verify_run(sealed, pins=[key.vkey]).root
    lines = path.read_bytes().split(b"\n")
    assert elided_leaf(elide(lines[6])) == leaf_hash(lines[6])
    path.write_bytes(b"\n".join([*lines[:6], elide(lines[6]), *lines[7:]]))
    report = verify_run(sealed, pins=[key.vkey])
    assert (report.headline, report.exit_code, report.root) == ("unverifiable", 3, root)
    assert any("1 elided lines" in text and "--allow-elided" in text for text in report.not_checked)
    report = verify_run(sealed, pins=[key.vkey], allow_elided=True)
    assert (report.headline, report.exit_code, report.kinds["elided"]) == ("complete", 0, 1)
    assert any("1 elided lines" in text for text in report.not_checked)


def test_no_byte_of_an_elided_line_can_be_changed(sealed: Path, key: ProjectKey) -> None:
    path = sealed / "ledger.jsonl"
    lines = path.read_bytes().split(b"\n")
    elided = elide(lines[6])
    for position in range(len(elided)):
        changed = elided[:position] + bytes([elided[position] ^ 1]) + elided[position + 1 :]
        path.write_bytes(b"\n".join([*lines[:6], changed, *lines[7:]]))
        assert verify_run(sealed, pins=[key.vkey], allow_elided=True).headline == "tampered", position


def test_an_elided_end_is_no_end(sealed: Path, key: ProjectKey) -> None:
    path = sealed / "ledger.jsonl"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:7], elide(lines[7]), b""]))
    assert verify_run(sealed, pins=[key.vkey], allow_elided=True).headline == "unfinished"


def test_recovery_does_not_know_redactions_of_a_run_that_it_must_repair(create: Create, key: ProjectKey) -> None:
    """A run is redacted after its seal, so a recovery never meets a `redactions.jsonl` of its own run."""
    ledger = create()
    fill(ledger)
    ledger.seal()
    redact(ledger.folder, key)
    assert recover_run(ledger.folder, key).outcome.value == "nothing_to_do"
    assert verify_run(ledger.folder, pins=[key.vkey]).headline == "complete"
