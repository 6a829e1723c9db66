"""Completeness proofs: all records of a class or none, and nobody can leave one out, put one in or exchange one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deskcert_ledger import ProjectKey, RunLedger, verify_run
from deskcert_ledger import classes as classes_module
from deskcert_ledger.classes import CLASSES, classify
from deskcert_ledger.completeness import check_class_proof, prove_all
from deskcert_ledger.line import encode
from deskcert_ledger.proof import Prover, check_proof
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

Create = Callable[..., RunLedger]


@pytest.fixture
def run(create: Create) -> Path:
    ledger = create()
    for number in range(40):
        if number % 13 == 5:
            ledger.append("action.denied", {"rule": "no-delete", "kind": "policy", "n": number})
        else:
            ledger.append("action.refused", {"code": "STALE_REF", "n": number})
    ledger.append("run.end", {"outcome": "finished"})
    ledger.seal()
    return ledger.folder


def test_all_denials_are_proven(run: Path, key: ProjectKey) -> None:
    raw = prove_all(run, "denied", [key.verifier])
    proven = check_class_proof(raw, [key.verifier])
    assert [item.data["n"] for item in proven.records] == [5, 18, 31]
    assert {item.kind for item in proven.records} == {"action.denied"}
    assert proven.size == 42
    assert proven.not_checked == ()


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_can_be_proven_an_empty_one_too(run: Path, key: ProjectKey, name: str) -> None:
    wanted = {"denied": 3, "refused": 37}.get(name, 0)
    assert len(check_class_proof(prove_all(run, name, [key.verifier]), [key.verifier]).records) == wanted


def test_no_member_can_be_left_out_put_in_or_exchanged(run: Path, key: ProjectKey) -> None:
    value = json.loads(prove_all(run, "denied", [key.verifier]))
    refused = json.loads(prove_all(run, "refused", [key.verifier]))["records"]
    members = value["records"]
    for records in (
        members[1:],
        members[:-1],
        [],
        [*members, members[-1]],
        [members[1], members[0], members[2]],
        [refused[0], *members[1:]],
        [*members, refused[-1]],
    ):
        with pytest.raises(LedgerTampered):
            check_class_proof(encode(value | {"records": records}, limit=1 << 20) + b"\n", [key.verifier])
    with pytest.raises(LedgerTampered):  # the denials as all "refused"
        check_class_proof(encode(value | {"class": "blocked"}, limit=1 << 20) + b"\n", [key.verifier])


def test_no_byte_of_a_completeness_proof_can_be_changed(run: Path, key: ProjectKey) -> None:
    raw = prove_all(run, "denied", [key.verifier])
    for position, old in enumerate(raw):
        for new in {old ^ 1, b'\n"A,'[position % 4]} - {old}:
            with pytest.raises((LedgerFormatError, LedgerTampered)):
                check_class_proof(raw[:position] + bytes([new]) + raw[position + 1 :], [key.verifier])


def test_it_counts_only_for_the_pinned_project(run: Path, key: ProjectKey, tmp_path: Path) -> None:
    raw = prove_all(run, "denied", [key.verifier])
    with pytest.raises(LedgerTampered, match="no pinned key"):
        check_class_proof(raw, [ProjectKey.load_or_create(tmp_path / "other").verifier])


def test_without_a_certificate_nothing_is_complete(run: Path, key: ProjectKey) -> None:
    (run / "run.intoto.jsonl").unlink()
    with pytest.raises(LedgerFormatError, match="only a sealed run"):
        prove_all(run, "denied", [key.verifier])
    with pytest.raises(LedgerFormatError, match="no record class"):
        prove_all(run, "nonsense", [key.verifier])


def test_a_full_verification_sees_a_logger_that_hid_a_denial(
    create: Create, key: ProjectKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run key itself lies about the class: every signature holds, and the count does not."""
    ledger = create()
    ledger.append("action.denied", {"rule": "no-delete"})
    ledger.append("run.end", {"outcome": "finished"})
    with monkeypatch.context() as patch:
        patch.setattr(
            classes_module, "classify", lambda data: () if data["kind"] == "action.denied" else classify(data)
        )
        ledger.seal()
    report = verify_run(ledger.folder, pins=[key.vkey])
    assert report.headline == "tampered"
    assert "counts the record classes otherwise" in report.problems[0].text


def test_classes_depend_on_the_record_alone() -> None:
    assert classify({"kind": "action.denied", "detail_kind": "unsafe_retry"}) == ("denied", "unsafe_retry")
    assert classify({"kind": "action.result", "delivery": "unknown"}) == ("uncertain",)
    assert classify({"kind": "action.result", "delivery": "delivered_verified"}) == ()
    assert classify({"kind": "of a later version"}) == ()


def test_a_plain_proof_is_small_and_needs_the_line_and_the_run_key(run: Path, key: ProjectKey) -> None:
    line = (run / "ledger.jsonl").read_bytes().split(b"\n")[6]
    with Prover(run) as prover:
        plain, whole = prover.prove(6, plain=True), prover.prove(6)
    assert "extra" not in plain
    run_key = verify_run(run, pins=[key.vkey]).epochs[0].vkey
    from deskcert_ledger.note import parse_vkey

    pins = [parse_vkey(run_key)]
    assert check_proof(plain, pins, record=line).record.line == line
    assert check_proof(whole, [key.verifier], record=line).record.seq == 6
    for wrong in (line + b" ", line.replace(b"6", b"7", 1)):
        with pytest.raises(LedgerTampered):
            check_proof(plain, pins, record=wrong)
        with pytest.raises(LedgerTampered):
            check_proof(whole, [key.verifier], record=wrong)
    with pytest.raises(LedgerFormatError, match="--record"):
        check_proof(plain, pins)
    with pytest.raises(LedgerTampered):
        check_proof(plain, [key.verifier], record=line)
    # 20 hashes at a million records: 45 bytes for each one more than here
    assert len(plain) + (20 - plain.count("=\n")) * 45 <= 1536
    for position in range(len(plain)):
        raw = plain.encode()
        changed = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        with pytest.raises((LedgerFormatError, LedgerTampered)):
            check_proof(changed, pins, record=line)


def test_a_lost_cosignature_is_named(run: Path, key: ProjectKey) -> None:
    """A witness's line that nobody here can check: a change of it is no change of the content, and it is said."""
    from deskcert_ledger.cosignature import Witness

    note = (run / "checkpoint").read_text()
    line = Witness("witness", bytes(32)).cosign(note.rpartition("\n\n")[0] + "\n", 1_800_000_000)
    (run / "checkpoint").write_text(note + line)
    with Prover(run) as prover:
        raw = prover.prove(6).encode()
    wanted = check_proof(raw, [key.verifier])
    assert wanted.not_checked == ("witness",)
    outcomes = set()
    for position in range(raw.rfind(b"\n\n"), len(raw)):
        changed = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        try:
            proven = check_proof(changed, [key.verifier])
        except (LedgerFormatError, LedgerTampered):
            outcomes.add("rejected")
        else:
            assert proven.record == wanted.record
            assert len(proven.not_checked) == 1
            outcomes.add("named")
    assert outcomes == {"rejected", "named"}
