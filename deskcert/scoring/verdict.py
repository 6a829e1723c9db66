"""The verdict: a function of the set of run folders and the pinned keys, and of nothing else.

No path, no time, no order of arguments, no setting of the machine goes into it.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deskcert.scoring.canonical import canonical
from deskcert.scoring.evidence import find_runs, read_run
from deskcert.scoring.gate import ExitCode, Gate, Reason, exit_code, reasons
from deskcert.scoring.plan import Charter, RunResult, Slot, lay_out
from deskcert.scoring.rule import Finding, severity_rank
from deskcert.scoring.tally import Tally, totals
from deskcert_schema.errors import UsageError

__all__ = ["Verdict", "make_verdict", "score"]

VERSION = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided. `as_bytes` is `verdict.json`."""

    exit_code: ExitCode
    reasons: tuple[Reason, ...]
    gate: Gate
    slots: tuple[Slot, ...]
    """Every planned run, in the order of scenario and trial."""
    tally: Tally
    suite: str
    agent: str
    suite_scenarios: int = 0
    """How many scenarios the suite has; 0: the runs do not say."""

    @property
    def scope(self) -> tuple[int, int] | None:
        """(scenarios that were planned, scenarios of the suite) where it is about a part of the suite."""
        planned = len({slot.planned.scenario for slot in self.slots})
        return (planned, self.suite_scenarios) if planned < self.suite_scenarios else None

    @property
    def certified(self) -> bool:
        return self.exit_code is ExitCode.CERTIFIED

    @property
    def environment(self) -> Mapping[str, str]:
        """isolation, proxy, custody, browser_sandbox or desktop; several values where runs differ."""
        seen: dict[str, set[str]] = defaultdict(set)
        for slot in self.slots:
            for key, value in (slot.result.environment if slot.result is not None else {}).items():
                seen[key].add(value)
        return {key: ", ".join(sorted(values)) for key, values in sorted(seen.items())}

    def as_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "certified": self.certified,
            "exit_code": int(self.exit_code),
            "reasons": [r.text for r in self.reasons],
            "gate": self.gate.as_json(),
            **({"scope": {"scenarios": self.scope[0], "of": self.scope[1]}} if self.scope is not None else {}),
            "totals": totals(self.slots),
            "by_area": self._by_area(),
            "by_attribution": self._by_attribution(),
            "statistics": self.tally.statistics(self.gate.k, self.gate.at_least, self.gate.quarantine),
            "flaky": list(self.tally.flaky),
            "quarantined": self._quarantined(),
            "findings": [f for slot in self.slots for f in _findings(slot)],
            "runs": [_run(slot) for slot in self.slots],
        }

    def as_bytes(self) -> bytes:
        return canonical(self.as_json())

    def _quarantined(self) -> list[str]:
        return sorted({s.planned.scenario for s in self.slots} & set(self.gate.quarantine))

    def _by_area(self) -> dict[str, Any]:
        """Trials are counted as in the whole: by scenario, and a scenario has one area."""
        areas: dict[str, list[Slot]] = defaultdict(list)
        for slot in self.slots:
            areas[slot.planned.area].append(slot)
        return {area: {**totals(slots), **self._tally_of(slots).rates()} for area, slots in sorted(areas.items())}

    def _tally_of(self, slots: Sequence[Slot]) -> Tally:
        return Tally({name: self.tally.trials[name] for name in sorted({s.planned.scenario for s in slots})})

    def _by_attribution(self) -> dict[str, int]:
        found = (s.result.judgement.attribution for s in self.slots if s.result is not None)
        return {a.value: n for a, n in sorted(Counter(a for a in found if a is not None).items())}


def score(folders: Sequence[Path], pins: Sequence[Any]) -> Verdict:
    """Judge run folders (or folders that `deskcert ci` wrote) from their ledgers alone.

    `pins`: the project keys that may introduce a run's key. Raises `UsageError` when the folders are not one
    certification: none at all, two runs of one trial, or runs of different suites, agents, gates or plans.
    """
    results: list[RunResult] = []
    charters: dict[str, Charter] = {}
    kept: list[Charter] = []
    for folder in find_runs(folders):
        result, charter = read_run(folder, pins)
        results.append(result)
        if charter is not None and not any(charter.difference(k) is None for k in kept):
            kept.append(charter)
            charters[result.run] = charter
    _refuse_mixture(charters)
    return make_verdict(kept[0] if kept else None, results)


def _refuse_mixture(charters: Mapping[str, Charter]) -> None:
    if len(charters) > 1:
        (run, first), (other, second) = sorted(charters.items())[:2]
        raise UsageError(
            f"These runs are not one certification: {run} and {other} differ in {first.difference(second)}."
            " Score the runs of each `deskcert ci` on their own."
        )


def make_verdict(charter: Charter | None, results: Sequence[RunResult]) -> Verdict:
    """The pure part of `score`."""
    slots = lay_out(charter, sorted(results, key=lambda r: (r.planned, r.run)))
    gate = Gate.read(charter.gate if charter else {}, trials=charter.trials if charter else 1)
    tally = Tally.count(slots, deterministic=charter is not None and charter.deterministic)
    why = reasons(gate, slots, tally)
    if charter is None:
        return Verdict(exit_code(why), why, gate, slots, tally, "", "")
    return Verdict(exit_code(why), why, gate, slots, tally, charter.suite, charter.agent, charter.suite_scenarios)


def _run(slot: Slot) -> dict[str, Any]:
    told: dict[str, Any] = {
        "run": slot.result.run if slot.result is not None else "",
        "scenario": slot.planned.scenario,
        "trial": slot.planned.trial,
        "seed": slot.planned.seed,
        "outcome": slot.outcome.value,
    }
    if slot.result is not None:
        ledger = slot.result.ledger
        told["ledger"] = {"size": ledger.size, "root": ledger.root, "word": ledger.word}
        if slot.result.judgement.attribution is not None:
            told["attribution"] = slot.result.judgement.attribution.value
    return told


def _findings(slot: Slot) -> list[dict[str, Any]]:
    """Worst first, then by the first record that proves it."""
    if slot.result is None:
        return []
    run = slot.result.run
    ordered = sorted(
        slot.result.judgement.findings, key=lambda f: (-severity_rank(f.about.severity), f.seqs, f.about.id, f.key)
    )
    return [
        {
            "id": finding_id(slot, finding),
            "rule": finding.about.id,
            "severity": finding.about.severity.value,
            "confidence": finding.about.confidence.value,
            "attribution": finding.about.attribution.value,
            "run": run,
            "seqs": list(finding.seqs),
            "text": finding.text,
        }
        for finding in ordered
    ]


def finding_id(slot: Slot, finding: Finding) -> str:
    """The same finding in a repeated run has the same id: nothing of the run itself goes into it."""
    parts = "\n".join((finding.about.id, slot.planned.scenario, str(slot.planned.trial), finding.key))
    return f"{finding.about.id}-{hashlib.sha256(parts.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
