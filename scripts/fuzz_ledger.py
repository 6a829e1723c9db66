"""One parser of the ledger, fuzzed with coverage guidance (atheris, libFuzzer): documented errors only, bounded memory.

    python -m scripts.fuzz_ledger TARGET SAMPLES [libFuzzer options]

SAMPLES is a folder that `write_samples` filled: valid specimens of everything, from which the fuzzer starts, and
`vkey`. A target that returns accepted its input; what is accepted must then be what was written, byte for byte in
meaning. Any other exception than a documented one ends the program with libFuzzer's report.
"""

from __future__ import annotations

import contextlib
import io
import json
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["TARGETS", "write_samples"]

TARGETS = (
    "line", "note", "checkpoint", "proof", "class_proof", "certificate", "disclosure", "policy", "pack", "ledger",
    "forms", "notes", "redactions", "wire",
)  # fmt: skip
ORIGIN = "deskcert/fuzz/run"


def write_samples(folder: Path) -> None:
    """A small sealed run, and one file or more for each target under `<folder>/<target>/`."""
    from deskcert_ledger import Blob, ProjectKey, RunLedger, Secret, SystemClock, wire
    from deskcert_ledger.completeness import prove_all
    from deskcert_ledger.cosignature import Witness
    from deskcert_ledger.pack import make_pack
    from deskcert_ledger.proof import Prover
    from deskcert_ledger.sealed_redaction import redact_sealed

    key, run = ProjectKey.load_or_create(folder / "key"), folder / "run"
    ledger = RunLedger.create(
        run, origin=ORIGIN, start={"run": "r"}, project_key=key, clock=SystemClock(), rng=secrets.token_bytes
    )
    ledger.append("observation", {"snapshot_id": "s", "tree": Blob({"nodes": [{"value": Secret("x")}]})})
    intent = ledger.append("action.intent", {"command": "set-value", "args": {"value": Secret("y")}, "box": [-1, 0]})
    ledger.append("action.result", {"of": intent.seq, "ok": True, "delivery": "unknown"})
    ledger.append("action.denied", {"command": "click", "kind": "unsafe_retry", "text": "Grüße \ud800"})
    ledger.append("run.end", {"outcome": "finished"})
    ledger.seal()
    lines = (run / "ledger.jsonl").read_bytes().splitlines()
    note, certificate = (run / "checkpoint").read_bytes(), (run / "run.intoto.jsonl").read_bytes()
    witness = Witness("w.example", bytes(32))
    text = note.decode().split("\n\n")[0] + "\n"
    witnessed = note + witness.cosign(text, 1).encode()
    with Prover(run) as prover:
        proofs = [prover.prove(seq).encode() for seq in range(2)] + [prover.prove(2, plain=True).encode()]
    redacted = folder / "redacted"
    shutil.copytree(run, redacted)
    for seqs in ([2], None):
        redact_sealed(redacted, key, seqs=seqs, blobs=True, reason="r", now=SystemClock().now())
    plain, escaped = {"of": 1, "ok": True}, {"s": Secret("x"), "b": Blob({"$x": "\ud800"})}
    requests = [wire.request(1, "action.result", plain, "durable"), wire.request(2, "observation", escaped, "ordered")]
    policy = f"# a policy\nlog {key.vkey}\nwitness w {witness.verifier}\ngroup g 1 w\nquorum g\n".encode()
    samples: dict[str, list[bytes]] = {
        "line": lines,
        "note": [note, key.introduce(ORIGIN, key.vkey).encode(), key.vkey.encode()],
        "checkpoint": [note, witnessed, (run / "checkpoints").read_bytes()],
        "proof": proofs,
        "class_proof": [prove_all(run, name, [key.verifier]) for name in ("denied", "blocked")],
        "certificate": [certificate, (run / "run.sigstore.json").read_bytes(), (run / "run.sshsig").read_bytes()],
        "disclosure": (run / "disclosures.jsonl").read_bytes().splitlines(),
        "policy": [policy, b"quorum none\n"],
        "pack": [make_pack(run)],
        "ledger": [(run / "ledger.jsonl").read_bytes(), b"\n".join(lines[:3])],
        "forms": [b"\n".join(lines[1:4]), b"\n".join(lines[1:2])],
        "notes": [(run / "checkpoints").read_bytes()],
        "redactions": [(redacted / "redactions.jsonl").read_bytes()],
        "wire": [*requests, wire.answer(1, 2, 3), b'{"id":1,"redact":"x"}'],
    }
    for target in TARGETS:
        (folder / target).mkdir()
        for number, data in enumerate(samples[target]):
            (folder / target / f"{number}").write_bytes(data)
    (folder / "vkey").write_text(key.vkey)
    (folder / "accepted.json").write_text(json.dumps({"lines": [line.decode() for line in lines]}))


def target_of(name: str, samples: Path) -> Callable[[bytes], None]:
    """The function that libFuzzer calls. What it raises is a finding."""
    from deskcert_ledger import pack_verifier, verify_run, wire
    from deskcert_ledger.batch import check_batch
    from deskcert_ledger.certificate import check_certificate
    from deskcert_ledger.checkpoint import Checkpoint, checkpoint_text, parse_checkpoint, read_checkpoints
    from deskcert_ledger.completeness import check_class_proof
    from deskcert_ledger.disclosure import open_disclosure
    from deskcert_ledger.line import decode, encode
    from deskcert_ledger.note import open_note, parse_vkey
    from deskcert_ledger.payload import prepare
    from deskcert_ledger.policy import parse_policy
    from deskcert_ledger.proof import check_proof
    from deskcert_ledger.reader import check_record
    from deskcert_ledger.redaction import read_redactions
    from deskcert_ledger.shapes import Shapes
    from deskcert_ledger.sshsig import check_sshsig
    from deskcert_schema.errors import ContractError, LedgerFormatError, LedgerTampered

    pin = parse_vkey((samples / "vkey").read_text())
    lines = {line.encode() for line in json.loads((samples / "accepted.json").read_text())["lines"]}
    documented = (LedgerFormatError, LedgerTampered, ContractError)

    def line(data: bytes) -> None:
        value = decode(data)
        assert encode(value) == data
        fast = check_batch([data], 0)
        assert fast is None or fast[0] == check_record(data, 0)
        check_record(data, 0)

    def note(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        if text.count("\n") < 2:
            assert str(parse_vkey(text)) == text.strip("\n")
            return
        open_note(data, [pin])

    def checkpoint(data: bytes) -> None:
        total = 0
        for item in read_checkpoints(io.BytesIO(data), limit=len(data)):
            total += len(item.raw) if isinstance(item, Checkpoint) else item.length
        assert total == len(data)
        found = parse_checkpoint(data)
        assert found.note.text == checkpoint_text(found.origin, found.size, found.root)

    def proof(data: bytes) -> None:
        assert check_proof(data, [pin]).record.line in lines

    def class_proof(data: bytes) -> None:
        assert {record.line for record in check_class_proof(data, [pin]).records} <= lines

    def certificate(data: bytes) -> None:
        if data.startswith(b"-----"):
            assert not check_sshsig(data, b"another message", pin)
            return
        check_certificate(data, [pin])

    def disclosure(data: bytes) -> None:
        entry = decode(data, limit=2 << 20)
        match entry:
            case {"disclosure": str(text)}:
                open_disclosure(text)

    def policy(data: bytes) -> None:
        found = parse_policy(data)
        everybody = found.met_by(frozenset(found.witnesses))
        assert everybody or found.quorum not in found.witnesses

    def pack(data: bytes) -> None:
        try:
            word, _ = pack_verifier.verify(data, pack_verifier.Key(str(pin)))
        except (pack_verifier.NotAPack, pack_verifier.Tampered):
            return
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError):
            return  # its `main` says "tampered: not what deskcert writes"
        assert word == "complete"
        assert data == (samples / "pack" / "0").read_bytes()

    shadow = Path(tempfile.mkdtemp(prefix="deskcert-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))

    def ledger(data: bytes) -> None:
        """Nothing but lines: whatever they are, they are not `complete`."""
        (shadow / "ledger.jsonl").write_bytes(data)
        assert verify_run(shadow, pins=[pin]).headline != "complete"

    def forms(data: bytes) -> None:
        """What is recognised without being parsed would have passed the full check, and means the same."""
        seen = data.split(b"\n")
        taken = shapes.take(seen, 1)
        if taken is None:
            return
        kinds: Counter[str] = Counter()
        for at in set(range(len(seen))) - set(taken.unknown):
            try:
                kinds[check_record(seen[at], 1 + at)["kind"]] += 1
            except LedgerFormatError as error:
                raise AssertionError("taken for a record that it is not") from error
        assert kinds == +taken.kinds

    def notes(data: bytes) -> None:
        """The run as it is, with other checkpoints: never `complete` but with those that were written."""
        (run / "checkpoints").write_bytes(data)
        report = verify_run(run, pins=[pin], every_signature=True)
        assert report.headline != "complete" or set(data.split(b"\n")) <= signed

    def redactions(data: bytes) -> None:
        (shadow / "redactions.jsonl").write_bytes(data)
        with contextlib.suppress(LedgerTampered):
            read_redactions(shadow, [])
        whole = (samples / "redactions" / "0").read_bytes()
        assert not read_redactions(shadow, [pin]).entries or whole.startswith(data)

    def socket(data: bytes) -> None:
        wire.read_answer(data)
        request = wire.read_request(data)
        prepare(request.payload, bytes)

    shapes = Shapes(frozenset())
    taught = [record for record in sorted(lines) if b'"action.' in record or b'"observation"' in record] * 80
    shapes.learn([json.loads(record) for record in taught], taught)
    run = shadow / "run"
    shutil.copytree(samples / "run", run)
    signed = set((samples / "run" / "checkpoints").read_bytes().split(b"\n"))
    named: dict[str, Callable[[bytes], None]] = dict(
        zip(
            TARGETS,
            (
                line,
                note,
                checkpoint,
                proof,
                class_proof,
                certificate,
                disclosure,
                policy,
                pack,
                ledger,
                forms,
                notes,
                redactions,
                socket,
            ),
            strict=True,
        )
    )
    chosen = named[name]

    def one(data: bytes) -> None:
        with contextlib.suppress(*documented):
            chosen(data)

    return one


def main(arguments: list[str]) -> None:
    name, samples, *options = arguments
    if name not in TARGETS:
        sys.exit(f"There is no target {name}; there are {', '.join(TARGETS)}.")
    import atheris

    instrument: Any = atheris.instrument_imports(include=["deskcert_ledger", "deskcert_schema"])
    with instrument:
        one = target_of(name, Path(samples))
    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
