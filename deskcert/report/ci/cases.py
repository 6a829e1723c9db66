"""One verdict as the cases of a test report: every format is written from this, and from nothing else.

Every text that a page or an agent may have written has passed `visible` here: one line, nothing but letters to read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from deskcert.report.visible import visible
from deskcert.scoring import RULES, About, Verdict
from deskcert.scoring.evidence import LEDGER, find_runs
from deskcert.scoring.gate import ExitCode
from deskcert.scoring.rule import severity_rank
from deskcert_schema.vocabulary import RunOutcome, Severity

__all__ = ["VERDICT_WORDS", "Case", "Claim", "Kind", "Report", "Span", "kind_of_outcome", "make_report", "spans_of"]

VERDICT_WORDS: Final = {
    ExitCode.CERTIFIED: "certified",
    ExitCode.NOT_CERTIFIED: "not certified",
    ExitCode.USAGE: "nothing to judge",
    ExitCode.INCONCLUSIVE: "inconclusive",
    ExitCode.BROKEN_EVIDENCE: "broken evidence",
}
_ABOUT: Final[Mapping[str, About]] = {rule.about.id: rule.about for rule in RULES}
_TAIL: Final = 1 << 21
"""Bytes from a ledger's end in which its last line begins: a line has at most 1 MiB."""

type Kind = str
"""`passed`, `failed`, or `undecided`: a run that proves nothing."""


@dataclass(frozen=True, slots=True)
class Span:
    """From the first record to the last, as the ledger says."""

    start: datetime
    end: datetime

    @property
    def milliseconds(self) -> int:
        return max(0, round((self.end - self.start).total_seconds() * 1000))


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding."""

    id: str
    """The same for the same finding of another certification."""
    rule: str
    name: str
    severity: Severity
    attribution: str
    run: str
    scenario: str
    trial: int
    seqs: tuple[int, ...]
    text: str

    @property
    def proof(self) -> str:
        if not self.seqs:
            return f"the ledger of {self.run} as a whole"
        return f"record{'s' * (len(self.seqs) > 1)} {', '.join(map(str, self.seqs))} of {self.run}"


@dataclass(frozen=True, slots=True)
class Case:
    """One planned run."""

    name: str
    """`orders-approve (trial 1)`."""
    area: str
    run: str
    """Empty where it was never started."""
    outcome: RunOutcome
    attribution: str
    claims: tuple[Claim, ...]
    """Worst first."""
    span: Span | None
    quarantine: str = ""
    """The last day of its scenario's; empty where it counts."""

    @property
    def kind(self) -> Kind:
        return kind_of_outcome(self.outcome)

    @property
    def words(self) -> str:
        """Why it is not a pass, in one line."""
        told = self.outcome.value.replace("_", " ")
        told += f": {self.attribution}" if self.attribution else ""
        rules = ", ".join(dict.fromkeys(f"{c.rule} {c.name}" for c in self.claims))
        told = f"{told} ({rules})" if rules else told
        return f"{told}; in quarantine until {self.quarantine}" if self.quarantine else told


@dataclass(frozen=True, slots=True)
class Report:
    suite: str
    agent: str
    exit_code: ExitCode
    reasons: tuple[str, ...]
    environment: Mapping[str, str]
    cases: tuple[Case, ...]
    statistics: Mapping[str, Any]
    version: str
    """Of deskcert."""

    @property
    def verdict(self) -> str:
        return VERDICT_WORDS[self.exit_code]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All findings, worst first."""
        found = (c for case in self.cases for c in case.claims)
        return tuple(sorted(found, key=lambda c: (-severity_rank(c.severity), c.rule, c.scenario, c.trial, c.id)))


def kind_of_outcome(outcome: RunOutcome) -> Kind:
    match outcome:
        case RunOutcome.PASSED | RunOutcome.REFUSED_CORRECTLY:
            return "passed"
        case RunOutcome.FAILED | RunOutcome.UNSAFE:
            return "failed"
        case _:
            return "undecided"


def make_report(verdict: Verdict, spans: Mapping[str, Span], *, version: str) -> Report:
    """The pure part: no file is read. `spans` by run name."""
    told = verdict.as_json()
    scenario_of = {run["run"]: (run["scenario"], run["trial"]) for run in told["runs"] if run["run"]}
    claims: dict[str, list[Claim]] = {}
    for finding in told["findings"]:
        run = finding["run"]
        scenario, trial = scenario_of.get(run, ("", 0))
        claims.setdefault(run, []).append(_claim(finding, scenario, trial))
    area = {(s.planned.scenario, s.planned.trial): s.planned.area for s in verdict.slots}
    cases = tuple(
        Case(
            name=visible(f"{run['scenario']} (trial {run['trial']})"),
            area=visible(area[run["scenario"], run["trial"]]) or "-",
            run=visible(run["run"]),
            outcome=RunOutcome(run["outcome"]),
            attribution=run.get("attribution", ""),
            claims=tuple(claims.get(run["run"], ())),
            span=spans.get(run["run"]),
            quarantine=visible(verdict.gate.quarantine.get(run["scenario"], "")),
        )
        for run in told["runs"]
    )
    return Report(
        suite=visible(verdict.suite.partition(" ")[0]) or "unknown",
        agent=visible(verdict.agent.partition(" ")[0]) or "unknown",
        exit_code=verdict.exit_code,
        reasons=tuple(visible(reason) for reason in told["reasons"]),
        environment={key: visible(value) for key, value in verdict.environment.items()},
        cases=cases,
        statistics=told["statistics"],
        version=version,
    )


def _claim(finding: Mapping[str, Any], scenario: str, trial: int) -> Claim:
    return Claim(
        id=finding["id"],
        rule=finding["rule"],
        name=_ABOUT[finding["rule"]].name,
        severity=Severity(finding["severity"]),
        attribution=finding["attribution"],
        run=visible(finding["run"]),
        scenario=visible(scenario),
        trial=trial,
        seqs=tuple(finding["seqs"]),
        text=visible(finding["text"]),
    )


def spans_of(places: Sequence[Path]) -> dict[str, Span]:
    """When each run began and ended. A ledger that cannot be read for it has no entry: its word says what is wrong."""
    found = {}
    for folder in find_runs(places):
        try:
            with (folder / LEDGER).open("rb") as file:
                first = json.loads(file.readline(_TAIL))
                file.seek(max(0, file.seek(0, 2) - _TAIL))
                lines = file.read().split(b"\n")
            last = json.loads(lines[-2] if len(lines) > 1 else b"")
            name = first.get("run") or folder.resolve().name
            found[str(name)] = Span(_time(first["t"]), _time(last["t"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
