"""`deskcert ledger` and `deskcert key`, as programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deskcert_ledger import ProjectKey, RunLedger

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run deskcert in the folder of the project key."""

    def call(*arguments: str | Path, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        environ = {name: value for name, value in os.environ.items() if name != "DESKCERT_KEY_FILE"}
        command = [sys.executable, "-m", "deskcert.cli.main", *map(str, arguments)]
        return subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)

    return call


def test_key_show_prints_the_vkey_and_nothing_else(run: Run, key: ProjectKey, tmp_path: Path) -> None:
    assert run("key", "show").stdout == key.vkey + "\n"
    assert json.loads(run("key", "show", "--json").stdout)["vkey"] == key.vkey
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    missing = run("key", "show", cwd=elsewhere)
    assert missing.returncode == 2
    assert "No project key" in missing.stderr
    assert not (elsewhere / ".deskcert").exists()


def test_verify_says_complete_with_the_local_key(run: Run, sealed: Path) -> None:
    done = run("ledger", "verify", sealed)
    assert done.returncode == 0
    assert "complete" in done.stdout
    assert "not checked" in done.stdout


def test_verify_as_json_with_pins(run: Run, sealed: Path, key: ProjectKey, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "pin").write_text(key.vkey)
    for pin in (key.vkey, "pin"):
        done = run("ledger", "verify", "--json", "--key", pin, sealed, cwd=elsewhere)
        report = json.loads(done.stdout)
        assert (done.returncode, report["headline"], report["exit_code"]) == (0, "complete", 0)
    done = run("ledger", "verify", "--json", sealed, cwd=elsewhere)
    assert (done.returncode, json.loads(done.stdout)["headline"]) == (3, "unverifiable")


def test_a_key_inside_the_evidence_is_no_pin(run: Run, sealed: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copytree(tmp_path / ".deskcert", sealed / ".deskcert")
    assert run("ledger", "verify", sealed, cwd=elsewhere).returncode == 3


def test_verify_names_tampering_with_record_and_byte(run: Run, sealed: Path) -> None:
    path = sealed / "ledger.jsonl"
    path.write_bytes(path.read_bytes().replace(b"delivered_verified", b"delivered_verifieD", 1))
    done = run("ledger", "verify", sealed)
    assert done.returncode == 1
    assert "tampered" in done.stdout
    assert "at record 3 (byte " in done.stdout


def test_verify_of_no_ledger_and_bad_usage_exit_2(run: Run, sealed: Path, tmp_path: Path) -> None:
    for arguments in ((tmp_path / "nowhere",), (tmp_path,), (), ("--key", "rubbish", sealed), ("--nonsense", sealed)):
        done = run("ledger", "verify", *arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert done.stderr


def test_verify_takes_an_output_folder_and_the_worst_counts(run: Run, sealed: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(sealed, tmp_path / "out" / "runs" / name)
    assert run("ledger", "verify", tmp_path / "out").returncode == 0
    (tmp_path / "out" / "runs" / "b" / "checkpoint").unlink()
    done = run("ledger", "verify", "--json", tmp_path / "out")
    assert done.returncode == 1
    assert [item["headline"] for item in json.loads(done.stdout)] == ["complete", "unfinished"]


def test_recover_repairs_and_says_what_it_did(run: Run, create: Callable[..., RunLedger]) -> None:
    ledger = create()
    ledger.append("action.intent", {"n": 1})
    busy = run("ledger", "recover", ledger.folder)
    assert busy.returncode != 0
    assert "Another process" in busy.stderr
    ledger.abandon()
    with (ledger.folder / "ledger.jsonl").open("ab") as file:
        file.write(b'{"v":1,"se')
    done = run("ledger", "recover", "--json", ledger.folder)
    assert json.loads(done.stdout) == {
        "outcome": "recovered",
        "size": 4,
        "signed_size": 2,
        "cut_bytes": 10,
        "open_intents": [1],
    }
    assert "nothing to do" in run("ledger", "recover", ledger.folder).stdout
    assert "interrupted" in run("ledger", "verify", ledger.folder).stdout


def test_prove_and_check_proof(run: Run, sealed: Path, key: ProjectKey, tmp_path: Path) -> None:
    proof = tmp_path / "two.tlog-proof"
    assert run("ledger", "prove", sealed, "2", "--out", proof).returncode == 0
    assert run("ledger", "prove", sealed, "2").stdout == proof.read_text()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = run("ledger", "check-proof", proof, "--key", key.vkey, cwd=elsewhere)
    assert (done.returncode, done.stdout) == (
        0,
        (sealed / "ledger.jsonl").read_text(encoding="utf-8").split("\n")[2] + "\n",
    )
    assert run("ledger", "check-proof", proof, cwd=elsewhere).returncode == 3
    proof.write_text(proof.read_text().replace("index 2", "index 3"))
    assert run("ledger", "check-proof", proof).returncode == 1
    proof.write_text("rubbish")
    assert run("ledger", "check-proof", proof).returncode == 2
    assert run("ledger", "prove", sealed, "99").returncode == 2
