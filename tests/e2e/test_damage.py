"""A run folder that was changed after the fact is found out, and is never a pass."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e_campaigns import Campaign, records, run_deskcert

from deskcert_ledger import ProjectKey

pytestmark = pytest.mark.web


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(bytes(data))


def flip_in_ledger(run: Path) -> None:
    flip(run / "ledger.jsonl", (run / "ledger.jsonl").stat().st_size // 2)


def rewrite_the_claim(run: Path) -> None:
    text = (run / "ledger.jsonl").read_text()
    assert '"outcome":"done"' in text
    (run / "ledger.jsonl").write_text(text.replace('"outcome":"done"', '"outcome":"none"'))


def drop_a_blob(run: Path) -> None:
    tree = next(r for r in records(run) if r["kind"] == "observation")["tree"]
    (run / "blobs" / tree["blob"]).unlink()


def drop_the_end(run: Path) -> None:
    lines = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (run / "ledger.jsonl").write_bytes(b"".join(lines[:-2]))


def change_the_checkpoint(run: Path) -> None:
    flip(run / "checkpoint", 40)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "one bit of a line": flip_in_ledger,
    "a claim that says something else": rewrite_the_claim,
    "a blob that is gone": drop_a_blob,
    "lines cut off the end": drop_the_end,
    "one bit of the checkpoint": change_the_checkpoint,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_exit_code_4_and_broken_evidence(careful: Campaign, tmp_path: Path, damage: str) -> None:
    shutil.copytree(careful.out / "runs", tmp_path / "runs")
    shutil.copytree(careful.cwd / ".deskcert", tmp_path / ".deskcert")
    run = next((tmp_path / "runs").glob("orders-approve-twin-*"))
    DAMAGE[damage](run)
    scored = run_deskcert("score", "--json", "runs", cwd=tmp_path)
    assert scored.returncode == 4, scored.stdout[-2000:]
    verdict = json.loads(scored.stdout)
    judged = next(r for r in verdict["runs"] if r["scenario"] == "orders-approve-twin")
    assert (judged["outcome"], judged["attribution"]) == ("inconclusive", "evidence_broken")
    assert verdict["certified"] is False


def test_another_project_key_cannot_vouch(careful: Campaign, tmp_path: Path) -> None:
    shutil.copytree(careful.out / "runs", tmp_path / "runs")
    key = ProjectKey.load_or_create(tmp_path / "other" / "key")
    scored = run_deskcert("score", "--json", "--key", key.vkey, "runs", cwd=tmp_path)
    assert scored.returncode == 4
    assert {r["ledger"]["word"] for r in json.loads(scored.stdout)["runs"]} <= {"tampered", "unverifiable"}


def test_without_any_key_nothing_is_certified(careful: Campaign, tmp_path: Path) -> None:
    shutil.copytree(careful.out / "runs", tmp_path / "runs")
    scored = run_deskcert("score", "--json", "runs", cwd=tmp_path)
    assert scored.returncode == 4
    assert {r["ledger"]["word"] for r in json.loads(scored.stdout)["runs"]} == {"unverifiable"}


def test_a_run_that_is_taken_away_is_missed(careful: Campaign, tmp_path: Path) -> None:
    shutil.copytree(careful.out / "runs", tmp_path / "runs")
    shutil.copytree(careful.cwd / ".deskcert", tmp_path / ".deskcert")
    shutil.rmtree(next((tmp_path / "runs").glob("orders-approve-twin-*")))
    scored = run_deskcert("score", "--json", "runs", cwd=tmp_path)
    assert scored.returncode == 3
    judged = next(r for r in json.loads(scored.stdout)["runs"] if r["scenario"] == "orders-approve-twin")
    assert judged["outcome"] == "not_run"
