"""Each file of a run folder in turn is removed, emptied, cut, replaced: every command says what can no longer be shown,
and no run becomes better for it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from e2e_campaigns import Campaign, records

from deskcert.cli.main import main

pytestmark = pytest.mark.web

KEPT_FOR_READERS = ("agent.stderr",)
"""No evidence: nobody reads it but people."""
GONE_IN_WORDS = "no longer shown"
FAULT = "this is a fault in deskcert"


class Said(NamedTuple):
    code: int
    out: str
    err: str


type Say = Callable[..., Said]


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def fill(path: Path) -> None:
    path.write_bytes(b'\x00\xff{"seq":' * 64)


def make_a_folder(path: Path) -> None:
    remove(path)
    path.mkdir()


def link_to_endless_zeros(path: Path) -> None:
    remove(path)
    path.symlink_to("/dev/zero")


DAMAGE = (remove, empty, cut, fill, make_a_folder, link_to_endless_zeros)
FILES = (
    "agent.stderr",
    "blobs",
    "checkpoint",
    "checkpoints",
    "disclosures.jsonl",
    "ledger.hashes",
    "ledger.jsonl",
    "run.intoto.jsonl",
    "run.sigstore.json",
    "run.sshsig",
    "a blob",
)


@pytest.fixture
def folder(careful: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(careful.cwd / ".deskcert", tmp_path / ".deskcert")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def the_run(careful: Campaign, folder: Path) -> Path:
    whole = next((careful.out / "runs").glob("orders-approve-twin-*"))
    shutil.rmtree(folder / "runs", ignore_errors=True)
    shutil.copytree(whole, folder / "runs" / whole.name)
    return Path("runs") / whole.name


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Say:
    def said(*words: object) -> Said:
        capfd.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        told = capfd.readouterr()
        assert FAULT not in told.err, told.err[-1500:]
        assert isinstance(left.value.code, int)
        return Said(left.value.code, *told)

    return said


def test_every_file_of_a_run_is_tried_here(careful: Campaign) -> None:
    run = next((careful.out / "runs").glob("orders-approve-twin-*"))
    assert {path.name for path in run.iterdir()} == set(FILES) - {"a blob"}


@pytest.mark.parametrize("name", FILES)
def test_what_is_gone_is_said_and_makes_no_run_better(careful: Campaign, folder: Path, say: Say, name: str) -> None:
    for damage in DAMAGE:
        run = the_run(careful, folder)
        intent = next(r["seq"] for r in records(run) if r["kind"] == "action.intent")
        path = next((run / "blobs").iterdir()) if name == "a blob" else run / name
        if name == "blobs" and damage not in (remove, make_a_folder):
            continue
        damage(path)

        verified = say("ledger", "verify", run)
        scored = say("score", "--json", "runs")
        if scored.out:
            outcomes = [r["outcome"] for r in json.loads(scored.out)["runs"] if r["outcome"] != "not_run"]
            assert outcomes in (["passed"], ["inconclusive"], []), f"{damage.__name__}: {outcomes}"
            assert (outcomes == ["passed"]) is (verified.code == 0), f"{damage.__name__}: {outcomes}, {verified}"
        else:
            assert scored.err, f"{damage.__name__}: {scored}"
            assert scored.code in {2, 3, 4}, f"{damage.__name__}: {scored}"
        if damage is remove and name not in KEPT_FOR_READERS:
            words = (GONE_IN_WORDS in verified.out, "missing" in verified.out, "not a ledger" in verified.err)
            assert any(words), verified

        for command in (
            ("ledger", "timeline", run),
            ("ledger", "show", run, intent),
            ("ledger", "stats", run),
            ("ledger", "diff", run, run),
            ("case", run, intent, "-o", "c.zip"),
        ):
            shown = say(*command)
            if verified.code:
                assert "ledger verify" in shown.err or shown.code, f"{damage.__name__}: {command[:2]} is silent"
        for command in (
            ("ledger", "query", run, "words"),
            ("report", run, "-o", "r.html"),
            ("replay", run),
            ("ledger", "certificate", "verify", run / "run.intoto.jsonl"),
            ("ledger", "prove", run, intent),
            ("ledger", "export", "--to", "pack", "--out", "p.zip", run),
            ("ledger", "export", "--to", "ocsf", "--out", "o.jsonl", run),
        ):
            say(*command)


def test_a_case_says_which_blob_it_could_not_take(careful: Campaign, folder: Path, say: Say) -> None:
    run = the_run(careful, folder)
    seen = next(r for r in records(run) if r["kind"] == "observation")
    (run / "blobs" / seen["tree"]["blob"]).unlink()
    made = say("case", run, seen["seq"], "-o", "c.zip")
    assert f"blob {seen['tree']['blob'][:12]}… of record {seen['seq']} is not in it" in made.err
    assert "cannot be shown from it" in say("case", "--check", "c.zip").out


def test_the_runs_beside_one_without_a_ledger_are_scored(careful: Campaign, folder: Path, say: Say) -> None:
    run = the_run(careful, folder)
    other = next((careful.out / "runs").glob("orders-rerender-*"))
    shutil.copytree(other, folder / "runs" / other.name)
    make_a_folder(run / "ledger.jsonl")
    scored = say("score", "--json", "runs")
    words = {r["run"]: r["outcome"] for r in json.loads(scored.out)["runs"] if r["outcome"] != "not_run"}
    assert words[other.name] == "passed"
    assert words.get(run.name, "inconclusive") == "inconclusive"
    assert scored.code != 0
