"""One scenario: what an agent is told, what may go wrong, and how it is known what happened (certify.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deskcert.certify.documents import digest_of, read_document
from deskcert_schema.errors import ConfigError
from deskcert_schema.problems import Path as KeyPath
from deskcert_schema.problems import path_text
from deskcert_schema.strict_yaml import Loaded

__all__ = ["Perturbation", "Scenario", "load_scenario"]

_ACTIONS, _SECONDS = 30, 60


@dataclass(frozen=True, slots=True)
class Perturbation:
    """What is done to the application when acting command number `action` (1 is the first) comes to point `at`."""

    at: str
    action: int
    do: str
    args: Mapping[str, Any]
    line: int
    """Where it stands in the scenario's file."""


@dataclass(frozen=True, slots=True)
class Scenario:
    id: str
    title: str
    area: str
    expected: str
    attribution: str
    instruction: str
    start: Mapping[str, Any]
    start_line: int
    oracle: tuple[Mapping[str, Any], ...]
    """What must hold at the end; of a must-refuse scenario also what was still to be done."""
    actions: int
    """Budget: acting commands."""
    seconds: int
    """Budget: whole seconds of wall time."""
    perturb: tuple[Perturbation, ...]
    policy_added: Mapping[str, Any]
    bait: tuple[Any, ...]
    tags: tuple[str, ...]
    digest: str
    path: Path
    plan: Path | None
    """For reference agents only."""
    builtin: bool
    rule_lines: tuple[tuple[str, int], ...]
    """Ids of the rules that it adds, and the lines on which they stand."""

    def recorded(self) -> dict[str, Any]:
        """As `run.start` holds it."""
        told: dict[str, Any] = {
            "id": self.id,
            "expected": self.expected,
            "attribution": self.attribution,
            "area": self.area,
            "title": self.title,
            "budget": {"actions": self.actions, "seconds": self.seconds},
            "digest": self.digest,
        }
        if self.bait:
            told["bait"] = list(self.bait)
        if self.policy_added:
            told["policy_added"] = dict(self.policy_added)
        return told


def load_scenario(path: Path, *, builtin: bool = False) -> Scenario:
    """Raises `ConfigError` with file and line. The plan beside it is checked too, where there is one."""
    loaded = read_document(path, "scenario")
    doc = loaded.value
    _refuse_unmet(loaded)
    plan = path.with_name(f"{path.stem}.plan.yaml")
    if plan.exists():
        read_document(plan, "plan")
    budget = doc.get("budget", {})
    return Scenario(
        id=doc["id"],
        title=doc["title"],
        area=doc["area"],
        expected=doc["expected"],
        attribution=doc["attribution"],
        instruction=doc["instruction"],
        start=doc["start"],
        start_line=loaded.positions.value(("start",)).line,
        oracle=_questions(doc),
        actions=int(budget.get("actions", _ACTIONS)),
        seconds=int(budget.get("seconds", _SECONDS)),
        perturb=tuple(
            Perturbation(
                p["at"], int(p["action"]), p["do"], p.get("args", {}), loaded.positions.value(("perturb", index)).line
            )
            for index, p in enumerate(doc.get("perturb", ()))
        ),
        policy_added=doc.get("policy", {}),
        bait=_as_tuple(doc.get("bait", ())),
        tags=tuple(doc.get("tags", ())),
        digest=digest_of(doc),
        path=path,
        plan=plan if plan.exists() else None,
        builtin=builtin,
        rule_lines=tuple(_rule_lines(loaded)),
    )


def _questions(doc: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Each question once, also where the allowed sub-goal repeats one of the oracle's."""
    asked: list[Mapping[str, Any]] = []
    for item in (*doc["oracle"], *doc.get("allowed_goal", ())):
        if not any(_same_question(item, known) for known in asked):
            asked.append(item)
    return tuple(asked)


def _same_question(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return {k: v for k, v in one.items() if k != "why"} == {k: v for k, v in other.items() if k != "why"}


def _rule_lines(loaded: Loaded) -> Iterator[tuple[str, int]]:
    added = loaded.value.get("policy", {})
    lists: list[tuple[KeyPath, Sequence[Mapping[str, Any]]]] = [
        (("policy", "deny"), added.get("deny", ())),
        (("policy", "allow"), added.get("allow", ())),
        (("policy", "network", "writes"), added.get("network", {}).get("writes", ())),
    ]
    for path, rules in lists:
        for index, rule in enumerate(rules):
            yield rule["id"], loaded.positions.value((*path, index, "id")).line


def _refuse_unmet(loaded: Loaded) -> None:
    """What the format has and this version cannot do yet is said at the start, not found out in the middle of a run."""
    doc = loaded.value
    problems: list[tuple[KeyPath, str]] = []
    for part in ("oracle", "allowed_goal"):
        for index, item in enumerate(doc.get(part, ())):
            if not {"effect", "no_effect", "sql", "file"} & set(item):
                problems.append(((part, index), "this version asks effect, no_effect, sql and file only"))
    for key in ("url", "reset"):
        if key in doc["start"]:
            problems.append((("start", key), "this version starts its own application only; give page instead"))
    if problems:
        raise ConfigError(
            [f"{loaded.name}:{loaded.positions.value(p).line}: {path_text(p)}: {why}" for p, why in problems]
        )


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)
