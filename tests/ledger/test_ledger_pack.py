"""The pack: the same bytes for the same run, checked by one file with any Python, and no byte without meaning."""

from __future__ import annotations

import io
import random
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import StepClock, fill, seeded
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from deskcert_ledger import ProjectKey, RunLedger, classes, recover_run, verify_run
from deskcert_ledger import pack_verifier as verifier
from deskcert_ledger.pack import make_pack
from deskcert_ledger.sealed_redaction import redact_sealed
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

Create = Callable[..., RunLedger]


def pythons() -> list[str]:
    """Every Python from 3.8 on that this machine has, one of each version."""
    versions = Path("~/.pyenv/versions").expanduser()
    found = ["/usr/bin/python3", *map(str, sorted(versions.glob("3.*/bin/python3")))]
    good = {}
    for python in [sys.executable, *found]:
        if shutil.which(python):
            told = subprocess.run(
                [python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=True
            )
            version = tuple(map(int, told.stdout.split()))
            if version >= (3, 8):
                good.setdefault(version, python)
    return [good[version] for version in sorted(good)]


def check(pack: Path, python: str = sys.executable, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-I", "-S", verifier.__file__, str(pack), *options], capture_output=True, text=True, check=False
    )


def fast(public: bytes, message: bytes, signature: bytes) -> bool:
    """The same answer in a hundredth of the time, for the many mutants."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def verdict(raw: bytes, key: ProjectKey) -> str:
    try:
        return verifier.verify(raw, verifier.Key(key.vkey))[0]
    except (verifier.Tampered, verifier.NotAPack):
        return "rejected"
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError):
        return "rejected"  # what `main` makes of them


@pytest.fixture
def pack(sealed: Path, tmp_path: Path) -> Path:
    path = tmp_path / "run.zip"
    path.write_bytes(make_pack(sealed, openings=True))
    return path


def test_the_same_run_gives_the_same_bytes(sealed: Path, pack: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(sealed, copy)
    assert make_pack(copy, openings=True) == pack.read_bytes()


@pytest.mark.parametrize("python", pythons())
def test_any_python_checks_a_pack_with_nothing_installed(pack: Path, key: ProjectKey, python: str) -> None:
    done = check(pack, python, "--key", key.vkey)
    assert (done.returncode, done.stdout.split("\n")[0], done.stderr) == (0, "complete", "")
    assert "not checked: whether what was recorded is true" in done.stdout
    without = check(pack, python)
    assert (without.returncode, without.stdout.split("\n")[0]) == (3, "unverifiable")


def test_its_ed25519_agrees_with_every_published_vector() -> None:
    vectors = (Path(__file__).parent / "vectors" / "sign.input.first64").read_text().splitlines()
    for line in vectors[:24]:
        _, public, message, signed = line.split(":")[:4]
        arguments = bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signed)[:64]
        assert verifier.ed25519(*arguments)
        assert not verifier.ed25519(arguments[0], arguments[1] + b"x", arguments[2])
        high = int.from_bytes(arguments[2][32:], "little") + verifier.L
        assert not verifier.ed25519(*arguments[:2], arguments[2][:32] + high.to_bytes(32, "little"))


def test_any_unzip_reads_it_and_ledger_verify_takes_what_is_inside(pack: Path, key: ProjectKey, tmp_path: Path) -> None:
    with zipfile.ZipFile(pack) as opened:
        assert opened.testzip() is None
        opened.extractall(tmp_path / "out")
    assert verify_run(tmp_path / "out" / "run", pins=[key.vkey]).headline == "complete"
    assert (tmp_path / "out" / "verify.py").read_bytes() == Path(verifier.__file__).read_bytes()


def test_openings_are_in_it_only_when_asked_for(sealed: Path, pack: Path) -> None:
    name = "run/disclosures.jsonl"
    assert name in zipfile.ZipFile(pack).namelist()
    assert name not in zipfile.ZipFile(io.BytesIO(make_pack(sealed))).namelist()


def test_no_byte_of_a_pack_can_be_changed(
    pack: Path, key: ProjectKey, fresh_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every byte as it lies there; most of these are caught by the zip's own sums."""
    monkeypatch.setattr(verifier, "ed25519", fast)
    raw, choose = pack.read_bytes(), random.Random(fresh_seed)
    for position, old in enumerate(raw):
        mutant = raw[:position] + bytes([old ^ choose.choice((1, 2, 32, 128))]) + raw[position + 1 :]
        assert verdict(mutant, key) == "rejected", position


def test_no_byte_within_a_file_of_a_pack_can_be_changed_with_the_zip_made_anew(
    pack: Path, key: ProjectKey, fresh_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forger makes the sums right again. Every fifth byte, of the program every hundredth."""
    monkeypatch.setattr(verifier, "ed25519", fast)
    files, choose = verifier.read_zip(pack.read_bytes()), random.Random(fresh_seed)
    for name, data in files.items():
        for position in range(choose.randrange(5), len(data), 100 if name == "verify.py" else 5):
            new = data[position] ^ choose.choice((1, 2, 32, 128))
            mutant = zip_of(files | {name: data[:position] + bytes([new]) + data[position + 1 :]})
            assert verdict(mutant, key) == "rejected", (name, position, new)


@pytest.mark.parametrize("cut", ["first", "middle", "file", "more"])
def test_a_pack_that_is_cut_or_made_longer_is_rejected(pack: Path, key: ProjectKey, cut: str) -> None:
    raw = pack.read_bytes()
    if cut == "file":  # a whole file is left out, in good order
        files = verifier.read_zip(raw)
        del files["run/run.intoto.jsonl"]
        raw = zip_of(files)
    else:
        raw = {"first": raw[1:], "middle": raw[:5000] + raw[5001:], "more": raw + b"\0"}[cut]
    assert verdict(raw, key) == "rejected"


def zip_of(files: dict[str, bytes]) -> bytes:
    from deskcert_ledger.pack import _zip

    return _zip(files)


def test_a_file_that_nothing_names_or_another_content_is_rejected(pack: Path, key: ProjectKey) -> None:
    files = verifier.read_zip(pack.read_bytes())
    assert verdict(zip_of(files), key) == "complete"
    assert verdict(zip_of(files | {"run/notes.txt": b"trust me"}), key) == "rejected"
    assert verdict(zip_of(files | {"verify.py": b"print('complete')"}), key) == "rejected"
    for name, data in files.items():
        assert verdict(zip_of(files | {name: data + b"x"}), key) == "rejected", name
        if name != "run/disclosures.jsonl":
            without = {other: content for other, content in files.items() if other != name}
            assert verdict(zip_of(without), key) == "rejected", name


def test_another_projects_key_does_not_fit(pack: Path, tmp_path: Path) -> None:
    other = ProjectKey.load_or_create(tmp_path / "other")
    done = check(pack, sys.executable, "--key", other.vkey)
    assert (done.returncode, done.stdout.split("\n")[0]) == (1, "tampered")
    assert check(tmp_path / "nowhere.zip").returncode == 2
    (tmp_path / "no.zip").write_bytes(b"rubbish")
    assert check(tmp_path / "no.zip").returncode == 2


def test_elided_records_are_counted_and_have_to_be_allowed(sealed: Path, key: ProjectKey, tmp_path: Path) -> None:
    path = tmp_path / "elided.zip"
    path.write_bytes(make_pack(sealed, elide=["observation", "claim"]))
    assert not any(name.startswith("run/blobs/") for name in zipfile.ZipFile(path).namelist())
    done = check(path, sys.executable, "--key", key.vkey)
    assert done.returncode == 3
    assert "2 elided lines" in done.stdout
    assert check(path, sys.executable, "--key", key.vkey, "--allow-elided").returncode == 0
    with pytest.raises(LedgerFormatError, match="cannot be elided"):
        make_pack(sealed, elide=["run.end"])


def test_a_redacted_run_is_packed_with_its_redactions(sealed: Path, key: ProjectKey, tmp_path: Path) -> None:
    redact_sealed(sealed, key, seqs=None, blobs=True, reason="asked to", now=datetime(2026, 12, 1, tzinfo=UTC))
    path = tmp_path / "redacted.zip"
    path.write_bytes(make_pack(sealed, openings=True))
    done = check(path, sys.executable, "--key", key.vkey)
    assert done.returncode == 0
    assert "1 blobs that were redacted" in done.stdout
    files = verifier.read_zip(path.read_bytes())
    del files["run/redactions.jsonl"]
    assert verdict(zip_of(files), key) == "rejected"


def test_a_recovered_run_is_interrupted_in_its_pack_too(create: Create, key: ProjectKey, tmp_path: Path) -> None:
    ledger = create()
    fill(ledger)
    ledger.append("action.intent", {"command": "click"})
    ledger.abandon()
    recover_run(ledger.folder, key, clock=StepClock(), rng=seeded("recovery"))
    path = tmp_path / "recovered.zip"
    changed = tmp_path / "changed"
    shutil.copytree(ledger.folder, changed)
    lines = (changed / "ledger.jsonl").read_bytes()
    (changed / "ledger.jsonl").write_bytes(lines.replace(b"set-value", b"set-valuE", 1))
    with pytest.raises(LedgerTampered):  # a changed run makes no pack
        make_pack(changed)
    path.write_bytes(make_pack(ledger.folder))
    done = check(path, sys.executable, "--key", key.vkey)
    assert (done.returncode, done.stdout.split("\n")[0]) == (1, "interrupted")


def test_a_run_that_is_not_sealed_makes_no_pack(create: Create) -> None:
    ledger = create()
    fill(ledger)
    ledger.abandon()
    (ledger.folder / "checkpoint").unlink()
    with pytest.raises(LedgerFormatError, match="not sealed"):
        make_pack(ledger.folder)


def test_bytes_that_are_no_note_among_the_checkpoints_are_rejected(pack: Path, key: ProjectKey) -> None:
    files = verifier.read_zip(pack.read_bytes())
    name = "run/checkpoints"
    for wrong in (b"x\n" + files[name], b"\n" + files[name], files[name] + files[name]):
        assert verdict(zip_of(files | {name: wrong}), key) == "rejected"


def test_a_pack_of_a_logger_that_hid_a_denial_is_rejected(
    create: Create, key: ProjectKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = create()
    ledger.append("action.denied", {"rule": "no-delete"})
    ledger.append("run.end", {"outcome": "finished"})
    with monkeypatch.context() as patch:
        patch.setattr(classes, "classify", lambda data: ())
        ledger.seal()
    with pytest.raises(LedgerTampered, match="counts the record classes otherwise"):
        make_pack(ledger.folder)
