"""`deskcert ledger certificate`, `prove --all`, `check-proof`, `redact`, `export`: output and exit codes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import StepClock, seeded

from deskcert.cli.main import main
from deskcert_ledger import ProjectKey, RunLedger, verify_run

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """deskcert's entry point in this process, in the folder of the project key."""
    monkeypatch.delenv("DESKCERT_KEY_FILE", raising=False)

    def call(*arguments: str | Path, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(cwd)
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return subprocess.CompletedProcess([], left.value.code, told.out, told.err)

    return call


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder without a project key."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def test_certificate_verify(run: Run, sealed: Path, key: ProjectKey, elsewhere: Path) -> None:
    file = sealed / "run.intoto.jsonl"
    done = run("ledger", "certificate", "verify", file, "--at", "2026-12-24", "--key", key.vkey, cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    for said in ("run certificate: holds", "word", "ledger.jsonl: same digest", "run.sshsig: holds", "not checked: "):
        assert said in done.stdout
    told = json.loads(run("ledger", "certificate", "verify", "--json", file, "--at", "2026-12-24").stdout)
    assert (told["holds"], told["statement"], told["problems"]) == (True, {"word": "complete"}, [])
    assert run("ledger", "certificate", "verify", file, "--at", "2027-12-24").returncode == 1
    assert run("ledger", "certificate", "verify", file, cwd=elsewhere).returncode == 3
    assert run("ledger", "certificate", "verify", sealed / "checkpoint").returncode == 2
    (sealed / "ledger.jsonl").write_bytes(b"{}\n")
    done = run("ledger", "certificate", "verify", file, "--at", "2026-12-24")
    assert done.returncode == 1
    assert "another content" in done.stdout
    file.write_bytes(file.read_bytes().replace(b'"sig":"', b'"sig":"A', 1))
    assert run("ledger", "certificate", "verify", file).returncode == 2


def test_prove_all_and_check_proof(run: Run, sealed: Path, key: ProjectKey, elsewhere: Path) -> None:
    proof = elsewhere / "denied.json"
    assert run("ledger", "prove", sealed, "--all", "class=denied", "--out", proof).returncode == 0
    done = run("ledger", "check-proof", proof, "--key", key.vkey, "--json", cwd=elsewhere)
    assert (done.returncode, json.loads(done.stdout)["count"]) == (0, 0)
    assert "no record of class denied among 8" in run("ledger", "check-proof", proof).stderr
    proof.write_text(proof.read_text().replace("denied 0 ", "denied 1 "))
    assert run("ledger", "check-proof", proof).returncode == 1
    assert run("ledger", "prove", sealed, "--all", "class=denied", cwd=elsewhere).returncode == 3
    assert run("ledger", "prove", sealed, "--all", "class=nonsense").returncode == 2
    for wrong in ((), ("1", "--all", "class=denied"), ("--all", "denied")):
        assert run("ledger", "prove", sealed, *wrong).returncode == 2


def test_a_plain_proof_is_checked_with_its_line_and_the_run_key(
    run: Run, sealed: Path, key: ProjectKey, elsewhere: Path
) -> None:
    proof, line = elsewhere / "a.tlog-proof", elsewhere / "line"
    assert run("ledger", "prove", sealed, "2", "--plain", "--out", proof).returncode == 0
    line.write_bytes((sealed / "ledger.jsonl").read_bytes().split(b"\n")[2])
    run_key = verify_run(sealed, pins=[key.vkey]).epochs[0].vkey
    done = run("ledger", "check-proof", proof, "--record", line, "--key", run_key, cwd=elsewhere)
    assert (done.returncode, done.stdout) == (0, line.read_text() + "\n")
    assert run("ledger", "check-proof", proof, "--key", run_key, cwd=elsewhere).returncode == 2
    line.write_bytes(line.read_bytes() + b" ")
    assert run("ledger", "check-proof", proof, "--record", line, "--key", run_key, cwd=elsewhere).returncode == 1


def test_redact(run: Run, sealed: Path, key: ProjectKey, elsewhere: Path) -> None:
    assert run("ledger", "redact", sealed, "--reason", "x").returncode == 2
    assert run("ledger", "redact", sealed, "99", "--reason", "x").returncode == 2
    done = run("ledger", "redact", sealed, "2", "--reason", "asked to", "--json")
    assert (done.returncode, len(json.loads(done.stdout)["openings"])) == (0, 1)
    done = run("ledger", "redact", sealed, "--all", "--blobs", "--reason", "asked to")
    assert "1 openings and 1 blobs deleted" in done.stdout
    assert run("ledger", "verify", sealed).returncode == 0
    assert run("ledger", "redact", sealed, "--all", "--reason", "x", cwd=elsewhere).returncode == 2


def test_export_a_pack_and_check_it_with_its_own_verifier(
    run: Run, sealed: Path, key: ProjectKey, elsewhere: Path
) -> None:
    pack = elsewhere / "run.zip"
    done = run("ledger", "export", sealed, "--to", "pack", "--out", pack)
    assert done.returncode == 0, done.stderr
    shutil.unpack_archive(pack, elsewhere / "out")
    command = [sys.executable, "-I", "-S", str(elsewhere / "out" / "verify.py"), str(pack), "--key", key.vkey]
    assert subprocess.run(command, check=True, capture_output=True).stdout.startswith(b"complete\n")
    elided = run("ledger", "export", sealed, "--to", "pack", "--elide", "claim", "--out", elsewhere / "elided.zip")
    assert elided.returncode == 0
    shutil.unpack_archive(elsewhere / "elided.zip", elsewhere / "elided")
    assert run("ledger", "verify", elsewhere / "elided" / "run").returncode == 3
    assert run("ledger", "verify", "--allow-elided", elsewhere / "elided" / "run").returncode == 0
    assert run("ledger", "export", elsewhere, "--to", "pack", "--out", pack).returncode == 2
    assert run("ledger", "export", sealed, "--to", "nonsense", "--out", pack).returncode == 2


def test_the_suites_ssh_signature_needs_nothing_but_the_projects_line(
    run: Run, key: ProjectKey, elsewhere: Path
) -> None:
    from deskcert_ledger.sshsig import sshsig

    line = run("key", "show", "--ssh").stdout
    (elsewhere / "allowed_signers").write_text(line)
    (elsewhere / "sig").write_bytes(sshsig(b"certificate", key.verifier, key.sign_bytes))
    command = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-f",
        "allowed_signers",
        "-I",
        line.split()[0],
        "-n",
        "deskcert",
        "-s",
        "sig",
    ]
    for message, code in ((b"certificate", 0), (b"certificatf", 255)):
        done = subprocess.run(command, cwd=elsewhere, input=message, capture_output=True, check=False)
        assert done.returncode == code


def test_a_change_of_what_was_certified_revokes_it(run: Run, tmp_path: Path) -> None:
    start = {"run": "x", "policy": {"digest": "a" * 64}}
    key = ProjectKey.load_or_create(tmp_path / ".deskcert" / "key", rng=seeded("project"))
    ledger = RunLedger.create(
        tmp_path / "x", origin="deskcert/test/x", start=start, project_key=key, clock=StepClock(), rng=seeded("x")
    )
    ledger.append("run.end", {"outcome": "finished"})
    ledger.seal()
    command = ("ledger", "certificate", "verify", tmp_path / "x" / "run.intoto.jsonl", "--at", "2026-12-24", "--digest")
    assert run(*command, f"policy={'a' * 64}").returncode == 0
    changed = run(*command, f"policy={'b' * 64}")
    assert changed.returncode == 1
    assert "revoked: the policy in use" in changed.stdout
    assert run(*command, "nonsense=1").returncode == 2
