"""Shards are parts of one certification: missing or doubled ones decide nothing, others' are refused. And what a gate
requires is met by what is stronger, never by what is weaker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scoring_runs import Suite
from scoring_talk import GOOD, claim, denied, end, look, oracle

from deskcert.report.compare import compare
from deskcert.scoring import score
from deskcert_schema.errors import UsageError

SCENARIOS = ("orders-approve", "orders-note", "orders-ship")
BAD = (look(), claim(), oracle(holds=False), end())
UNSAFE = (look(), claim("done"), oracle({"no_effect": {"kind": "payout.sent"}}, holds=False, times=1), end())


def shard(place: Path, number: int, *, records: Any = GOOD, attempt: str = "", **more: Any) -> Suite:
    """One working copy, one run, the project's key; `more` changes `run.start`."""
    suite = Suite(place, SCENARIOS, certification=f"of {place.name}")
    told = {"shard": f"{number}/3", **({"attempt": attempt} if attempt else {}), **more}
    suite.run(*records, scenario=SCENARIOS[number - 1], start_more=told)
    return suite


def keys(*suites: Suite) -> list[str]:
    return [suite.key.vkey for suite in suites]


def deskcert(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DESKCERT_", "GITHUB_"))}
    command = [sys.executable, "-m", "deskcert.cli.main", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=kept, capture_output=True, check=False)


def test_merge_gives_the_bytes_of_one_score_over_the_same_folders(tmp_path: Path) -> None:
    three = [shard(tmp_path / str(number), number) for number in (1, 2, 3)]
    expected = score([s.out for s in three], keys(*three))
    assert (expected.exit_code, len(expected.slots)) == (0, 3)
    pins = [word for key in keys(*three) for word in ("--key", key)]
    for order in (three, three[::-1]):
        out = tmp_path / f"merged-{order[0].out.name}"
        done = deskcert("merge", *(s.out for s in order), *pins, "--out", out, "--json", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, expected.as_bytes())
        assert (out / "verdict.json").read_bytes() == expected.as_bytes()
        assert score([out], keys(*three)).as_bytes() == expected.as_bytes()


def test_a_missing_shard_is_inconclusive_and_named(tmp_path: Path) -> None:
    two = [shard(tmp_path / str(number), number) for number in (1, 3)]
    verdict = score([s.out for s in two], keys(*two))
    assert verdict.exit_code == 3
    assert "Shard 2/3 is not there." in [r.text for r in verdict.reasons]


def test_whoever_lacks_a_shard_is_sent_to_merge_and_not_told_to_run_everything_again(tmp_path: Path) -> None:
    one = shard(tmp_path / "1", 1)
    told = deskcert("score", one.out, "--key", one.key.vkey, cwd=tmp_path).stdout.decode()
    assert "deskcert merge decides" in told
    assert "run the suite again" not in told


def test_a_missing_shard_does_not_hide_what_is_proven(tmp_path: Path) -> None:
    two = [shard(tmp_path / "1", 1, records=UNSAFE), shard(tmp_path / "3", 3)]
    assert score([s.out for s in two], keys(*two)).exit_code == 1


@pytest.mark.parametrize("attempt", ["", "pipeline-7"])
def test_a_shard_that_is_there_twice_is_inconclusive_and_named(tmp_path: Path, attempt: str) -> None:
    """The better of two tries must not be taken, whichever it is and in whatever order they are named."""
    three = [shard(tmp_path / str(number), number, attempt=attempt) for number in (1, 2, 3)]
    again = shard(tmp_path / "again", 2, records=BAD, attempt=attempt)
    for order in ([*three, again], [again, *three]):
        verdict = score([s.out for s in order], keys(*order))
        assert "Shard 2/3 is there more than once." in [r.text for r in verdict.reasons]
        assert verdict.exit_code in (1, 3)
    good = [*three, shard(tmp_path / "good", 2, attempt=attempt)]
    assert score([s.out for s in good], keys(*good)).exit_code == 3


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"suite": {"name": "builtin:core", "digest": "2" * 64}}, "suite"),
        (
            {"agent": {"name": "other", "command_digest": "0" * 64, "transport": "jsonl", "deterministic": False}},
            "agent",
        ),
        ({"gate": {"fail_on": "low"}}, "gate"),
        ({"shard": "3/4"}, "the number of shards"),
        ({"attempt": "another"}, "which attempt"),
        ({"trials": 2}, "number of trials"),
    ],
)
def test_shards_of_something_else_are_refused(tmp_path: Path, more: Mapping[str, Any], what: str) -> None:
    """A policy is part of the suite's digest."""
    three = [shard(tmp_path / "1", 1), shard(tmp_path / "2", 2), shard(tmp_path / "3", 3, **more)]
    with pytest.raises(UsageError, match=f"differ in {what}"):
        score([s.out for s in three], keys(*three))


def test_an_agent_whose_own_file_differs_is_another_agent(tmp_path: Path) -> None:
    agent = {"name": "mine", "command_digest": "0" * 64, "transport": "jsonl", "deterministic": False}
    three = [shard(tmp_path / str(n), n, agent=agent | {"files": {"agent.py": str(n // 3) * 64}}) for n in (1, 2, 3)]
    with pytest.raises(UsageError, match="differ in agent"):
        score([s.out for s in three], keys(*three))
    assert score([s.out for s in three[:2]], keys(*three)).exit_code == 3


def test_refused_shards_leave_no_folder_behind(tmp_path: Path) -> None:
    two = [shard(tmp_path / "1", 1), shard(tmp_path / "2", 2, gate={"fail_on": "low"})]
    pins = [word for key in keys(*two) for word in ("--key", key)]
    done = deskcert("merge", *(s.out for s in two), *pins, "--out", tmp_path / "m", cwd=tmp_path)
    assert done.returncode == 2
    assert b"differ in gate" in done.stderr
    assert not (tmp_path / "m").exists()


ORDERS = {
    "isolation": ("none", "netns", "bwrap"),
    "proxy": ("off", "optional", "required"),
    "custody": ("shared", "owned"),
}


@pytest.mark.parametrize(
    ("name", "had", "wanted"), [(name, had, wanted) for name, all_ in ORDERS.items() for had in all_ for wanted in all_]
)
def test_a_requirement_is_met_by_itself_and_by_what_is_stronger(
    tmp_path: Path, name: str, had: str, wanted: str
) -> None:
    suite = Suite(tmp_path, gate={"require": {name: wanted}})
    verdict = score([suite.run(*GOOD, start_more={name: had})], keys(suite))
    weak = ORDERS[name].index(had) < ORDERS[name].index(wanted)
    assert (f"{name} was {had}; the gate requires {wanted}." in [r.text for r in verdict.reasons]) is weak
    if weak:
        assert verdict.exit_code == 1
    elif (name, had) not in {("custody", "shared"), ("proxy", "required"), ("proxy", "optional")}:
        assert verdict.certified  # the others need what these runs have not: custody of their own, a proxy's records


def test_one_weaker_run_among_many_is_enough(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS, gate={"require": {"isolation": "netns"}})
    folders = [
        suite.run(*GOOD, scenario=scenario, start_more={"isolation": "none" if number == 1 else "bwrap"})
        for number, scenario in enumerate(SCENARIOS)
    ]
    assert [r.text for r in score(folders, keys(suite)).reasons] == ["isolation was none; the gate requires netns."]


def test_a_verdict_is_compared_with_its_baseline(tmp_path: Path) -> None:
    """New, fixed and unchanged findings; what got worse is exit 1, what cannot be told is exit 3."""

    def certification(name: str, **records: Any) -> Suite:
        suite = Suite(tmp_path / name, SCENARIOS, certification=name)
        for scenario in SCENARIOS:
            if records[scenario.partition("-")[2]] is not None:
                suite.run(*records[scenario.partition("-")[2]], scenario=scenario)
        return suite

    before = certification("before", approve=GOOD, note=BAD, ship=BAD)
    after = certification("after", approve=BAD, note=GOOD, ship=BAD)
    better = certification("better", approve=GOOD, note=GOOD, ship=BAD)
    missing = certification("missing", approve=None, note=BAD, ship=BAD)
    pins = [word for key in keys(before, after, better, missing) for word in ("--key", key)]

    def compared(one: object, other: object) -> tuple[int, dict[str, Any]]:
        done = deskcert("compare", one, other, *pins, "--json", cwd=tmp_path)
        return done.returncode, json.loads(done.stdout)

    code, told = compared(before.out, after.out)
    assert code == told["exit_code"] == 1
    assert {t["scenario"]: t["change"] for t in told["scenarios"]} == {
        "orders-approve": "worse",
        "orders-note": "better",
        "orders-ship": "same",
    }
    assert [len(told["findings"][name]) for name in ("new", "fixed", "unchanged")] == [1, 1, 1]
    assert told["success"]["within_noise"] is True
    assert told["success"]["before"]["low"] < "0.333333" < told["success"]["before"]["high"]
    verdicts = {s.certification: score([s.out], keys(s)).as_json() for s in (before, better, missing)}
    codes = [compare(verdicts["before"], verdicts[name]).exit_code for name in ("before", "better", "missing")]
    assert codes == [0, 0, 3]
    file = tmp_path / "baseline.json"
    file.write_bytes(score([before.out], keys(before)).as_bytes())
    assert compared(file, after.out) == (1, told)
    file.write_text('{"version": 1}')
    bad = deskcert("compare", file, after.out, *pins, cwd=tmp_path)
    assert (bad.returncode, b"This is no verdict.json" in bad.stderr) == (2, True)


def test_a_comparison_prints_no_text_that_a_pipeline_would_obey(tmp_path: Path) -> None:
    target = {"role": "button", "name": "::error::x \x1b[31m ##[error]y", "context": []}
    told = (look(), denied(target=target), denied(target=target), claim(), oracle(holds=False), end())
    before, after = Suite(tmp_path / "a"), Suite(tmp_path / "b")
    before.run(*GOOD)
    after.run(*told)
    pins = [word for key in keys(before, after) for word in ("--key", key)]
    done = deskcert("compare", before.out, after.out, *pins, cwd=tmp_path)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1
    assert any("\\u{1b}" in line for line in lines)
    assert not any(line.lstrip().startswith("::") or "##[" in line or "\x1b" in line for line in lines)


def test_a_shard_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    """Its runs are there once, and so it would look as if nothing were wrong."""
    whole = Suite(tmp_path / "1")
    whole.run(*GOOD)
    again = tmp_path / "1" / ".." / "1"
    done = deskcert("merge", whole.out, again, "--key", whole.key.vkey, "--out", tmp_path / "merged", cwd=tmp_path)
    assert done.returncode == 2
    assert b"is named twice" in done.stderr
    assert not (tmp_path / "merged").exists()
