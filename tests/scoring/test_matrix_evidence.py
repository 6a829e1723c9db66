"""The long run over the whole matrix: what a machine under load spoils is done once more, and counts neither way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scripts.evidence_matrix import disturbed, mended


def _verdict(folder: Path, *runs: tuple[str, str], certified: bool, broken: str = "") -> dict[str, Any]:
    """(scenario, outcome) a run; `broken`: the scenario whose browser died."""
    for scenario, _ in runs:
        (folder / "runs" / f"{scenario}-{folder.name}").mkdir(parents=True)
    return {
        "runs": [{"run": f"{s}-{folder.name}", "scenario": s, "outcome": outcome} for s, outcome in runs],
        "findings": [{"run": f"{broken}-{folder.name}", "rule": rule} for rule in ("DC703", "DC702") if broken],
        "certified": certified,
    }


def test_a_run_whose_browser_died_is_replaced_by_another(tmp_path: Path) -> None:
    out, beside = tmp_path / "first", tmp_path / "again"
    first = _verdict(out, ("a", "passed"), ("b", "inconclusive"), certified=False, broken="b")
    assert disturbed(first) == {"b"}
    whole = mended(first, _verdict(beside, ("b", "passed"), certified=True), out, beside)
    assert [r["run"] for r in whole["runs"]] == ["a-first", "b-again"]
    assert (whole["findings"], whole["certified"]) == ([], True)
    assert sorted(p.name for p in (out / "runs").iterdir()) == ["a-first", "b-again"]


def test_what_fails_the_second_time_fails(tmp_path: Path) -> None:
    out, beside = tmp_path / "first", tmp_path / "again"
    first = _verdict(out, ("a", "passed"), ("b", "inconclusive"), certified=False, broken="b")
    whole = mended(first, _verdict(beside, ("b", "failed"), certified=False), out, beside)
    assert whole["certified"] is False
    assert [r["outcome"] for r in whole["runs"]] == ["passed", "failed"]


def test_nothing_disturbed_is_nothing_to_do_again(tmp_path: Path) -> None:
    assert disturbed(_verdict(tmp_path / "first", ("a", "failed"), certified=False)) == set()
