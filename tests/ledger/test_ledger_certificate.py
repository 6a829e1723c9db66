"""Certificates: what they say, that no byte of them can be changed, and that a run's classes are counted again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import StepClock, fill, seeded

from deskcert_ledger import ProjectKey, RunLedger, recover_run, verify_run
from deskcert_ledger.beside import check_beside
from deskcert_ledger.certificate import check_certificate
from deskcert_ledger.dsse import decode_envelope, pae, sign
from deskcert_ledger.line import encode
from deskcert_ledger.note import Signer
from deskcert_ledger.sshsig import check_sshsig
from deskcert_ledger.statement import decode_statement
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

Create = Callable[..., RunLedger]
FILES = ("run.intoto.jsonl", "run.sigstore.json", "run.sshsig")


def test_pae_of_the_specification() -> None:
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_a_seal_writes_a_certificate_that_says_what_was_recorded(sealed: Path, key: ProjectKey) -> None:
    found = check_certificate((sealed / FILES[0]).read_bytes(), [key.verifier])
    told, report = found.statement.predicate, verify_run(sealed, pins=[key.vkey])
    assert (told["word"], told["size"], told["root"]) == ("complete", report.size, report.root)
    assert told["checkpoint"] == (sealed / "checkpoint").read_text()
    assert told["counts"] == report.kinds
    assert told["deliveries"] == {"delivered_verified": 2}
    assert found.test_result == "PASSED"
    assert not found.is_suite
    last = (sealed / "ledger.jsonl").read_bytes().split(b"\n")[-2]
    assert told["issued_at"] == json.loads(last)["t"]
    assert not found.expired(datetime(2026, 12, 1, tzinfo=UTC))
    assert found.expired(datetime(2027, 3, 1, tzinfo=UTC))
    beside = check_beside(sealed / FILES[0], found)
    assert (len(beside.checked), beside.problems, beside.not_checked) == (2, (), ())


def test_the_bundle_holds_the_same_statement(sealed: Path, key: ProjectKey) -> None:
    one, other = (check_certificate((sealed / name).read_bytes(), [key.verifier]) for name in FILES[:2])
    assert one.statement == other.statement
    assert other.test_result is None


def test_two_equal_runs_have_equal_certificates(create: Create, tmp_path: Path, key: ProjectKey) -> None:
    contents = []
    for place in ("a", "b"):
        ledger = RunLedger.create(
            tmp_path / place,
            origin="deskcert/test/x",
            start={"run": "x"},
            project_key=key,
            clock=StepClock(),
            rng=seeded("x"),
        )
        fill(ledger)
        ledger.seal()
        contents.append([(ledger.folder / name).read_bytes() for name in FILES])
    assert contents[0] == contents[1]


def test_no_byte_of_a_certificate_can_be_changed(sealed: Path, key: ProjectKey) -> None:
    for name in FILES[:2]:
        raw = (sealed / name).read_bytes()
        for position, old in enumerate(raw):
            for new in {old ^ 1, (b"\nA=1"[position % 4])} - {old}:
                changed = raw[:position] + bytes([new]) + raw[position + 1 :]
                with pytest.raises((LedgerFormatError, LedgerTampered)):
                    check_certificate(changed, [key.verifier])
        for cut in (raw[:-1], raw + b"\n", raw[1:], b""):
            with pytest.raises((LedgerFormatError, LedgerTampered)):
                check_certificate(cut, [key.verifier])


def test_no_byte_of_an_ssh_signature_can_be_changed(sealed: Path, key: ProjectKey) -> None:
    message, raw = (sealed / FILES[0]).read_bytes(), (sealed / FILES[2]).read_bytes()
    run_key = check_certificate(message, [key.verifier]).key
    assert check_sshsig(raw, message, run_key)
    for position in range(len(raw)):
        changed = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        try:
            held = check_sshsig(changed, message, run_key)
        except LedgerFormatError:
            held = False
        assert not held, position


def test_the_signed_statement_must_say_what_its_notes_say(sealed: Path, key: ProjectKey) -> None:
    """A run key that signs nonsense is believed nothing: here it is a key that the project introduced for this."""
    first, second = (sealed / FILES[0]).read_bytes().splitlines()
    statement = decode_statement(decode_envelope(first).payload)
    signer = Signer("deskcert/test/run-1", seeded("other")(32))
    vkey = str(signer.verifier)
    statement.predicate["vkey"] = vkey
    statement.predicate["key_intro"] = key.introduce("deskcert/test/run-1", vkey)
    payloads = (statement.encode(), decode_envelope(second).payload)
    lines = [sign(payload, signer.verifier, signer.sign_bytes).encode() for payload in payloads]
    with pytest.raises(LedgerTampered, match="note in the certificate"):
        check_certificate(b"\n".join(lines) + b"\n", [key.verifier])


def test_a_certificate_counts_only_for_the_pinned_project(sealed: Path, key: ProjectKey, tmp_path: Path) -> None:
    raw, other = (sealed / FILES[0]).read_bytes(), ProjectKey.load_or_create(tmp_path / "other")
    for pins in ([], [other.verifier]):
        with pytest.raises(LedgerTampered, match="no pinned key"):
            check_certificate(raw, pins)


def test_a_certificate_beside_another_ledger_is_seen(sealed: Path, create: Create, key: ProjectKey) -> None:
    other = create("run-2", origin="deskcert/test/run-2")
    other.append("run.end", {"outcome": "finished"})
    other.seal()
    for name in FILES:
        shutil.copy(sealed / name, other.folder / name)
    report = verify_run(other.folder, pins=[key.vkey])
    assert report.headline == "tampered"
    assert "not signed by the key of the last range" in report.problems[0].text
    found = check_certificate((sealed / FILES[0]).read_bytes(), [key.verifier])
    assert check_beside(other.folder / FILES[0], found).problems


def test_a_run_without_its_end_is_certified_as_that(create: Create, key: ProjectKey) -> None:
    ledger = create()
    ledger.append("action.intent", {"command": "click"})
    ledger.seal()
    found = check_certificate((ledger.folder / FILES[0]).read_bytes(), [key.verifier])
    assert found.statement.predicate["word"] == "interrupted"
    assert found.test_result == "FAILED"


def test_a_recovered_run_is_certified_by_the_key_of_its_recovery(create: Create, key: ProjectKey) -> None:
    ledger = create()
    ledger.append("action.intent", {"command": "click"})
    ledger.abandon()
    recover_run(ledger.folder, key, clock=StepClock(), rng=seeded("recovery"))
    found = check_certificate((ledger.folder / FILES[0]).read_bytes(), [key.verifier])
    told = found.statement.predicate
    assert (told["word"], told["classes"]["uncertain"], told["classes"]["recovery"]) == ("interrupted", 1, 1)
    assert verify_run(ledger.folder, pins=[key.vkey]).headline == "interrupted"


def test_verification_says_whether_the_classes_were_counted_again(sealed: Path, key: ProjectKey) -> None:
    said = " ".join(verify_run(sealed, pins=[key.vkey]).checked)
    assert "record class" in said
    (sealed / FILES[0]).unlink()
    report = verify_run(sealed, pins=[key.vkey])
    assert report.headline == "complete"
    assert "record class" in " ".join(report.not_checked)


def test_a_certificate_of_an_earlier_state_is_no_certificate_and_no_tampering(create: Create, key: ProjectKey) -> None:
    """A seal that was killed before its checkpoint, then a recovery: what the seal left is replaced or out of date."""
    ledger = create()
    ledger.append("action.intent", {"command": "click"})
    ledger.seal()
    old = {name: (ledger.folder / name).read_bytes() for name in FILES}
    (ledger.folder / "checkpoint").unlink()  # as if the seal had been killed here
    recover_run(ledger.folder, key, clock=StepClock(), rng=seeded("recovery"))
    assert (ledger.folder / FILES[0]).read_bytes() != old[FILES[0]]
    assert verify_run(ledger.folder, pins=[key.vkey]).headline == "interrupted"
    for name, content in old.items():  # as if the recovery had been killed before its own seal
        (ledger.folder / name).write_bytes(content)
    report = verify_run(ledger.folder, pins=[key.vkey])
    assert report.headline == "interrupted"
    assert "record class" in " ".join(report.not_checked)


def test_an_envelope_or_statement_with_one_member_more_is_none_of_ours(sealed: Path) -> None:
    line = (sealed / FILES[0]).read_bytes().splitlines()[0]
    envelope = json.loads(line)
    payload = decode_envelope(line).payload
    for more in ({"x": 1}, {"signatures": [*envelope["signatures"], *envelope["signatures"]]}):
        with pytest.raises(LedgerFormatError):
            decode_envelope(encode(envelope | more))
    with pytest.raises(LedgerFormatError):
        decode_envelope(encode(dict(reversed(envelope.items()))))
    for statement in (
        json.loads(payload) | {"x": 1},
        json.loads(payload) | {"_type": "https://in-toto.io/Statement/v2"},
    ):
        with pytest.raises(LedgerFormatError):
            decode_statement(encode(statement))
