"""Runs driven again: dispositions, denials and oracle answers as recorded; and what a back-test says of another policy,
against a live run under it.

- `live`: `careful` on every scenario of `builtin:full` with ten seeds, each run driven again on a fresh application. A
  difference that its output does not explain is a failure; those with an explanation are counted.
- `policy_sample`: a policy that denies one more name, back-tested and driven live; the answers must be the same up to
  and with the first action that is decided otherwise.
- `policy_thousand`: a back-test over 1,000 run folders (copies of recorded ones), its time in `max_milliseconds`.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

from deskcert.audit.story import Group, read_whole, story
from deskcert.certify.suite import load_suites
from deskcert.replay.backtest import Answer, Reconsidered, back_test
from deskcert.replay.decisions import expanded
from deskcert.replay.live import drive
from deskcert_ledger import openings
from scripts.evidence_parts import Outcome, Part

__all__ = ["PARTS"]

SEEDS = 10
_ACTING = frozenset({Group.ACTION, Group.DENIAL, Group.REFUSAL})


@cache
def scenarios() -> tuple[str, ...]:
    suite = load_suites(["builtin:full"], base=Path.cwd(), policy=None)
    return tuple(sorted(scenario.id for scenario in suite.scenarios))


def recorded(names: Sequence[str], seed: int, out: Path) -> list[Path]:
    """Runs of `careful`, in the order of their names. Raises `RuntimeError` where there are none."""
    deskcert = Path(sys.executable).with_name("deskcert")
    only = [word for name in names for word in ("--only", name)]
    command = [str(deskcert), "ci", "--agent", "builtin:careful", "--suite", "builtin:full", *only]
    command += ["--seed", str(seed), "--workers", "2", "--out", str(out)]
    done = subprocess.run(command, cwd=out.parent, capture_output=True, text=True, check=False)
    if not (out / "runs").is_dir():
        raise RuntimeError(f"no run of {', '.join(names)}: {done.stderr[-300:]}")
    return sorted((out / "runs").iterdir())


def _live(seed: str, units: int) -> Outcome:
    base, _, task = seed.split("/")
    outcome = Outcome(0)
    first = int(task) * units
    chosen = [((first + n) % len(scenarios()), (first + n) // len(scenarios())) for n in range(units)]
    with tempfile.TemporaryDirectory(prefix="deskcert-live-") as temporary:
        root = Path(temporary)
        for trial in sorted({t for _, t in chosen}):
            names = [scenarios()[n] for n, t in chosen if t == trial]
            for run in recorded(names, int(base) % 100_000 + trial, root / f"s{trial}"):
                _again(run, root / "again" / run.name, outcome)
    return outcome


def _again(run: Path, out: Path, outcome: Outcome) -> None:
    out.mkdir(parents=True)
    with redirect_stdout(sys.stderr):
        done = drive(run, out)
    outcome.done += 1
    _count(outcome, "as_recorded" if not done.differences else "otherwise", 1)
    for d in done.differences:
        _count(outcome, "differences_explained" if d.why else "differences_unexplained", 1)
        if not d.why:
            outcome.failures.append(
                f"{run.name}, record {d.seq}: {d.what}: {d.recorded} → {d.now}, and nothing says why"
            )


def _policy_sample(seed: str, units: int) -> Outcome:
    base, _, task = seed.split("/")
    choose = random.Random(seed)
    outcome = Outcome(0)
    with tempfile.TemporaryDirectory(prefix="deskcert-policy-") as temporary:
        root = Path(temporary)
        names = choose.sample(scenarios(), units)
        for run in recorded(names, int(base) % 100_000 + int(task), root / "recorded"):
            _under_another(run, root / "again" / run.name, choose, outcome)
    return outcome


def _under_another(run: Path, out: Path, choose: random.Random, outcome: Outcome) -> None:
    """One more name is denied: that of an action of this run, or of none."""
    out.mkdir(parents=True)
    start = next(iter(read_whole(run))).data
    acted = [r.data["target"].get("name") for r in read_whole(run) if r.kind == "action.intent" and "target" in r.data]
    named = sorted({name for name in acted if isinstance(name, str) and name})
    denied = choose.choice([*named, "Nothing is called this"])
    content: dict[str, Any] = start["policy"]["content"]
    added = {rule["id"] for rule in start["scenario"].get("policy_added", {}).get("deny", [])}
    kept = [rule for rule in content.get("deny", []) if rule["id"] not in added]
    new = {**content, "deny": [*kept, {"id": "one-more", "name": denied}]}
    path = out / "policy.yaml"
    path.write_text(json.dumps(new), encoding="utf-8")
    told = sorted(back_test(expanded(run), new, openings(run)), key=lambda r: r.seq)
    with redirect_stdout(sys.stderr):
        again = drive(run, out, policy=path).again
    outcome.done += 1
    _compare(run, again, told, outcome)


def _compare(run: Path, again: Path, told: Sequence[Reconsidered], outcome: Outcome) -> None:
    numbers = {r.seq: r.data["action"] for r in read_whole(run) if isinstance(r.data.get("action"), int)}
    live: Mapping[int, str] = {
        s.action: _answer(s.group, s.rule) for s in story(read_whole(again)) if s.group in _ACTING
    }
    for one in told:
        if one.after is Answer.INDETERMINATE:
            _count(outcome, "indeterminate", 1)
            continue
        now = live.get(numbers[one.seq], "")
        _count(outcome, "compared", 1)
        if now != one.after.value:
            outcome.failures.append(
                f"{run.name}, record {one.seq}: the back-test says {one.after}, the run {now or 'nothing'}"
            )
        if one.changed:
            _count(outcome, "changed", 1)
            return


def _answer(group: Group, rule: str) -> str:
    return "deny" if group is Group.DENIAL and rule != "retry-gate" else "allow"


def _policy_thousand(seed: str, units: int) -> Outcome:
    from deskcert.replay.many import backtest_all

    base = int(seed.split("/", maxsplit=1)[0]) % 100_000
    outcome = Outcome(0)
    with tempfile.TemporaryDirectory(prefix="deskcert-thousand-") as temporary:
        root = Path(temporary)
        runs = recorded(scenarios(), base, root / "recorded")
        copies = []
        for number in range(units):
            copies.append(root / "runs" / f"r{number}")
            shutil.copytree(runs[number % len(runs)], copies[-1])
        new = {"version": 1, "deny": [{"id": "no-approve", "name": {"glob": "*approve*"}}]}
        began = time.monotonic()
        for done in backtest_all(copies, new):
            outcome.done += not done.trouble
            outcome.failures += [f"{done.folder.name}: {done.trouble}"] if done.trouble else []
            _count(outcome, "actions", len(done.actions))
            _count(outcome, "changed", sum(action.changed for action in done.actions))
        _count(outcome, "max_milliseconds", int((time.monotonic() - began) * 1000))
        _count(outcome, "distinct_runs", len(runs))
    return outcome


def _count(outcome: Outcome, name: str, number: int) -> None:
    outcome.counts[name] = outcome.counts.get(name, 0) + number


PARTS: Sequence[Part] = [
    Part("policy_thousand", goal=1_000, task=1_000, work=_policy_thousand, workers=1),
    Part("policy_sample", goal=50, task=10, work=_policy_sample, workers=1),
    Part("live", goal=len(scenarios()) * SEEDS, task=12, work=_live, workers=2),
]
