"""Redaction: what is deleted is gone, the proof stays, and only the project can say that it was deleted on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from conftest import fill

from deskcert_ledger import (
    Ack,
    Blob,
    ProjectKey,
    RunLedger,
    Secret,
    openings,
    pack_verifier,
    read_records,
    recover_run,
    verify_run,
)
from deskcert_ledger.b64 import b64encode
from deskcert_ledger.completeness import check_class_proof, prove_all
from deskcert_ledger.elision import elide, elided_leaf
from deskcert_ledger.merkle import leaf_hash
from deskcert_ledger.open_redaction import Asked, ask
from deskcert_ledger.pack import make_pack
from deskcert_ledger.redaction import Redaction, read_redactions
from deskcert_ledger.sealed_redaction import redact_sealed
from deskcert_ledger.socket_server import LedgerServer
from deskcert_ledger.standalone import WRITABLE
from deskcert_schema.errors import LedgerFormatError, LedgerTampered, LedgerUnavailable
from deskcert_schema.validate import check

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


@pytest.mark.parametrize(("size", "names"), [("\u00b2", "[]"), ("1" * 5000, "[]"), ("1", "[{}]"), ("1", '[["a"]]')])
def test_a_redaction_that_nobody_of_ours_wrote_is_named_and_not_stumbled_over(
    sealed: Path, key: ProjectKey, size: str, names: str
) -> None:
    told = f'{{"t":"t","reason":"r","openings":{names},"blobs":[]}}'
    text = f"deskcert redaction\no\n0 {'0' * 64}\n{size} x\n{told}\n"
    note = f"{text}\n\u2014 a {b64encode(bytes(68))}\n"
    (sealed / "redactions.jsonl").write_text(
        json.dumps({"note": note}, ensure_ascii=False, separators=(",", ":")) + "\n"
    )
    for pins in ([], [key.vkey]):
        report = verify_run(sealed, pins=pins)
        assert (report.headline, report.exit_code) == ("tampered", 1)
        assert "is no redaction" in report.problems[0].text


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


# -- a run that is open ------------------------------------------------------------------------------------------------


def test_an_open_run_says_it_in_a_record_and_goes_on(create: Create, key: ProjectKey) -> None:
    ledger = create()
    fill(ledger)
    (name,) = blob_files(ledger.folder)
    done = ledger.redact(Asked((1, 2), blobs=True, reason="asked to"))
    assert (len(done.openings), done.blobs) == (1, (name,))
    assert blob_files(ledger.folder) == []
    assert {value for _, value in openings(ledger.folder).values()} == {"secret 2"}
    assert (ledger.folder / "disclosures.jsonl").stat().st_mode & 0o777 == 0o600
    later = ledger.append("action.intent", {"args": {"value": Secret("secret 3")}})
    ledger.append("action.result", {"of": later.seq})
    ledger.append("run.end", {"outcome": "finished"})
    ledger.seal()
    assert {value for _, value in openings(ledger.folder).values()} == {"secret 2", "secret 3"}
    records = list(read_records(ledger.folder))
    told = [record.data for record in records if record.kind == "redaction"]
    assert [data["openings"] + data["blobs"] for data in told] == [list(done.openings), [name]]
    assert {data["reason"] for data in told} == {"asked to"}
    assert all(check("record", json.loads(record.line)) == [] for record in records if record.kind == "redaction")
    report = verify_run(ledger.folder, pins=[key.vkey])
    assert (report.headline, report.problems) == ("complete", ())
    assert "1 blobs that were redacted" in report.not_checked
    assert len(check_class_proof(prove_all(ledger.folder, "redaction", [key.verifier]), [key.verifier]).records) == 2


def test_a_run_to_which_more_comes_is_not_redacted_as_if_it_were_sealed(create: Create, key: ProjectKey) -> None:
    """Every line was signed and there was a checkpoint: what was redacted then read as tampering once more came."""
    ledger = create()
    tree = {"tree": Blob("x"), "args": {"value": Secret("s")}}
    ledger.append("observation", tree)
    with pytest.raises(LedgerUnavailable, match="--socket"):
        redact(ledger.folder, key, blobs=True)
    ledger.abandon()  # its process died: recovery will add to it
    with pytest.raises(LedgerTampered, match="recover RUN"):
        redact(ledger.folder, key, blobs=True)
    assert recover_run(ledger.folder, key).outcome.value == "recovered"
    assert redact(ledger.folder, key, blobs=True) is not None
    report = verify_run(ledger.folder, pins=[key.vkey])
    assert (report.headline, report.problems) == ("interrupted", ())


def test_many_names_take_several_records_each_of_which_is_read(create: Create, key: ProjectKey) -> None:
    """A list that is moved to a blob of its own would excuse nothing."""
    ledger = create()
    for _ in range(130):
        ledger.append("observation", {"tree": Blob("x"), "args": {"value": Secret("s")}}, ack=Ack.ORDERED)
    done = ledger.redact(Asked(None, blobs=True, reason="all of it"))
    assert (len(done.openings), len(done.blobs), blob_files(ledger.folder)) == (130, 130, [])
    ledger.append("run.end", {"outcome": "finished"})
    ledger.seal()
    report = verify_run(ledger.folder, pins=[key.vkey])
    assert (report.headline, report.kinds["redaction"]) == ("complete", 5)
    assert pack_verifier.verify(make_pack(ledger.folder), pack_verifier.Key(key.vkey))[0] == "complete"


def test_a_redaction_that_a_crash_left_undone_is_finished_by_recovery(create: Create, key: ProjectKey) -> None:
    ledger = create()
    fill(ledger)
    (name,) = blob_files(ledger.folder)
    (digest, *_) = [digest for digest, (_, value) in openings(ledger.folder).items() if value == "secret 1"]
    ledger.append("redaction", {"openings": [digest], "blobs": [name], "reason": "asked to"})
    ledger.abandon()
    assert "was redacted and is still there" in verify_run(ledger.folder, pins=[key.vkey]).problems[0].text
    (ledger.folder / "checkpoint").unlink()
    assert recover_run(ledger.folder, key).outcome.value == "recovered"
    assert blob_files(ledger.folder) == []
    assert {value for _, value in openings(ledger.folder).values()} == {"secret 2"}
    report = verify_run(ledger.folder, pins=[key.vkey])
    assert (report.headline, report.problems) == ("interrupted", ())


def test_only_the_projects_key_has_another_process_redact(create: Create, key: ProjectKey, tmp_path: Path) -> None:
    ledger, other = create(), create("run-2", origin="deskcert/test/run-2")
    fill(ledger)
    stranger = ProjectKey.load_or_create(tmp_path / "other", name=key.verifier.name)
    asked = Asked((1,), blobs=True, reason="asked to")
    with LedgerServer(ledger, w="guard", kinds=frozenset({"claim"}), redactor=key.verifier) as server:
        with pytest.raises(LedgerFormatError, match="did not sign"):
            ask(server.path, ledger.folder, stranger, asked)
        with pytest.raises(LedgerFormatError, match="another run"):
            ask(server.path, other.folder, key, asked)
        with pytest.raises(LedgerFormatError, match="no record 99"):
            ask(server.path, ledger.folder, key, Asked((99,), blobs=True, reason="asked to"))
        assert len(blob_files(ledger.folder)) == 1
        assert len(ask(server.path, ledger.folder, key, asked).blobs) == 1
        assert blob_files(ledger.folder) == []
    with LedgerServer(ledger, w="proxy", kinds=frozenset({"claim"})) as server, pytest.raises(LedgerUnavailable):
        ask(server.path, ledger.folder, key, asked)


def test_a_blob_that_is_gone_before_a_recovery_is_named_and_excused_only_where_nothing_was_signed(
    create: Create, key: ProjectKey
) -> None:
    for signed, word in ((True, "tampered"), (False, "interrupted")):
        ledger = create(f"signed-{signed}", origin=f"deskcert/test/{signed}")
        fill(ledger)
        ledger.append("action.intent", {"command": "click"})
        ledger.abandon()
        folder = ledger.folder
        (name,) = blob_files(folder)
        (folder / "blobs" / name).unlink()
        if not signed:  # a crash that came before the notes of all but the first commit
            notes = (folder / "checkpoints").read_text()
            (folder / "checkpoints").write_text(notes[: notes.index("\n", notes.index("\n\n") + 2) + 1])
        (folder / "checkpoint").unlink()
        assert recover_run(folder, key).outcome.value == "recovered"
        last = list(read_records(folder))[-1]
        assert (last.kind, last.data) == ("blob.missing", {"blob": name, "of": 1})
        assert check("record", json.loads(last.line)) == []
        report = verify_run(folder, pins=[key.vkey])
        assert report.headline == word, signed
        assert any(name[:12] in problem.text for problem in report.problems)
        if signed:
            with pytest.raises(LedgerTampered):
                make_pack(folder)
        else:
            pack = make_pack(folder)
            assert pack_verifier.verify(pack, pack_verifier.Key(key.vkey))[0] == "interrupted"


def test_a_writer_cannot_say_that_a_blob_is_missing(create: Create, key: ProjectKey) -> None:
    """Neither by the record that recovery writes, nor in a run that goes on: who deletes a blob tampers."""
    assert {"redaction", "blob.missing"}.isdisjoint(WRITABLE)
    ledger = create()
    fill(ledger)
    (name,) = blob_files(ledger.folder)
    (ledger.folder / "blobs" / name).unlink()
    ledger.append("blob.missing", {"blob": name, "of": 1})
    ledger.append("run.end", {"outcome": "finished"})
    ledger.seal()
    assert verify_run(ledger.folder, pins=[key.vkey]).headline == "tampered"


def test_more_than_a_note_can_name_is_redacted_in_several(
    sealed: Path, key: ProjectKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deskcert_ledger.sealed_redaction._NAMES", 1)
    done = redact(sealed, key, blobs=True)
    assert done is not None
    assert (len(done.openings), len(done.blobs)) == (2, 1)
    assert len(read_redactions(sealed, [key.verifier]).entries) == 2
    assert verify_run(sealed, pins=[key.vkey]).headline == "complete"


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
