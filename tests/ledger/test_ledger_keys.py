"""The project key under a passphrase, and a run key that is nowhere once the run is sealed."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from deskcert_ledger import ProjectKey, local_pin
from deskcert_ledger.b64 import b64encode
from deskcert_ledger.keys import protect, public_key
from deskcert_ledger.note import parse_vkey
from deskcert_schema.errors import UsageError

DESKCERT = str(Path(sys.executable).with_name("deskcert"))


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A key that was made under the passphrase `open sesame`."""
    monkeypatch.setenv("DESKCERT_KEY_PASSPHRASE", "open sesame")
    made = tmp_path / "p" / ".deskcert" / "key"
    ProjectKey.load_or_create(made)
    monkeypatch.delenv("DESKCERT_KEY_PASSPHRASE")
    return made


def test_a_key_made_under_a_passphrase_is_not_in_its_file(path: Path) -> None:
    key = ProjectKey.load(path, ask=lambda: "open sesame")
    seed = key._signer._private.private_bytes_raw()
    text = path.read_text()
    assert seed not in path.read_bytes()
    assert b64encode(seed)[:-2] not in text
    assert seed.hex() not in text
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_verifying_needs_no_passphrase(path: Path) -> None:
    pin = local_pin(path.parent.parent, {})
    assert pin == public_key(path) == ProjectKey.load(path, ask=lambda: "open sesame").verifier
    shown = subprocess.run(
        [DESKCERT, "key", "show"], cwd=path.parent.parent, capture_output=True, text=True, check=True
    )
    assert parse_vkey(shown.stdout.strip()) == pin


def test_without_a_passphrase_it_says_how_to_give_one(path: Path) -> None:
    done = subprocess.run(
        [DESKCERT, "ledger", "serve", "run"],
        cwd=path.parent.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "DESKCERT_KEY_PASSPHRASE_FILE" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (path.parent.parent / "run").exists()


@pytest.mark.parametrize("how", ["variable", "file", "terminal"])
def test_the_passphrase_comes_from(path: Path, tmp_path: Path, how: str) -> None:
    """It is never on a command line: there is no option for it."""
    environment = dict(os.environ)
    if how == "variable":
        environment["DESKCERT_KEY_PASSPHRASE"] = "open sesame"
    elif how == "file":
        (tmp_path / "secret").write_text("open sesame\r\nanother line\n")
        environment["DESKCERT_KEY_PASSPHRASE_FILE"] = str(tmp_path / "secret")
    master, terminal = pty.openpty()
    serve = subprocess.Popen(
        [DESKCERT, "ledger", "serve", "run"],
        cwd=path.parent.parent,
        env=environment,
        stdin=terminal if how == "terminal" else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that the terminal is asked, not the one the tests run on
    )
    os.close(terminal)
    assert serve.stdout is not None
    assert serve.stderr is not None
    if how == "terminal":
        prompt = "Passphrase of the project key: "
        assert serve.stderr.read(len(prompt)) == prompt  # what was typed before it is thrown away
        os.write(master, b"open sesame\n")
    told = serve.stdout.readline()
    if how == "terminal":
        os.write(master, b"\x04")
    _, err = serve.communicate(timeout=60)
    os.close(master)
    assert serve.returncode == 0, err
    assert json.loads(told)["vkey"] == str(public_key(path))


def test_a_wrong_passphrase_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="passphrase"):
        ProjectKey.load(path, ask=lambda: "open sesamE")


@pytest.mark.parametrize("name", ["vkey", "n", "salt", "nonce", "sealed", "format"])
def test_a_changed_file_is_refused(path: Path, tmp_path: Path, name: str) -> None:
    raw = json.loads(path.read_text())
    other = ProjectKey.load_or_create(tmp_path / "other" / "key").vkey
    changed = {"vkey": other, "n": raw["n"] // 2, "format": "deskcert protected key v2"}
    text = raw[name]
    raw[name] = changed.get(name) or ("A" if text[0] != "A" else "B") + text[1:]
    path.write_text(json.dumps(raw) + "\n")
    with pytest.raises(UsageError):
        ProjectKey.load(path, ask=lambda: "open sesame")


@pytest.mark.parametrize(
    "text", ["{}", "{", '{"n":1}', "[" * 5000, '{"format":"deskcert protected key v1","kdf":"scrypt"}']
)
def test_what_is_no_key_is_said_to_be_none(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(UsageError, match="is not a project key"):
        ProjectKey.load(path, ask=lambda: "x")


def test_more_work_than_a_key_needs_is_not_done(path: Path) -> None:
    """A file that was put there must not make the machine swap."""
    path.write_text(path.read_text().replace('"n": 32768', '"n": 1073741824'))
    with pytest.raises(UsageError, match="more work"):
        ProjectKey.load(path, ask=lambda: "open sesame")


def test_protecting_keeps_the_key_and_can_be_undone(tmp_path: Path) -> None:
    path = tmp_path / "key"
    before = ProjectKey.load_or_create(path, name="deskcert/t")
    protect(path, "first")
    protect(path, "second", ask=lambda: "first")
    with pytest.raises(UsageError):
        ProjectKey.load(path, ask=lambda: "first")
    assert ProjectKey.load(path, ask=lambda: "second").sign_note("a\n") == before.sign_note("a\n")
    assert path.stat().st_mode & 0o777 == 0o600
    protect(path, None, ask=lambda: "second")
    assert path.read_text().startswith("PRIVATE+KEY+deskcert/t+")
    assert ProjectKey.load(path).vkey == before.vkey
    assert sorted(item.name for item in tmp_path.iterdir()) == ["key"]


RUN = """
import os, sys
from pathlib import Path
from deskcert_ledger import ProjectKey, RunLedger, SystemClock
folder = Path(sys.argv[1])
key = ProjectKey.load_or_create(folder / "key")
ledger = RunLedger.create(folder / "run", origin="deskcert/t/1", start={}, project_key=key, clock=SystemClock(),
                          rng=os.urandom)
for number in range(50):
    ledger.append("claim", {"n": number})
print(flush=True); sys.stdin.readline()
ledger.append("run.end", {})
ledger.seal()
print(flush=True); sys.stdin.readline()
"""


def private_keys(pid: int, public: bytes) -> set[bytes]:
    """The private keys of `public` in a process's writable memory: every 32 bytes in it that look drawn are tried."""
    found, tried = set(), set()
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            where, rights, *_ = line.split()
            if "rw" not in rights or "[v" in line:
                continue
            begin, end = (int(number, 16) for number in where.split("-"))
            memory.seek(begin)
            data = memory.read(end - begin)
            for at in range(0, len(data) - 31, 16):
                piece = data[at : at + 32]
                if piece.count(0) < 4 and piece not in tried and len(set(piece)) > 22:
                    tried.add(piece)
                    if Ed25519PrivateKey.from_private_bytes(piece).public_key().public_bytes_raw() == public:
                        found.add(piece)
    return found


def test_the_run_key_is_nowhere_once_the_run_is_sealed(tmp_path: Path) -> None:
    """While the run goes on its key is found in the process's memory, so the search finds what is there; after the seal
    it is neither there nor, in any spelling, on the disk."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    start = json.loads((tmp_path / "run" / "ledger.jsonl").read_bytes().split(b"\n")[0])
    public = parse_vkey(start["vkey"]).public
    (seed,) = private_keys(process.pid, public)
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()
    left = private_keys(process.pid, public)
    process.stdin.close()
    assert process.wait(30) == 0
    assert left == set()
    everything = b"".join(item.read_bytes() for item in tmp_path.rglob("*") if item.is_file())
    for spelling in (seed, b64encode(seed).rstrip("=").encode(), seed.hex().encode()):
        assert spelling not in everything
