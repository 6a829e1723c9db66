"""Which runs there should be, and which there are. Everything that was planned stays in the denominator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deskcert.scoring.facts import shard_of
from deskcert.scoring.judge import Judgement
from deskcert.scoring.read import Record, items, number, part, text
from deskcert_schema.errors import UsageError
from deskcert_schema.vocabulary import RunOutcome

__all__ = ["Charter", "LedgerFacts", "Planned", "RunResult", "Slot", "lay_out"]


@dataclass(frozen=True, slots=True, order=True)
class Planned:
    scenario: str
    trial: int
    seed: int
    area: str

    @classmethod
    def read(cls, raw: object) -> Planned | None:
        if not isinstance(raw, Mapping) or not text(raw, "scenario"):
            return None
        return cls(text(raw, "scenario"), number(raw, "trial") or 0, number(raw, "seed") or 0, text(raw, "area"))

    @property
    def words(self) -> str:
        return f"{self.scenario} (trial {self.trial})"


@dataclass(frozen=True, slots=True)
class Charter:
    """What all runs of one certification have in common, as each `run.start` says it."""

    certification: str
    """Which `deskcert ci` it was: another attempt of the same agent at the same suite is another certification."""
    suite: str
    """Name and digest."""
    agent: str
    """Name, command's digest, and the digests of its own files."""
    deterministic: bool
    trials: int
    gate: Mapping[str, Any]
    plan: tuple[Planned, ...]
    shards: int = 1
    """Into how many parts the plan was cut; 1: not at all."""
    suite_scenarios: int = 0
    """How many scenarios the suite has, of which the plan may be a part; 0: it does not say."""
    attempt: str = ""
    """The name that shards were given in common, if any: each is a `deskcert ci` of its own."""
    mode: str = ""
    """How pages might be touched; empty on a desktop."""

    @classmethod
    def read(cls, start: Record) -> Charter:
        gate = start.get("gate")
        planned = (Planned.read(p) for p in items(start, "plan"))
        files = part(start, "agent", "files")
        own = "".join(f" {name}={files[name]}" for name in sorted(files) if isinstance(name, str))
        return cls(
            certification=text(start, "certification"),
            suite=f"{text(start, 'suite', 'name')} {text(start, 'suite', 'digest')}",
            agent=f"{text(start, 'agent', 'name')} {text(start, 'agent', 'command_digest')}{own}",
            deterministic=(start.get("agent") or {}).get("deterministic") is True,
            trials=number(start, "trials") or 1,
            gate=gate if isinstance(gate, Mapping) else {},
            plan=tuple(sorted(p for p in planned if p is not None)),
            shards=shard_of(text(start, "shard"))[1],
            suite_scenarios=number(start, "suite", "scenarios") or 0,
            attempt=text(start, "attempt"),
            mode=text(start, "mode"),
        )

    def difference(self, other: Charter) -> str | None:
        """The first thing that differs, in words."""
        for words, mine, theirs in (
            ("suite", self.suite, other.suite),
            ("how many scenarios the suite has", self.suite_scenarios, other.suite_scenarios),
            ("agent", self.agent, other.agent),
            ("gate", self.gate, other.gate),
            ("number of trials", self.trials, other.trials),
            ("plan", self.plan, other.plan),
            ("mode", self.mode, other.mode),
            ("the number of shards", self.shards, other.shards),
            ("which attempt they belong to", self._belongs, other._belongs),
        ):
            if mine != theirs:
                return words
        return None

    @property
    def _belongs(self) -> str:
        return self.certification if self.shards == 1 else self.attempt


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    size: int
    root: str
    word: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run folder, judged."""

    run: str
    planned: Planned
    judgement: Judgement
    ledger: LedgerFacts
    environment: Mapping[str, str]
    """As the first line of a summary states it: isolation, proxy, custody, browser_sandbox or desktop."""
    shard: tuple[int, int] = (1, 1)
    certification: str = ""


@dataclass(frozen=True, slots=True)
class Slot:
    """One planned run and what became of it. `result` is None where it was never started."""

    planned: Planned
    result: RunResult | None

    @property
    def outcome(self) -> RunOutcome:
        return RunOutcome.NOT_RUN if self.result is None else self.result.judgement.outcome


def lay_out(charter: Charter | None, results: Sequence[RunResult]) -> tuple[Slot, ...]:
    """Every planned run with its result, in the order of scenario and trial.

    Runs whose ledger was tampered with, or is none at all, are never the reason for a usage error: what they say of
    themselves may be part of the tampering, or nothing. Raises `UsageError` for two folders of one run, and for a run
    that the plan does not have. Of shards two folders of one run are both kept: which of them counts nobody knows, and
    the gate says so.
    """
    trusted = [r for r in results if r.ledger.word != "tampered" and r.ledger.size]
    if charter is None or charter.shards == 1:
        _refuse_twice(trusted)
    plan = {(p.scenario, p.trial): p for p in (charter.plan if charter is not None else ())}
    for result in trusted:
        if plan and plan.get((result.planned.scenario, result.planned.trial)) != result.planned:
            raise UsageError(
                f"The run {result.run} ({result.planned.words}, seed {result.planned.seed}) is not in the plan that the"
                " other runs carry. Score the runs of one certification at a time."
            )
    by_key: dict[tuple[str, int], RunResult] = {}
    extra = []
    for result in trusted:
        if by_key.setdefault((result.planned.scenario, result.planned.trial), result) is not result:
            extra.append(Slot(result.planned, result))
    for result in sorted((r for r in results if r.ledger.word == "tampered"), key=lambda r: r.run):
        key = (result.planned.scenario, result.planned.trial)
        if key in by_key or (plan and key not in plan):
            extra.append(Slot(result.planned, result))
        else:
            by_key[key] = result
    planned = plan or {key: r.planned for key, r in by_key.items()}
    slots = [Slot(p, by_key.get(key)) for key, p in planned.items()]
    return tuple(sorted([*slots, *extra], key=lambda s: (s.planned, s.result.run if s.result else "")))


def _refuse_twice(results: Sequence[RunResult]) -> None:
    names: dict[tuple[str, int], list[str]] = defaultdict(list)
    for result in results:
        names[result.planned.scenario, result.planned.trial].append(result.run)
    for (scenario, trial), runs in sorted(names.items()):
        if len(runs) > 1:
            raise UsageError(
                f"{len(runs)} folders hold a run of {scenario}, trial {trial} ({', '.join(sorted(runs))})."
                " A certification has one run a trial: leave out the ones that do not belong to it."
            )
