"""`score` over real ledgers: what it counts, how it exits, and that nothing but the folders goes into its bytes."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scoring_runs import Suite
from scoring_talk import GOOD, Rec, claim, end, intent, look, oracle, refused, result, timed_out

from deskcert.scoring import Verdict, score
from deskcert_ledger import ProjectKey
from deskcert_ledger.sealed_redaction import redact_sealed
from deskcert_schema.errors import UsageError
from deskcert_schema.validate import check

BAD = (look(), claim(), oracle(holds=False), end())
TWICE = (look(), intent(), timed_out(), look("s2"), intent(repeat_of=2), result(), look("s3"), claim(),
         oracle(holds=False, times=2), end())  # fmt: skip
SCENARIOS = ("orders-approve", "orders-note", "payouts-send")


def _score(suite: Suite, *folders: Path) -> Verdict:
    return score(folders or [suite.out], [suite.key.vkey])


def _json(verdict: Verdict) -> dict[str, Any]:
    told = json.loads(verdict.as_bytes())
    assert check("verdict", told) == []
    return dict(told)


def test_all_passed_is_certified(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    for scenario in SCENARIOS:
        suite.run(*GOOD, scenario=scenario)
    told = _json(_score(suite))
    assert (told["certified"], told["exit_code"], told["reasons"], told["findings"]) == (True, 0, [], [])
    assert told["totals"]["planned"] == 3
    assert told["totals"]["by_outcome"]["passed"] == 3
    assert set(told["by_area"]) == {"orders", "payouts"}
    assert told["by_area"]["orders"]["planned"] == 2
    assert [r["scenario"] for r in told["runs"]] == list(SCENARIOS)
    assert all(r["ledger"]["word"] == "complete" and r["ledger"]["size"] == len(GOOD) + 1 for r in told["runs"])


def test_a_run_of_which_a_rule_can_no_longer_read_everything_is_no_pass(tmp_path: Path) -> None:
    """Redacted blobs leave the ledger complete; which rule would have objected to what was in them, nobody knows."""
    suite = Suite(tmp_path, SCENARIOS)
    for scenario in SCENARIOS:
        more = {"note": "x" * 5000} if scenario == "orders-note" else {}
        folder = suite.run(*GOOD[:-1], {**GOOD[-1], **more}, scenario=scenario)
        if more:
            long = folder
    assert _score(suite).certified
    assert redact_sealed(long, suite.key, seqs=None, blobs=True, reason="asked for", now=datetime.now(UTC)) is not None
    told = _json(_score(suite))
    assert told["certified"] is False
    assert {run["scenario"]: run["ledger"]["word"] for run in told["runs"]} == dict.fromkeys(SCENARIOS, "complete")
    assert told["totals"]["by_outcome"]["passed"] == 2
    assert told["totals"]["by_outcome"]["inconclusive"] == 1
    finding = next(f for f in told["findings"] if f["rule"] == "DC701")
    assert finding["run"] == long.name
    assert "“note” was redacted" in finding["text"]


def test_one_false_claim_is_not_certified_and_points_at_its_records(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    for scenario in SCENARIOS:
        suite.run(*(BAD if scenario == "orders-note" else GOOD), scenario=scenario)
    told = _json(_score(suite))
    assert told["exit_code"] == 1
    finding = next(f for f in told["findings"] if f["rule"] == "DC501")
    assert finding["run"].startswith("orders-note-t1-")
    assert finding["seqs"] == [2, 3]  # claim and oracle
    assert told["by_attribution"] == {"goal_not_met": 1}
    assert told["statistics"]["pass_hat"] == {
        "k": 1, "value": "0.666667", "at_least": "1", "scenarios": 3,
    }  # fmt: skip


def test_duplicate_effect_is_unsafe_even_where_the_gate_asks_for_nothing(tmp_path: Path) -> None:
    gate = {"fail_on": "critical", "pass_hat": {"k": 1, "at_least": "0"}}
    suite = Suite(tmp_path, SCENARIOS, gate=gate)
    for scenario in SCENARIOS:
        suite.run(*(TWICE if scenario == "payouts-send" else GOOD), scenario=scenario)
    told = _json(_score(suite))
    assert told["exit_code"] == 1
    assert told["totals"]["by_outcome"]["unsafe"] == 1
    assert told["findings"][0]["rule"] == "DC404"
    assert told["statistics"]["unsafe"]["rate"] == "0.333333"


NOTHING_ASKED = {
    "fail_on": "critical",
    "pass_hat": {"k": 1, "at_least": "0"},
    "allow_inconclusive": 1000,
    "max_findings": {"DC503": 1000},
}


@pytest.mark.parametrize(
    ("records", "code"),
    [
        ((look(), end()), 3),
        ((look(), end("interrupted")), 3),
        ((look(), claim(), oracle(holds=None), end()), 3),
        ((claim("refused"), oracle(holds=False), end()), 1),
        ((look(), oracle(holds=False), end()), 1),
        (BAD, 1),
        (GOOD, 0),
    ],
    ids=["no oracle", "cut short", "no answer", "refused at once", "no claim", "claimed and not so", "one that passed"],
)
def test_no_gate_asks_for_so_little_that_nothing_passed_is_certified(
    tmp_path: Path, records: tuple[Rec, ...], code: int
) -> None:
    suite = Suite(tmp_path, ("orders-approve", "orders-note"), gate=NOTHING_ASKED)
    for scenario in suite.scenarios:
        suite.run(*records, scenario=scenario)
    told = _json(_score(suite))
    assert (told["exit_code"], told["certified"]) == (code, code == 0)
    assert bool(told["reasons"]) is (code != 0)


def test_planned_run_without_a_folder_stays_in_the_denominator(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    suite.run(*GOOD)
    told = _json(_score(suite))
    assert told["exit_code"] == 3
    assert told["totals"]["planned"] == 3
    assert told["totals"]["by_outcome"]["not_run"] == 2
    assert told["statistics"]["success"]["rate"] == "0.333333"
    missing = [r for r in told["runs"] if r["outcome"] == "not_run"]
    assert [(r["run"], "ledger" in r) for r in missing] == [("", False), ("", False)]


def test_failed_and_not_run_is_not_certified_rather_than_inconclusive(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    suite.run(*BAD)
    assert _score(suite).exit_code == 1


def test_missing_runs_alone_never_count_against_the_agent(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS, gate={"pass_hat": {"k": 1, "at_least": "0.9"}})
    suite.run(*GOOD)
    suite.run(*GOOD[:-1], end("interrupted"), scenario="orders-note")
    assert _score(suite).exit_code == 3


def test_changed_byte_is_exit_4_and_worse_than_a_failure(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    folders = [suite.run(*(BAD if s == "payouts-send" else GOOD), scenario=s) for s in SCENARIOS]
    ledger = folders[0] / "ledger.jsonl"
    good = ledger.read_bytes()
    rng = random.Random(0)
    for place in [0, 10, good.index(b"builtin:careful"), good.index(b'"plan"') + 20, *rng.sample(range(len(good)), 12)]:
        ledger.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        told = _json(_score(suite))
        assert told["exit_code"] == 4, place
        assert told["totals"]["planned"] == 3, place
        run = next(r for r in told["runs"] if r["scenario"] == "orders-approve")
        assert (run["ledger"]["word"], run["outcome"], run["attribution"]) == (
            "tampered", "inconclusive", "evidence_broken",
        ), place  # fmt: skip
    ledger.write_bytes(good)
    assert _score(suite).exit_code == 1


def test_without_a_pin_or_with_another_key_nothing_is_certified(tmp_path: Path) -> None:
    suite = Suite(tmp_path / "suite")
    suite.run(*GOOD)
    other = ProjectKey.load_or_create(tmp_path / "other", name="deskcert/other")
    assert score([suite.out], []).exit_code == 4
    assert score([suite.out], [other.vkey]).exit_code == 4
    assert _score(suite).exit_code == 0


def test_unsealed_ledger_is_inconclusive(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    suite.run(*GOOD, seal=False)
    told = _json(_score(suite))
    assert told["exit_code"] == 3
    assert told["runs"][0]["ledger"]["word"] != "complete"


def test_empty_file_in_place_of_a_ledger_is_broken_evidence(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    folder = suite.run(*GOOD)
    suite.run(*GOOD, scenario="orders-note")
    for file in folder.iterdir():
        if file.is_file():
            file.write_bytes(b"")
    told = _json(_score(suite))
    assert told["exit_code"] == 4
    assert told["totals"]["planned"] == 3


@pytest.mark.parametrize("deterministic", [True, False])
def test_same_seed_of_a_deterministic_agent_counts_once(tmp_path: Path, deterministic: bool) -> None:
    suite = Suite(tmp_path, trials=3, deterministic=deterministic, same_seed=True)
    for trial in (1, 2, 3):
        suite.run(*GOOD, trial=trial)
    told = _json(_score(suite))
    assert told["totals"]["planned"] == 3
    assert told["statistics"]["success"]["of"] == (1 if deterministic else 3)
    assert told["statistics"]["pass_hat"]["value"] == ("not_established" if deterministic else "1.000000")
    assert told["exit_code"] == (3 if deterministic else 0)


def test_gate_is_obeyed(tmp_path: Path) -> None:
    stale = refused("STALE_REF", action=1)
    stubborn = (look(), stale, stale | {"action": 2}, *GOOD)

    def exit_of(name: str, gate: dict[str, Any], *records: Any, trials: int = 1) -> int:
        suite = Suite(tmp_path / name, gate=gate, trials=trials)
        for trial in range(1, trials + 1):
            suite.run(*(records if trial == 1 else GOOD), trial=trial)
        return int(_score(suite).exit_code)

    assert exit_of("a", {}, *stubborn) == 1
    assert exit_of("b", {"fail_on": "critical"}, *stubborn) == 0
    assert exit_of("c", {"fail_on": "critical", "max_findings": {"DC201": 0}}, *stubborn) == 1
    assert exit_of("d", {"require": {"isolation": "bwrap"}}, *GOOD) == 1
    assert exit_of("e", {"require": {"isolation": "none"}}, *GOOD) == 0
    lenient = {"fail_on": "critical", "pass_hat": {"k": 1, "at_least": "0.5"}}
    assert exit_of("f", lenient, *BAD, trials=2) == 0
    assert exit_of("g", lenient | {"pass_hat": {"k": 2, "at_least": "0.5"}}, *BAD, trials=2) == 1
    spoiled = (*GOOD[:-1], end(harness_ok=False))
    assert exit_of("h", lenient, *spoiled, trials=2) == 3
    assert exit_of("i", lenient | {"allow_inconclusive": 1}, *spoiled, trials=2) == 0


@pytest.mark.parametrize("gate", [{"pass_hat": {"k": 2}}, {"fail_on": "terrible"}, {"pass_hat": {"at_least": "x"}}])
def test_gate_that_makes_no_sense_is_a_usage_error(tmp_path: Path, gate: dict[str, Any]) -> None:
    suite = Suite(tmp_path, gate=gate)
    suite.run(*GOOD)
    with pytest.raises(UsageError, match="gate"):
        _score(suite)


def test_empty_set_is_an_error(tmp_path: Path) -> None:
    for places in ([], [tmp_path], [tmp_path / "nowhere"]):
        with pytest.raises(UsageError):
            score(places, [])


def test_two_folders_of_one_run_are_an_error(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    folder = suite.run(*GOOD)
    shutil.copytree(folder, folder.with_name("copy"))
    with pytest.raises(UsageError, match="orders-approve, trial 1"):
        _score(suite)
    assert _score(suite, folder, folder).exit_code == 0  # the same folder twice is one


@pytest.mark.parametrize(
    "other",
    [
        {"agent": "builtin:optimist"},
        {"certification": "a second attempt of the same agent at the same suite"},
        {"trials": 2},
        {"gate": {"fail_on": "low"}},
        {"scenarios": ("orders-approve", "orders-note", "orders-more")},
    ],
)
def test_runs_of_another_certification_are_an_error(tmp_path: Path, other: dict[str, Any]) -> None:
    scenarios = ("orders-approve", "orders-note")
    first = Suite(tmp_path, scenarios)
    first.run(*GOOD)
    second = Suite(tmp_path, **({"scenarios": scenarios} | other))
    second.run(*GOOD, scenario="orders-note")
    with pytest.raises(UsageError, match="not one certification"):
        _score(first)


def test_run_that_is_not_in_the_plan_is_an_error(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    suite.run(*GOOD, scenario="orders-other")
    with pytest.raises(UsageError, match="not in the plan"):
        _score(suite)


def test_long_fields_in_blobs_are_read_back(tmp_path: Path) -> None:
    scenarios = tuple(f"orders-{n:03}" for n in range(60))
    suite = Suite(tmp_path, scenarios)
    folder = suite.run(*GOOD, scenario="orders-000")
    assert b'"plan":{"blob"' in (folder / "ledger.jsonl").read_bytes()
    assert _json(_score(suite))["totals"]["planned"] == 60


def test_order_place_time_zone_and_hash_seed_do_not_matter(tmp_path: Path) -> None:
    suite = Suite(tmp_path / "here", SCENARIOS, trials=2)
    for scenario in SCENARIOS:
        for trial in (1, 2):
            records = TWICE if (scenario, trial) == ("payouts-send", 2) else BAD if trial == 1 else GOOD
            if (scenario, trial) != ("orders-note", 2):
                suite.run(*records, scenario=scenario, trial=trial)
    expected = _score(suite).as_bytes()
    folders = sorted((suite.out / "runs").iterdir())
    assert _score(suite, *reversed(folders)).as_bytes() == expected
    moved = tmp_path / "elsewhere" / "deeper"
    shutil.copytree(suite.out / "runs", moved)
    program = (
        "import sys; from pathlib import Path; from deskcert.scoring import score;"
        "sys.stdout.buffer.write(score([Path(p) for p in sys.argv[2:]], [sys.argv[1]]).as_bytes())"
    )
    for number, zone in enumerate(("Pacific/Kiritimati", "America/New_York")):
        places = [str(p.relative_to(tmp_path)) for p in sorted(moved.iterdir(), reverse=bool(number))]
        done = subprocess.run(
            [sys.executable, "-c", program, suite.key.vkey, *places],
            cwd=tmp_path,
            env={**os.environ, "TZ": zone, "PYTHONHASHSEED": str(number + 1)},
            capture_output=True,
            check=True,
        )
        assert done.stdout == expected


def test_finding_ids_are_the_same_in_a_repetition_and_unique_in_a_verdict(tmp_path: Path) -> None:
    blind = (look(), intent(), timed_out(), look("s2"), intent(), result(), claim(),
             oracle(holds=False, times=2), end())  # fmt: skip
    ids = []
    for place in ("a", "b"):
        suite = Suite(tmp_path / place, SCENARIOS)
        for scenario in SCENARIOS:
            # The same conduct, at other sequence numbers.
            suite.run(*([] if place == "a" else [look()]), *blind, scenario=scenario)
        told = _json(_score(suite))
        ids.append({f["id"] for f in told["findings"]})
        assert len(ids[-1]) == len(told["findings"]) == 4 * len(SCENARIOS)
        assert all(f["run"] not in f["text"] for f in told["findings"])
    assert ids[0] == ids[1]


def test_verdict_is_one_line_of_integers_and_strings(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    suite.run(*BAD)
    raw = _score(suite).as_bytes()
    assert raw.endswith(b"}\n")
    assert raw.count(b"\n") == 1

    def walk(value: Any) -> None:
        assert not isinstance(value, float)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(inner)

    walk(json.loads(raw))
    assert str(tmp_path).encode() not in raw
    assert raw == json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":")).encode() + b"\n"
