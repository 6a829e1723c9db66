"""A run folder with something missing, strange or exchanged: the answer says what is no longer shown, or tampered."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import StepClock, fill, seeded

from deskcert_ledger import ProjectKey, RunLedger, openings, ranges, read_records, recover_run, scan, verify_run
from deskcert_ledger.note import Signer
from deskcert_ledger.sealed_redaction import redact_sealed
from deskcert_schema.errors import LedgerError, LedgerFormatError

Create = Callable[..., RunLedger]


@pytest.fixture
def recovered(create: Create, key: ProjectKey) -> Path:
    """A run that was torn, recovered, sealed and redacted: it has every file that a run can have."""
    ledger = create()
    fill(ledger)
    ledger.append("action.intent", {"command": "click"})
    ledger.abandon()
    with (ledger.folder / "ledger.jsonl").open("ab") as file:
        file.write(b'{"v":1,"se')
    recover_run(ledger.folder, key, clock=StepClock(), rng=seeded("recovery"))
    redact_sealed(ledger.folder, key, seqs=[2], blobs=False, reason="asked to", now=datetime(2026, 12, 1, tzinfo=UTC))
    return ledger.folder


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_whatever_file_is_removed_the_answer_says_what_is_no_longer_shown(recovered: Path, key: ProjectKey) -> None:
    whole = verify_run(recovered, pins=[key.vkey])
    assert whole.headline == "interrupted"
    names = files(recovered)
    for part in ("torn/", "blobs/", "redactions.jsonl", "run.sshsig", "run.sigstore.json", "disclosures.jsonl"):
        assert any(name.startswith(part) for name in names), part
    for name in names:
        kept = (recovered / name).read_bytes()
        (recovered / name).unlink()
        if name == "ledger.jsonl":
            with pytest.raises(LedgerFormatError, match=r"ledger\.jsonl"):
                verify_run(recovered, pins=[key.vkey])
        else:
            report = verify_run(recovered, pins=[key.vkey])
            if name.startswith("blobs/"):
                assert report.headline == "tampered"
                assert name[6:18] in report.problems[0].text
            else:
                fresh = [text for text in report.not_checked if text not in whole.not_checked]
                assert any(f"`{name}`" in text for text in fresh), name
        (recovered / name).write_bytes(kept)
    assert verify_run(recovered, pins=[key.vkey]) == whole


@pytest.mark.parametrize("make", ["pipe", "device", "folder", "loop"])
def test_no_file_of_another_sort_blocks_or_passes(sealed: Path, key: ProjectKey, make: str) -> None:
    """A folder that was unpacked may hold a named pipe, which blocks, or a link to a device, which never ends."""
    for name in files(sealed):
        path = sealed / name
        kept = path.read_bytes()
        path.unlink()
        match make:
            case "pipe":
                os.mkfifo(path)
            case "device":
                path.symlink_to("/dev/zero")
            case "folder":
                path.mkdir()
            case _:
                path.symlink_to(path.name)
        answered: list[object] = []

        def look(answered: list[object] = answered) -> None:
            try:
                report = verify_run(sealed, pins=[key.vkey])
                answered.append((report.headline, " ".join((*report.not_checked, *(p.text for p in report.problems)))))
            except LedgerFormatError as error:
                answered.append(("none", str(error)))

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        thread.join(30)
        assert answered, f"{name} as a {make} blocks"
        word, said = answered[0]
        assert word == "tampered" or path.name in said or path.name[:12] in said, (name, word, said)
        shutil.rmtree(path) if make == "folder" else path.unlink()
        path.write_bytes(kept)


def test_no_byte_of_a_disclosure_can_be_changed(sealed: Path) -> None:
    path = sealed / "disclosures.jsonl"
    raw, right = path.read_bytes(), openings(sealed)
    assert len(right) == 2
    for position, old in enumerate(raw):
        for new in {old ^ 1, old ^ 32, b'\n"A_'[position % 4]} - {old}:
            path.write_bytes(raw[:position] + bytes([new]) + raw[position + 1 :])
            with pytest.raises(LedgerFormatError):
                openings(sealed)


def test_no_byte_of_a_certificates_other_forms_can_be_changed(sealed: Path, key: ProjectKey) -> None:
    for name in ("run.sigstore.json", "run.sshsig"):
        raw = (sealed / name).read_bytes()
        for position in range(0, len(raw), 41):
            (sealed / name).write_bytes(raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :])
            report = verify_run(sealed, pins=[key.vkey])
            assert report.headline == "tampered", (name, position)
            assert name in report.problems[0].text
        (sealed / name).write_bytes(raw)


# -- attacks ---------------------------------------------------------------------------------------------------------


def _lines(folder: Path) -> list[bytes]:
    return (folder / "ledger.jsonl").read_bytes().splitlines()


def _write(folder: Path, lines: list[bytes]) -> None:
    (folder / "ledger.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))


def _more_notes(folder: Path, note: str) -> None:
    with (folder / "checkpoints").open("a") as file:
        file.write(note)


def _drop_seal(folder: Path) -> None:
    for name in ("checkpoint", "checkpoints", "run.intoto.jsonl", "run.sigstore.json", "run.sshsig"):
        (folder / name).unlink()


def _fake_recovery(folder: Path, forger: ProjectKey) -> None:
    lines = _lines(folder)
    notes = (folder / "checkpoint").read_text().split("\n")
    run = Signer(notes[0], b"\x05" * 32)
    body = {
        "vkey": str(run.verifier), "key_intro": forger.introduce(notes[0], str(run.verifier)),
        "size": len(lines), "root": notes[2], "cut": sum(len(line) + 1 for line in lines), "torn_bytes": 0,
    }  # fmt: skip
    from deskcert_ledger.line import encode

    head = {"v": 1, "seq": len(lines), "t": "2026-11-30T20:00:00.000100Z", "m": 1, "w": "recovery", "kind": "recovery"}
    _write(folder, [*lines, encode({**head, **body})])


ATTACKS: dict[str, Callable[[Path, Path, ProjectKey], Any]] = {
    "a line more after the end": lambda run, _, __: _write(run, [*_lines(run), _lines(run)[-1]]),
    "the end gone": lambda run, _, __: _write(run, _lines(run)[:-1]),
    "the end gone, with the seal": lambda run, _, __: (_write(run, _lines(run)[:-1]), _drop_seal(run)),
    "no signature at all": lambda run, _, __: _drop_seal(run),
    "a line of another run": lambda run, other, __: _write(run, [*_lines(run)[:2], _lines(other)[2], *_lines(run)[3:]]),
    "the first line of another run": lambda run, other, __: _write(run, [_lines(other)[0], *_lines(run)[1:]]),
    "notes of another run": lambda run, other, __: shutil.copy(other / "checkpoints", run / "checkpoints"),
    "the seal of another run": lambda run, other, __: shutil.copy(other / "checkpoint", run / "checkpoint"),
    "a certificate of another run": lambda run, other, __: [
        shutil.copy(other / name, run / name) for name in ("run.intoto.jsonl", "run.sigstore.json", "run.sshsig")
    ],
    "the blob of another run": lambda run, other, __: shutil.copy(
        next((other / "blobs").iterdir()), next((run / "blobs").iterdir())
    ),
    "a blob that is a link to another": lambda run, other, __: (
        (path := next((run / "blobs").iterdir())).unlink(),
        path.symlink_to(next((other / "blobs").iterdir())),
    ),
    "an old note again at the end": lambda run, _, __: _more_notes(
        run, (run / "checkpoints").read_text()[: len((run / "checkpoint").read_text())]
    ),
    "a note of one's own over more": lambda run, _, __: _more_notes(
        run, Signer("deskcert/test/run-1", b"\5" * 32).sign_note("deskcert/test/run-1\n9\n" + "A" * 43 + "=\n")
    ),
    "a note of size zero": lambda run, _, __: _more_notes(
        run, Signer("deskcert/test/run-1", b"\5" * 32).sign_note("deskcert/test/run-1\n0\n" + "A" * 43 + "=\n")
    ),
    "bytes that are no note": lambda run, _, __: _more_notes(run, "\n\n\n"),
    "a recovery by a key of one's own": lambda run, _, forger: _fake_recovery(run, forger),
    "redactions of another run": lambda run, other, key: (
        redact_sealed(other, key, seqs=None, blobs=True, reason="r", now=datetime(2026, 12, 1, tzinfo=UTC)),
        shutil.copy(other / "redactions.jsonl", run / "redactions.jsonl"),
    ),
    "windows line ends": lambda run, _, __: (run / "ledger.jsonl").write_bytes(
        (run / "ledger.jsonl").read_bytes().replace(b"\n", b"\r\n")
    ),
    "a byte order mark": lambda run, _, __: (run / "ledger.jsonl").write_bytes(
        b"\xef\xbb\xbf" + (run / "ledger.jsonl").read_bytes()
    ),
    "an empty line": lambda run, _, __: _write(run, [*_lines(run)[:4], b"", *_lines(run)[4:]]),
    "an unfinished line at the end": lambda run, _, __: (run / "ledger.jsonl").write_bytes(
        (run / "ledger.jsonl").read_bytes() + b'{"v":1'
    ),
    "keys in another order": lambda run, _, __: _write(
        run, [line.replace(b'"ok":true,"delivery"', b'"delivery"').replace(b'"of"', b'"ok":true,"of"')
              for line in _lines(run)],
    ),
    "a nul at the end": lambda run, _, __: (run / "ledger.jsonl").write_bytes(
        (run / "ledger.jsonl").read_bytes() + b"\0"
    ),
    "the record of an intent hidden": lambda run, _, __: _write(
        run, [b'{"_elided":"' + b"A" * 43 + b'="}' if b"action.intent" in line else line for line in _lines(run)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_is_complete(attack: str, sealed: Path, create: Create, key: ProjectKey, tmp_path: Path) -> None:
    other = create("run-2", origin="deskcert/test/run-2")
    fill(other)
    other.seal()
    forger = ProjectKey.load_or_create(tmp_path / "forger", name=key.verifier.name)
    ATTACKS[attack](sealed, other.folder, forger if "one's own" in attack else key)
    for jobs in (1, 2):
        for every in (False, True):
            try:
                report = verify_run(sealed, pins=[key.vkey], every_signature=every, allow_elided=True, jobs=jobs)
            except LedgerError:
                continue
            assert report.headline != "complete", attack
            assert report.exit_code != 0


# -- in several processes --------------------------------------------------------------------------------------------


@pytest.fixture
def long(create: Create) -> Path:
    ledger = create()
    for _ in range(40):
        fill(ledger)
    ledger.seal()
    return ledger.folder


def test_several_processes_give_the_same_answer(
    long: Path, key: ProjectKey, monkeypatch: pytest.MonkeyPatch, fresh_seed: int
) -> None:
    import random

    monkeypatch.setattr(ranges, "_RANGE", 10_000)
    monkeypatch.setattr(ranges, "_MIN_BYTES", 0)
    monkeypatch.setattr(scan, "_LEARN_FROM", 0)
    choose = random.Random(fresh_seed)
    used: list[int] = []
    scanned = ranges.scan_in_parts

    def counted(*arguments: Any) -> Any:
        used.append(1)
        return scanned(*arguments)

    monkeypatch.setattr("deskcert_ledger.evidence.scan_in_parts", counted)
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # the test runner's own thread is idle
    path = long / "ledger.jsonl"
    raw = path.read_bytes()
    for turn in range(10):
        changed, position = bytearray(raw), choose.randrange(len(raw))
        match turn % 5:
            case 0:
                pass
            case 1:
                changed[position] ^= 1 << choose.randrange(8)
            case 2:
                del changed[position : position + choose.choice((1, 500, 5000))]
            case 3:
                changed = changed[:position]
            case _:
                changed[position:position] = choose.choice((b"\n", b"{}\n", b"x", raw[:700]))
        path.write_bytes(changed)
        for options in ({}, {"schema": True}) if turn == 0 else ({},):
            one = verify_run(long, pins=[key.vkey], **options)
            assert verify_run(long, pins=[key.vkey], jobs=2, **options) == one, (turn, position)
            assert (one.headline == "complete") == (changed == raw)
    assert len(used) >= 10


def test_lines_known_by_their_form_give_the_same_answer(
    long: Path, key: ProjectKey, monkeypatch: pytest.MonkeyPatch, fresh_seed: int
) -> None:
    """The same hostile ledgers with and without learning forms; nothing is signed, so that only lines count."""
    import random

    (long / "checkpoint").unlink()
    (long / "checkpoints").unlink()
    choose, path = random.Random(fresh_seed), long / "ledger.jsonl"
    raw = path.read_bytes()
    junk = (b'"', b"\\", b"\n", b"\0", b" ", b",", b"0", b"-", b"\x7f", b"\xff", b"\xc3\xbc", b"1e5", b"\\u0041",
            "\ufffd:".encode(), b'"a":1,', b"9007199254740992")  # fmt: skip
    for turn in range(25):
        changed, position = bytearray(raw), choose.randrange(len(raw) // 3, len(raw))
        changed[position : position + choose.randrange(3)] = choose.choice(junk)
        path.write_bytes(changed)
        answers = []
        for least in (1 << 60, 0):
            monkeypatch.setattr(scan, "_LEARN_FROM", least)
            answers.append(verify_run(long, pins=[key.vkey]))
        assert answers[0] == answers[1], (turn, position)


def test_what_reads_a_run_reads_a_long_one(long: Path) -> None:
    assert sum(1 for _ in read_records(long)) == 281
