"""Proofs put together from parts of two true ones, of the same project: only the two true ones prove anything."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import fill

from deskcert_ledger import ProjectKey, RunLedger, read_records
from deskcert_ledger.certificate import check_certificate
from deskcert_ledger.completeness import check_class_proof, prove_all
from deskcert_ledger.dsse import decode_envelope, sign
from deskcert_ledger.line import encode
from deskcert_ledger.note import Signer
from deskcert_ledger.proof import Prover, check_proof
from deskcert_ledger.statement import decode_statement
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

REJECTED = (LedgerFormatError, LedgerTampered)


@pytest.fixture
def runs(create: Callable[..., RunLedger]) -> tuple[Path, Path]:
    made = []
    for number in (1, 2):
        ledger = create(f"run-{number}", origin=f"deskcert/test/run-{number}")
        for denial in range(number):
            ledger.append("action.denied", {"command": "click", "detail_kind": "policy", "n": denial})
        fill(ledger)
        ledger.seal()
        made.append(ledger.folder)
    return made[0], made[1]


def parts(proof: str) -> list[str]:
    """Header and extra, index, hashes, checkpoint text, its signature."""
    head, _, note = proof.partition("\n\n")
    header, extra, index, *hashes = head.split("\n")
    text, _, signature = note.partition("\n\n")
    return [
        f"{header}\n{extra}\n",
        f"{index}\n",
        "".join(f"{item}\n" for item in hashes),
        f"\n{text}\n",
        f"\n{signature}",
    ]


def test_only_whole_proofs_of_a_record_prove(runs: tuple[Path, Path], key: ProjectKey) -> None:
    sources = []
    for folder, seq in ((runs[0], 3), (runs[1], 3), (runs[0], 4)):
        with Prover(folder) as prover:
            proof = prover.prove(seq)
        assert "".join(parts(proof)) == proof
        sources.append(parts(proof))
    accepted = 0
    whole = {"".join(source) for source in sources}
    for mixture in itertools.product(range(3), repeat=5):
        text = "".join(sources[source][part] for part, source in enumerate(mixture))
        if text in whole:
            check_proof(text, [key.verifier])
            accepted += 1
            continue
        with pytest.raises(REJECTED):
            check_proof(text, [key.verifier])
    assert accepted >= 3  # what two sources have in common may come from either


def test_spliced_completeness_proofs_prove_nothing_that_is_not_so(runs: tuple[Path, Path], key: ProjectKey) -> None:
    sources = [
        json.loads(prove_all(folder, name, [key.verifier]))
        for folder, name in ((runs[0], "denied"), (runs[1], "denied"), (runs[1], "blocked"))
    ]
    true = {
        (f"deskcert/test/run-{number}", name): [
            record.line for record in read_records(folder) if record.kind == {"denied": "action.denied"}.get(name)
        ]
        for number, folder in enumerate(runs, 1)
        for name in ("denied", "blocked")
    }
    assert [len(lines) for lines in true.values()] == [1, 0, 2, 0]
    names = [name for name in sources[0] if name != "format"]
    accepted = rejected = 0
    for mixture in itertools.product(range(3), repeat=len(names)):
        chosen = {name: sources[source][name] for name, source in zip(names, mixture, strict=True)}
        try:
            found = check_class_proof(encode({"format": sources[0]["format"], **chosen}) + b"\n", [key.verifier])
        except REJECTED:
            rejected += 1
            continue
        accepted += 1
        assert [record.line for record in found.records] == true[found.origin, found.name]
    assert accepted >= 3
    assert rejected > 200


def test_an_introduction_is_no_checkpoint_and_a_note_of_classes_is_no_other_note(
    runs: tuple[Path, Path], key: ProjectKey
) -> None:
    """Every note that one of the keys signs says in its first line what it is, and stands for nothing else."""
    raw = (runs[0] / "run.intoto.jsonl").read_bytes()
    told = check_certificate(raw, [key.verifier]).statement.predicate
    notes = {name: told[name] for name in ("checkpoint", "classes_note", "key_intro")}
    value = json.loads(prove_all(runs[0], "denied", [key.verifier]))
    for place, (name, note) in itertools.product(("checkpoint", "classes_note", "key_intro"), notes.items()):
        if place != name:
            with pytest.raises(REJECTED):
                check_class_proof(encode(value | {place: note}) + b"\n", [key.verifier])
    with Prover(runs[0]) as prover:
        proof = prover.prove(1)
    for name in ("classes_note", "key_intro"):
        with pytest.raises(REJECTED):
            check_proof(proof.partition("\n\n")[0] + "\n\n" + notes[name], [key.verifier])


def test_a_certificate_by_a_key_of_ones_own_does_not_count(runs: tuple[Path, Path], key: ProjectKey) -> None:
    """Whatever the statement says: `complete`, the true root, the true introduction of the true run key."""
    first, second = (runs[0] / "run.intoto.jsonl").read_bytes().splitlines()
    forger = Signer("deskcert/test/run-1", b"\x07" * 32)
    for own in (True, False):
        statement = decode_statement(decode_envelope(first).payload)
        if own:
            statement.predicate["vkey"] = str(forger.verifier)
        payloads = (statement.encode(), decode_envelope(second).payload)
        lines = [sign(payload, forger.verifier, forger.sign_bytes).encode() for payload in payloads]
        with pytest.raises(LedgerTampered):
            check_certificate(b"\n".join(lines) + b"\n", [key.verifier])
    other = (runs[1] / "run.intoto.jsonl").read_bytes().splitlines()
    for lines in ([first, other[1]], [other[0], second], [second, first], [first, first], [first], [second]):
        with pytest.raises(REJECTED):
            check_certificate(b"\n".join(lines) + b"\n", [key.verifier])
