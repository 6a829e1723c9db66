"""A proof file stands alone: the pinned key, the file, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import StepClock, seeded

from deskcert_ledger import ProjectKey, RunLedger, recover_run
from deskcert_ledger.proof import Prover, check_proof
from deskcert_schema.errors import LedgerFormatError, LedgerTampered


def lines(folder: Path) -> list[bytes]:
    return (folder / "ledger.jsonl").read_bytes().split(b"\n")[:-1]


def test_every_record_can_be_proven(sealed: Path, key: ProjectKey) -> None:
    with Prover(sealed) as prover:
        for seq, line in enumerate(lines(sealed)):
            proven = check_proof(prover.prove(seq), [key.verifier])
            assert (proven.record.seq, proven.record.line, proven.size) == (seq, line, 8)


def test_without_or_with_a_wrong_hash_file_the_proof_is_the_same(sealed: Path) -> None:
    path = sealed / "ledger.hashes"
    with Prover(sealed) as prover:
        wanted = prover.prove(3)
    for content in (path.read_bytes()[:64], bytes(path.stat().st_size)):
        path.write_bytes(content)
        with Prover(sealed) as prover:
            assert prover.prove(3) == wanted
    path.unlink()
    with Prover(sealed) as prover:
        assert prover.prove(3) == wanted


def test_no_byte_of_a_proof_can_be_changed(sealed: Path, key: ProjectKey) -> None:
    with Prover(sealed) as prover:
        proof = prover.prove(4).encode()
    for position, old in enumerate(proof):
        for new in {old ^ 1, old ^ 32, 0x0A, 0x41, 0x3D} - {old}:
            changed = proof[:position] + bytes([new]) + proof[position + 1 :]
            with pytest.raises((LedgerFormatError, LedgerTampered)):
                check_proof(changed, [key.verifier])
    for position in range(len(proof)):
        with pytest.raises((LedgerFormatError, LedgerTampered)):
            check_proof(proof[:position] + proof[position + 1 :], [key.verifier])


def test_a_proof_for_another_project_is_refused(sealed: Path, tmp_path: Path) -> None:
    with Prover(sealed) as prover:
        proof = prover.prove(4)
    with pytest.raises(LedgerTampered, match="no pinned key"):
        check_proof(proof, [ProjectKey.load_or_create(tmp_path / "other").verifier])
    with pytest.raises(LedgerTampered):
        check_proof(proof, [])


def test_a_changed_record_cannot_be_proven(sealed: Path) -> None:
    path = sealed / "ledger.jsonl"
    path.write_bytes(path.read_bytes().replace(b"delivered_verified", b"delivered_verifieD", 1))
    with Prover(sealed) as prover, pytest.raises(LedgerTampered):
        prover.prove(3)


def test_there_is_no_proof_past_the_checkpoint(sealed: Path, tmp_path: Path) -> None:
    with Prover(sealed) as prover, pytest.raises(LedgerFormatError):
        prover.prove(8)
    with pytest.raises(LedgerFormatError):
        Prover(tmp_path)


def test_a_record_before_a_recovery_is_proven_by_the_new_epochs_key(
    create: Callable[..., RunLedger], key: ProjectKey
) -> None:
    ledger = create()
    ledger.append("action.intent", {"n": 1})
    ledger.abandon()
    recover_run(ledger.folder, key, clock=StepClock(), rng=seeded("recovery"))
    with Prover(ledger.folder) as prover:
        assert check_proof(prover.prove(1), [key.verifier]).record.kind == "action.intent"
