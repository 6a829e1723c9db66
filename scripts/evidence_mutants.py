"""Broken on purpose: every line of every scoring rule, and every oracle of every scenario of `builtin:full`.

- rules: each mutant of a rule has to come out otherwise on a conversation that the tests keep for it. One that does not
  is explained in `scripts/mutants_explained.py`, or is a failure: a gap in the tests.
- oracles: `careful` works on a scenario, and then each question about it is asked wrongly: the answer has to change, so
  that `careful` would fail by it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from deskcert.certify.oracle import answer, read_effects
from deskcert.certify.questions import Ground
from deskcert.scoring import RULES, Rule
from deskcert.scoring.facts import RunFacts
from scripts.evidence_parts import ROOT, Outcome, Part
from scripts.mutants_explained import explained
from scripts.mutation import Mutant, mutants

__all__ = ["FILES", "PARTS", "broken_items", "survivors", "unbroken", "unexplained"]

_RULES = ROOT / "deskcert" / "scoring" / "rules"
FILES = sorted(path.name for path in _RULES.glob("dc*.py"))

type Trial = tuple[tuple[Any, ...], Mapping[str, Any], str]
"""Records, scenario, and what verifying the ledger said."""


@cache
def _tables() -> tuple[ModuleType, ModuleType]:
    """The conversations that the tests keep: the plain ones, and the fine points."""
    sys.path.insert(0, str(ROOT / "tests" / "scoring"))
    import test_each_rule_speaks_and_stays_silent as plain
    import test_fine_points_of_each_rule as fine

    return plain, fine


@cache
def _trials(rule: str) -> tuple[Trial, ...]:
    """Its own conversations first, then those of all other rules: about them, too, it has nothing else to say."""
    plain, fine = _tables()
    exact = plain.test_finding_names_exactly_the_records_that_prove_it.pytestmark[0].args[1]
    told = [(of, records, scenario) for of, _, records, scenario, _ in fine.FINE]
    told += [(of, records, scenario) for of, _, _, records, scenario in plain.CASES]
    told += [(of, records, scenario) for of, records, scenario, _ in exact]
    told.sort(key=lambda t: t[0] != rule)
    return (
        *((records, scenario, "complete") for _, records, scenario in told),
        (plain.GOOD_REFUSAL, plain.REFUSAL, "complete"),
        *((plain.GOOD, {}, word) for word in ("complete", *fine.WORDS)),
    )


def _talk(records: tuple[Any, ...], scenario: Mapping[str, Any]) -> Sequence[Any]:
    key = (id(records), id(scenario))
    if key not in _TALKS:
        _TALKS[key] = (list(_tables()[0].talk(*records, **scenario)), records, scenario)
    return _TALKS[key][0]


_TALKS: dict[tuple[int, int], tuple[Sequence[Any], object, object]] = {}
"""What is named by where it lies is kept, so that nothing else comes to lie there."""


def _heard(rule: type[Rule], trial: Trial) -> object:
    """What a rule says on its own."""
    records, scenario, word = trial
    machine, talk = rule(), _talk(records, scenario)
    machine.start(RunFacts.read(talk[0], word=word))
    for record in talk:
        machine.feed(record)
    return [(f.key, f.seqs, f.text) for f in machine.findings()]


def survivors(file: str) -> tuple[int, list[Mutant]]:
    """How many mutants the rule in `file` has, and those that no conversation tells from it."""
    id_ = file[:5].upper()
    rule = next(r for r in RULES if r.about.id == id_)
    trials = _trials(id_)
    right = [_heard(rule, t) for t in trials]
    alive, number = [], 0
    for number, mutant in enumerate(mutants((_RULES / file).read_text("utf-8")), start=1):  # noqa: B007
        if not _told_apart(mutant, rule.__name__, trials, right):
            alive.append(mutant)
    return number, alive


def _told_apart(mutant: Mutant, name: str, trials: Sequence[Trial], right: Sequence[object]) -> bool:
    space: dict[str, Any] = {"__name__": "mutant"}
    try:
        exec(compile(mutant.source, "mutant", "exec"), space)
        if any(_heard(space[name], t) != r for t, r in zip(trials, right, strict=True)):
            return True
        return "len(self." in mutant.what and bool(_tables()[1].remembers_too_much(space[name]()))
    except Exception:  # it falls over: that is seen, too
        return True


def unexplained(file: str) -> tuple[int, int, list[str]]:
    """Mutants of a rule, how many live for a reason, and a line for each that lives without one."""
    number, alive = survivors(file)
    gaps = [f"{file[:5]} {m.what}" for m in alive if explained(m.what) is None]
    return number, len(alive) - len(gaps), gaps


def broken_items(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The question asked wrongly, in each way that matters."""
    if "effect" in item:
        times = int(item.get("times", 1))
        yield {**item, "times": times + 1}
        yield {"no_effect": item["effect"]} if times else {**item, "times": times + 1}
    elif "no_effect" in item:
        yield {"effect": item["no_effect"], "times": 1}
    elif "times" in item:
        yield {**item, "times": int(item["times"]) + 1}
    elif "file" in item and not {"equals", "contains"} & set(item):
        yield {**item, "exists": not item.get("exists", True)}
    else:
        yield {**item, "equals": f"not {item.get('equals', True)}"}


def unbroken(run: Path, application: Path) -> tuple[int, list[str]]:
    """Questions of one run of `careful` that were broken, and those of which nothing came."""
    import json

    asked, alive = 0, []
    effects = read_effects(application / "effects.jsonl")
    ground = Ground(application / "app.sqlite", application)
    for line in (run / "ledger.jsonl").read_bytes().splitlines():
        record = json.loads(line)
        if record["kind"] != "oracle":
            continue
        for item in broken_items(record["item"]):
            asked += 1
            if answer(item, ground, effects).holds is not False:
                alive.append(f"{run.name}: {item} holds, too")
    return asked, alive


def _rules(seed: str, units: int) -> Outcome:
    task = int(seed.rpartition("/")[2])
    outcome = Outcome(0)
    for file in FILES[task * units : (task + 1) * units]:
        number, for_a_reason, gaps = unexplained(file)
        for name, count in (("mutants", number), ("explained", for_a_reason), ("gaps", len(gaps))):
            outcome.counts[name] = outcome.counts.get(name, 0) + count
        outcome.failures += [f"no conversation tells it apart: {gap}" for gap in gaps]
        outcome.done += 1
    return outcome


def _oracles(seed: str, units: int) -> Outcome:  # noqa: ARG001 - one campaign is one unit
    from scripts.evidence_matrix import campaign

    outcome = Outcome(1)
    with tempfile.TemporaryDirectory(prefix="deskcert-mutants-") as folder:
        out = Path(folder) / "careful"
        campaign("careful", 1, out)
        for run in sorted((out / "runs").iterdir()):
            asked, alive = unbroken(run, out / "app" / run.name)
            outcome.counts["oracles"] = outcome.counts.get("oracles", 0) + asked
            outcome.failures += alive
    return outcome


type Work = Callable[[str, int], Outcome]

PARTS: Sequence[Part] = [
    Part("rules", goal=len(FILES), task=7, work=_rules, workers=2),
    Part("oracles", goal=1, task=1, work=_oracles, workers=1),
]
