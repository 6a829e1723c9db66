"""The looks of a wait, put back from their differences, and what the guard must have decided at each.

A record holds every look as what changed since the one before, its evidence part by part (guard.md, "Every look of the
wait is recorded, as differences"). The wait itself is a small machine: a look that is ready outside the lease leads to
a look under it; one that is ready there leads to an intent; every other look leads to a further one, or to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from deskcert.adapters.base import Action
from deskcert.contract.evidence import Evidence
from deskcert.guard import actionability, identity, policy
from deskcert_schema.vocabulary import Check, CheckStatus, Code, Mode

__all__ = ["Look", "decide_looks", "looks_of"]


@dataclass(frozen=True, slots=True)
class Look:
    number: int
    """0 is the first of the action."""
    t_us: int
    late: bool
    probe: str | None
    """Where the look gave no report: `gone: …`, `unreadable: …`, `changed: …`, `unknown: …`, `denied: …`."""
    statuses: Mapping[str, str]
    """Check → status, of a look that gave a report."""
    evidence: Evidence | None
    """None where nothing was read, or where the record does not hold it."""


def looks_of(data: Mapping[str, Any]) -> list[Look]:
    """Of one `action.*` record."""
    looks = list(_unfolded(data))
    if any(look.probe is None and look.evidence is None for look in looks):
        # An earlier version's record: evidence that no digest names may be another look's.
        return [replace(look, evidence=None) if look.probe is not None else look for look in looks]
    return looks


def _unfolded(data: Mapping[str, Any]) -> Iterator[Look]:
    told = data.get("looks") or data.get("actionability", {}).get("looks", ())
    deadline_us = 1_000 * data.get("deadline_ms", data["args"].get("timeout_ms", 0))
    facts: dict[str, Any] = {}
    parts: dict[str, Any] = dict(data.get("evidence", {})) if told else {}
    first = True
    for number, look in enumerate(told):
        changed = {k: v for k, v in look.get("changed", {}).items() if k != "evidence"}
        facts = changed if "probe" in changed or ("probe" in facts and changed) else facts | changed
        probe = facts.get("probe")
        read = probe is None or probe.partition(":")[0] in {"changed", "unknown", "denied"}
        if read:
            moved = look.get("changed", {}).get("evidence", {})
            parts = _patched({} if first and moved else parts, moved)
            first = False
        yield Look(
            number,
            look["t_us"],
            late=0 < deadline_us < look["t_us"],
            probe=probe,
            statuses={k: v for k, v in facts.items() if k in set(Check)},
            evidence=_evidence(parts, facts) if read and parts else None,
        )


def _patched(parts: Mapping[str, Any], moved: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in {**parts, **moved}.items() if v is not None}


def _evidence(parts: Mapping[str, Any], facts: Mapping[str, Any]) -> Evidence | None:
    """Only the evidence that the look itself names; a ledger of an earlier version may not hold it."""
    if "digest" in facts and facts["digest"] != parts.get("digest"):
        return None
    return Evidence.from_json(parts)


type Say = Callable[[str, Any, Any], None]
"""(what, recorded, recomputed): called for a difference as for none; the caller compares."""


def decide_looks(
    data: Mapping[str, Any], decide: Callable[[Evidence], policy.Verdict], say: Say, *, intents: int
) -> int:
    """Every look decided again. `intents`: those of this action so far, this record's own included.

    Returns how many looks could not be decided again because their evidence is not in the record.
    """
    looks = looks_of(data)
    if not looks:
        return 0
    action = Action(data["command"], key=data["args"].get("key"))
    missing = ready = reached = 0
    for look in looks:
        last = look is looks[-1]
        missing += look.evidence is None and not (look.probe or "").startswith(("gone", "unreadable"))
        found = _decision(look, action, data, decide, say)
        if last and data.get("satisfied") is True:
            found = "satisfied"  # the value is secret: that it held already is the recorded fact
        if found in _ENDS and not last:
            say(f"look {look.number}", "went on", found)
        ready = ready + 1 if found == "ready" and not look.late else 0
        if ready == 2 or found == "satisfied":
            ready, reached = 0, reached + 1
    cut_short = data.get("code") == Code.INTERNAL
    say("looks: intents that they lead to", intents, intents if cut_short and reached == intents + 1 else reached)
    return missing


_ENDS: Final = frozenset({"gone", "changed", "denied", "blocked"})


def _decision(
    look: Look, action: Action, data: Mapping[str, Any], decide: Callable[[Evidence], policy.Verdict], say: Say
) -> str:
    """(2), (3) and (4) of one look, compared with what the record says of it, in one word."""
    where = f"look {look.number}"
    if look.evidence is None:
        if look.probe is not None:
            word = look.probe.partition(":")[0]
            return "unreadable" if word == "unknown" else word
        return _word(look.statuses)
    found = identity.compare_saved(data["target"], look.evidence)
    word, _, told = (look.probe or "").partition(": ")
    match found:
        case identity.Changed(which):
            say(f"{where}: identity", told if word == "changed" else "same", ", ".join(which))
            return "changed"
        case identity.Doubtful(which):
            say(f"{where}: identity", told if word == "unknown" else "same", ", ".join(which))
            return "unreadable"
        case identity.Same():
            say(f"{where}: identity", f"{word}: {told}" if word in {"changed", "unknown"} else "same", "same")
    verdict = decide(look.evidence)
    if word == "denied":
        by_gate = told == "retry-gate"
        again = verdict.rule if isinstance(verdict, policy.Deny) else "retry-gate" if by_gate else "allow"
        say(f"{where}: policy", told, again)
        return "denied"
    say(f"{where}: policy", "allow", "allow" if isinstance(verdict, policy.Allow) else verdict.rule)
    report = actionability.judge(action, look.evidence, Mode(data["mode"]))
    say(f"{where}: checks", dict(look.statuses), {c.check.value: c.status.value for c in report.checks})
    return _verdict_word(report)


def _word(statuses: Mapping[str, str]) -> str:
    """From the statuses alone, where a look's evidence is not recorded."""
    checks = tuple(actionability.CheckResult(Check(k), CheckStatus(v)) for k, v in statuses.items())
    return _verdict_word(actionability.Report(checks))


def _verdict_word(report: actionability.Report) -> str:
    match actionability.verdict_of(report):
        case actionability.Ready():
            return "ready"
        case actionability.NotYet():
            return "not yet"
        case actionability.Blocked():
            return "blocked"
