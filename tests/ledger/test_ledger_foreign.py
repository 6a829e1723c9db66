"""Programs that none of us wrote accept what the ledger writes, and reject a forged copy of it.

`.ci/run` installs them. Where one is missing, CI fails; elsewhere the test is skipped and says what to install.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import fill
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from deskcert_ledger import ProjectKey, RunLedger
from deskcert_ledger.certificate import Certificate, check_certificate
from deskcert_ledger.dsse import decode_envelope, key_hint, pae
from deskcert_ledger.hashes import stored_hashes
from deskcert_ledger.merkle import consistency_proof, stored_hash_index
from deskcert_ledger.proof import Prover
from deskcert_ledger.sshsig import allowed_signer

HERE = Path(__file__).parent / "foreign"
GO_SOURCES = "/usr/share/gocode"
NODE_MODULES = Path(tempfile.gettempdir()) / "deskcert-foreign" / "node_modules"

Accepts = Callable[..., bool]


def needed(there: bool, what: str) -> None:
    """Fail in CI, skip elsewhere."""
    if not there:
        sentence = f"{what} is missing; .ci/run installs it"
        pytest.fail(sentence) if os.environ.get("CI") == "true" else pytest.skip(sentence)


def test_in_ci_a_missing_verifier_is_a_failure_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"minisign is missing; \.ci/run installs it"):
        needed(False, "minisign")


def accepted(
    *command: str | Path, cwd: Path | None = None, stdin: bytes = b"", env: dict[str, str] | None = None
) -> bool:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, input=stdin, env=env, capture_output=True, check=False, timeout=120
    )
    return done.returncode == 0


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Go's sumdb, as a program."""
    needed(shutil.which("go") is not None, "Go (apt: golang-go)")
    needed(Path(GO_SOURCES, "src/golang.org/x/mod").is_dir(), "Go's x/mod (apt: golang-golang-x-mod-dev)")
    folder = tmp_path_factory.mktemp("go")
    environ = os.environ | {"GO111MODULE": "off", "GOPATH": GO_SOURCES, "GOCACHE": str(folder / "cache"), "GOFLAGS": ""}
    program = folder / "sumcheck"
    subprocess.run(["go", "build", "-o", program, HERE / "sumcheck.go"], env=environ, check=True, timeout=300)
    return program


@pytest.fixture
def certificate(sealed: Path, key: ProjectKey) -> Certificate:
    return check_certificate((sealed / "run.intoto.jsonl").read_bytes(), [key.verifier])


def pem_of(certificate: Certificate, path: Path) -> Path:
    public = Ed25519PublicKey.from_public_bytes(certificate.key.public)
    path.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path


def forged(path: Path, old: bytes, new: bytes) -> Path:
    """A copy with other content under the same signature."""
    raw = path.read_bytes()
    assert old in raw
    copy = path.with_name(f"forged.{path.name}")
    copy.write_bytes(raw.replace(old, new, 1))
    return copy


def test_go_opens_our_notes(go: Path, sealed: Path, key: ProjectKey, certificate: Certificate, tmp_path: Path) -> None:
    run_key = str(certificate.key)
    assert accepted(go, "note", sealed / "checkpoint", run_key)
    assert not accepted(go, "note", forged(sealed / "checkpoint", b"\n8\n", b"\n9\n"), run_key)
    assert not accepted(go, "note", sealed / "checkpoint", key.vkey)
    classes, intro = tmp_path / "classes", tmp_path / "intro"
    classes.write_text(certificate.statement.predicate["classes_note"])
    assert accepted(go, "note", classes, run_key)
    assert not accepted(go, "note", forged(classes, b"denied 0 ", b"denied 1 "), run_key)
    intro.write_text(certificate.statement.predicate["key_intro"])
    assert accepted(go, "note", intro, key.vkey)
    assert not accepted(go, "note", intro, run_key)


def test_go_computes_our_tree_and_the_very_hash_file(go: Path, sealed: Path, certificate: Certificate) -> None:
    command = [go, "tree", sealed / "ledger.jsonl", sealed / "checkpoint", str(certificate.key)]
    done = subprocess.run([str(part) for part in command], capture_output=True, check=True, timeout=60)
    assert done.stdout == (sealed / "ledger.hashes").read_bytes()
    other = forged(sealed / "ledger.jsonl", b"delivered_verified", b"delivered_verifieD")
    assert not accepted(go, "tree", other, sealed / "checkpoint", str(certificate.key))


@pytest.mark.parametrize("plain", [True, False])
def test_go_follows_our_proofs(go: Path, sealed: Path, certificate: Certificate, tmp_path: Path, plain: bool) -> None:
    lines = (sealed / "ledger.jsonl").read_bytes().split(b"\n")[:-1]
    line, proof = tmp_path / "line", tmp_path / "a.tlog-proof"
    with Prover(sealed) as prover:
        for seq in (0, 3, 7):
            line.write_bytes(lines[seq])
            proof.write_text(prover.prove(seq, plain=plain))
            assert accepted(go, "proof", proof, line, str(certificate.key))
    line.write_bytes(lines[3])
    assert not accepted(go, "proof", proof, line, str(certificate.key))


def test_go_sees_that_one_checkpoint_follows_from_another(
    go: Path, sealed: Path, certificate: Certificate, tmp_path: Path
) -> None:
    cells = b"".join(stored_hashes(sealed, (sealed / "ledger.jsonl").stat().st_size))

    def read(level: int, n: int) -> bytes:
        at = 32 * stored_hash_index(level, n)
        return cells[at : at + 32]

    first, proof = tmp_path / "first", tmp_path / "proof"
    first.write_bytes(b"\n".join((sealed / "checkpoints").read_bytes().split(b"\n")[:5]) + b"\n")
    size = int(first.read_text().split("\n")[1])
    assert size < 8
    hashes = [base64.b64encode(item).decode() for item in consistency_proof(size, 8, read)]
    proof.write_text("\n".join(hashes))
    assert accepted(go, "consistent", first, sealed / "checkpoint", str(certificate.key), proof)
    proof.write_text("\n".join(hashes[::-1] if len(hashes) > 1 else [base64.b64encode(bytes(32)).decode()]))
    assert not accepted(go, "consistent", first, sealed / "checkpoint", str(certificate.key), proof)


def test_sigstore_verifies_our_bundle(sealed: Path, certificate: Certificate, tmp_path: Path) -> None:
    modules = Path(os.environ.get("DESKCERT_NODE_MODULES", NODE_MODULES))
    needed(shutil.which("node") is not None, "node (apt: nodejs)")
    needed((modules / "@sigstore" / "verify").is_dir(), "@sigstore/verify (npm)")
    pem, environ = pem_of(certificate, tmp_path / "key.pem"), os.environ | {"NODE_PATH": str(modules)}
    command = ("node", HERE / "verify_bundle.js")
    bundle, hint = sealed / "run.sigstore.json", key_hint(certificate.key)
    assert accepted(*command, bundle, pem, hint, env=environ)
    payload = json.loads(bundle.read_bytes())["dsseEnvelope"]["payload"].encode()
    other = base64.b64encode(base64.b64decode(payload).replace(b'"complete"', b'"tampered"'))
    assert not accepted(*command, forged(bundle, payload, other), pem, hint, env=environ)


def test_securesystemslib_verifies_our_envelopes(sealed: Path, certificate: Certificate) -> None:
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError
    from securesystemslib.signer import SSlibKey

    hint = key_hint(certificate.key)
    public = SSlibKey(hint, "ed25519", "ed25519", {"public": certificate.key.public.hex()})
    for line in (sealed / "run.intoto.jsonl").read_bytes().splitlines():
        envelope = Envelope.from_dict(json.loads(line))
        assert list(envelope.verify([public], 1)) == [hint]
        envelope.payload += b" "
        with pytest.raises(VerificationError):
            envelope.verify([public], 1)


def test_in_toto_accepts_our_statements(sealed: Path) -> None:
    from google.protobuf import json_format
    from in_toto_attestation.v1 import statement_pb2
    from in_toto_attestation.v1.statement import Statement

    kinds = []
    for line in (sealed / "run.intoto.jsonl").read_bytes().splitlines():
        payload = decode_envelope(line).payload
        parsed = json_format.Parse(payload, statement_pb2.Statement())
        Statement.copy_from_pb(parsed).validate()
        kinds.append(parsed.predicate_type)
        wrong = json_format.Parse(
            payload.replace(b"in-toto.io/Statement/v1", b"in-toto.io/Statement/v2"), statement_pb2.Statement()
        )
        with pytest.raises(ValueError, match="statement type"):
            Statement.copy_from_pb(wrong).validate()
    assert kinds == ["deskcert:run-certificate/v1", "https://in-toto.io/attestation/test-result/v0.1"]


def test_pymerkle_computes_our_root(sealed: Path, certificate: Certificate) -> None:
    from pymerkle import InmemoryTree

    def root(lines: list[bytes]) -> str:
        tree = InmemoryTree(algorithm="sha256")
        for line in lines:
            tree.append_entry(line)
        return base64.b64encode(tree.get_root()).decode()

    lines = (sealed / "ledger.jsonl").read_bytes().split(b"\n")[:-1]
    assert root(lines) == certificate.statement.predicate["root"]
    assert root([*lines[:-1], lines[-1] + b" "]) != certificate.statement.predicate["root"]


def test_openssl_verifies_our_signature(sealed: Path, certificate: Certificate, tmp_path: Path) -> None:
    needed(shutil.which("openssl") is not None, "openssl (apt: openssl)")
    envelope = decode_envelope((sealed / "run.intoto.jsonl").read_bytes().splitlines()[0])
    pem, message, signature = pem_of(certificate, tmp_path / "key.pem"), tmp_path / "pae", tmp_path / "signature"
    signature.write_bytes(envelope.signature)
    command = (
        "openssl",
        "pkeyutl",
        "-verify",
        "-pubin",
        "-inkey",
        pem,
        "-rawin",
        "-sigfile",
        signature,
        "-in",
        message,
    )
    message.write_bytes(pae(envelope.payload_type, envelope.payload))
    assert accepted(*command)
    message.write_bytes(pae(envelope.payload_type, envelope.payload).replace(b"complete", b"tampered", 1))
    assert not accepted(*command)


def test_ssh_keygen_verifies_our_certificate_with_nothing_else(
    sealed: Path, certificate: Certificate, tmp_path: Path
) -> None:
    needed(shutil.which("ssh-keygen") is not None, "ssh-keygen (apt: openssh-client)")
    signers, raw = tmp_path / "allowed_signers", (sealed / "run.intoto.jsonl").read_bytes()
    signers.write_text(allowed_signer(certificate.key))
    command = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", certificate.key.name, "-n", "deskcert"]
    command += ["-s", sealed / "run.sshsig"]
    assert accepted(*command, stdin=raw)
    assert not accepted(*command, stdin=raw[:-1])
    assert not accepted(*command, stdin=raw.replace(b"keyid", b"keyiD", 1))


def test_the_hash_file_of_a_longer_run_is_gos(go: Path, create: Callable[..., RunLedger], key: ProjectKey) -> None:
    ledger = create()
    for _ in range(20):
        fill(ledger)
    ledger.seal()
    certificate = check_certificate((ledger.folder / "run.intoto.jsonl").read_bytes(), [key.verifier])
    command = [go, "tree", ledger.folder / "ledger.jsonl", ledger.folder / "checkpoint", str(certificate.key)]
    done = subprocess.run([str(part) for part in command], capture_output=True, check=True, timeout=60)
    assert done.stdout == (ledger.folder / "ledger.hashes").read_bytes()
