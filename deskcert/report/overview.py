"""What a summary says, before it is known how it will be shown: every text harmless, every line decided here."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from deskcert.report.visible import visible
from deskcert.scoring import About, Verdict
from deskcert.scoring.gate import ExitCode
from deskcert.scoring.plan import Slot
from deskcert.scoring.rule import severity_rank
from deskcert_schema.vocabulary import RunOutcome, Severity

__all__ = ["Checkpoint", "FindingLine", "Overview", "Row", "make_overview"]

_VERDICT: Final = {
    ExitCode.CERTIFIED: "CERTIFIED",
    ExitCode.NOT_CERTIFIED: "NOT CERTIFIED",
    ExitCode.USAGE: "NOTHING TO JUDGE",
    ExitCode.INCONCLUSIVE: "INCONCLUSIVE",
    ExitCode.BROKEN_EVIDENCE: "BROKEN EVIDENCE",
}
_ORDER: Final = (
    RunOutcome.UNSAFE,
    RunOutcome.FAILED,
    RunOutcome.CONTAMINATED,
    RunOutcome.INCONCLUSIVE,
    RunOutcome.NOT_RUN,
    RunOutcome.REFUSED_CORRECTLY,
    RunOutcome.PASSED,
)


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario."""

    area: str
    scenario: str
    outcome: str
    """`passed`, or `passed 2, failed 1`."""
    worst: RunOutcome
    attribution: str
    rules: str
    """`DC401 ×2, DC501`."""


@dataclass(frozen=True, slots=True)
class FindingLine:
    severity: Severity
    rule: str
    name: str
    text: str
    proof: tuple[str, ...]
    """Which records of which runs prove it, one line each; a run's name begins with its scenario and trial."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    run: str
    size: int
    root: str
    word: str


@dataclass(frozen=True, slots=True)
class Overview:
    environment: str
    """The first line of every summary."""
    subject: str
    rows: tuple[Row, ...]
    findings: tuple[FindingLine, ...]
    """Worst first."""
    checkpoints: tuple[Checkpoint, ...]
    numbers: tuple[str, ...]
    verdict: str
    exit_code: ExitCode
    reasons: tuple[str, ...]
    places: tuple[tuple[str, str], ...]
    """(what, where)."""
    next_steps: tuple[str, ...]


def make_overview(verdict: Verdict, *, ledgers: Path | None, verdict_file: Path | None) -> Overview:
    """`ledgers`: the folder that holds the run folders."""
    found = _findings(verdict.slots)
    return Overview(
        environment=_environment(verdict),
        subject=_subject(verdict),
        rows=_rows(verdict.slots),
        findings=found,
        checkpoints=tuple(
            Checkpoint(visible(s.result.run), s.result.ledger.size, s.result.ledger.root, s.result.ledger.word)
            for s in verdict.slots
            if s.result is not None
        ),
        numbers=_numbers(verdict),
        verdict=_VERDICT[verdict.exit_code],
        exit_code=verdict.exit_code,
        reasons=tuple(visible(r.text) for r in verdict.reasons),
        places=tuple(
            (what, visible(str(where))) for what, where in (("ledgers", ledgers), ("verdict", verdict_file)) if where
        ),
        next_steps=_next_steps(verdict, found, ledgers),
    )


def _environment(verdict: Verdict) -> str:
    known = verdict.environment
    screen = ("desktop", "desktop") if "desktop" in known else ("browser sandbox", "browser_sandbox")
    # What an agent gets where nothing else is permitted needs no word.
    mode = (("mode", "mode"),) if known.get("mode", "headless") != "headless" else ()
    parts = (("isolation", "isolation"), ("proxy", "proxy"), ("custody", "custody"), screen, *mode)
    return " · ".join(f"{words} {visible(known.get(key, 'not recorded'))}" for words, key in parts)


def _subject(verdict: Verdict) -> str:
    suite, agent = verdict.suite.partition(" ")[0], verdict.agent.partition(" ")[0]
    planned = len(verdict.slots)
    part = "" if verdict.scope is None else f" · only {verdict.scope[0]} of the suite's {verdict.scope[1]} scenarios"
    whole = f"agent {visible(agent) or 'unknown'} · suite {visible(suite) or 'unknown'}{part}"
    return f"{whole} · {_count(planned, 'run')} planned"


def _rows(slots: Sequence[Slot]) -> tuple[Row, ...]:
    by_scenario: dict[tuple[str, str], list[Slot]] = {}
    for slot in slots:
        by_scenario.setdefault((slot.planned.area, slot.planned.scenario), []).append(slot)
    return tuple(_row(area, scenario, found) for (area, scenario), found in sorted(by_scenario.items()))


def _row(area: str, scenario: str, slots: Sequence[Slot]) -> Row:
    counted = Counter(s.outcome for s in slots)
    present = [o for o in _ORDER if counted[o]]
    outcome = _words(present[0]) if len(slots) == 1 else ", ".join(f"{_words(o)} {counted[o]}" for o in present)
    judged = [s.result.judgement for s in slots if s.result is not None]
    attributed = sorted({j.attribution.value for j in judged if j.attribution is not None})
    rules = Counter(f.about.id for j in judged for f in j.findings)
    return Row(
        area=visible(area),
        scenario=visible(scenario),
        outcome=outcome,
        worst=present[0],
        attribution=", ".join(attributed),
        rules=", ".join(f"{rule} ×{n}" if n > 1 else rule for rule, n in sorted(rules.items())),
    )


def _words(outcome: RunOutcome) -> str:
    return outcome.value.replace("_", " ")


def _findings(slots: Sequence[Slot]) -> tuple[FindingLine, ...]:
    """The same thing said of several runs is said once."""
    alike: dict[tuple[str, str], tuple[About, list[str]]] = {}
    for slot in slots:
        for found in slot.result.judgement.findings if slot.result is not None else ():
            _, proof = alike.setdefault((found.about.id, found.text), (found.about, []))
            proof.append(_proof(found.seqs, visible(slot.result.run if slot.result is not None else "")))
    lines = [
        FindingLine(about.severity, about.id, about.name, visible(text), tuple(proof))
        for (_, text), (about, proof) in alike.items()
    ]
    return tuple(sorted(lines, key=lambda f: (-severity_rank(f.severity), f.rule)))


def _proof(seqs: Sequence[int], run: str) -> str:
    if not seqs:
        return f"the ledger of {run} as a whole"
    return f"{'records' if len(seqs) > 1 else 'record'} {', '.join(str(n) for n in seqs)} of {run}"


def _numbers(verdict: Verdict) -> tuple[str, ...]:
    told: dict[str, Any] = verdict.tally.statistics(verdict.gate.k, verdict.gate.at_least, verdict.gate.quarantine)
    success, hat, unsafe = told["success"], told["pass_hat"], told["unsafe"]
    value = hat["value"].replace("_", " ")
    judged = f"unsafe {unsafe['count']} in {_count(unsafe['of'], 'trial')}: below {_percent(unsafe['upper'])} at 95 %"
    return (
        f"success {success['count']} of {success['of']}"
        f" (95 % interval {_percent(success['low'])} to {_percent(success['high'])})",
        f"pass^{hat['k']} {value} (the gate asks for {hat['at_least']})",
        judged if unsafe["of"] else "unsafe: no trial could be judged",
        *([f"flaky: {visible(', '.join(verdict.tally.flaky))}"] if verdict.tally.flaky else []),
        *(_quarantine(verdict)),
    )


def _quarantine(verdict: Verdict) -> list[str]:
    known = {s.planned.scenario for s in verdict.slots}
    told = [f"{name} (until {until})" for name, until in verdict.gate.quarantine.items() if name in known]
    return [f"in quarantine, counted only where unsafe: {visible(', '.join(told))}"] if told else []


def _percent(ratio: str) -> str:
    return f"{(Decimal(ratio) * 100).quantize(Decimal('0.1'))} %"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _lacks_only_shards(verdict: Verdict) -> bool:
    """No run of it proves nothing: what is missing, or there twice, are shards."""
    parts = any(s.result is not None and s.result.shard[1] > 1 for s in verdict.slots)
    return parts and not any(s.outcome in (RunOutcome.INCONCLUSIVE, RunOutcome.CONTAMINATED) for s in verdict.slots)


def _next_steps(verdict: Verdict, findings: Sequence[FindingLine], ledgers: Path | None) -> tuple[str, ...]:
    steps: list[str] = []
    folder = visible(shlex.quote(str(ledgers))) if ledgers is not None else "RUNS"
    if findings:
        steps.append(f"What a rule means, and how to fix it: deskcert explain {findings[0].rule}")
    match verdict.exit_code:
        case ExitCode.BROKEN_EVIDENCE:
            broken = next(
                (s.result for s in verdict.slots if s.result and s.result.ledger.word in {"tampered", "unverifiable"}),
                None,
            )
            name = visible(shlex.quote(broken.run)) if broken is not None else "RUN"
            steps.append(f"Where the ledger breaks, and which key it needs: deskcert ledger verify {folder}/{name}")
        case ExitCode.INCONCLUSIVE:
            if _lacks_only_shards(verdict):
                steps.append(
                    "Nothing is decided yet: deskcert merge decides, given the folder of every shard, once each."
                )
            else:
                steps.append("Nothing is decided. Look into run.log for what went wrong, and run the suite again.")
        case ExitCode.CERTIFIED:
            steps.append(f"Anyone with the key can compute this verdict again: deskcert score {folder} --key KEY")
        case ExitCode.NOT_CERTIFIED | ExitCode.USAGE:
            pass
    return tuple(steps)
