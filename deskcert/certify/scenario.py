"""One scenario: what an agent is told, what may go wrong, and how it is known what happened (certify.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deskcert.certify.app_spec import AppSpec
from deskcert.certify.documents import contained, digest_of, read_document
from deskcert.certify.env_secrets import named_in
from deskcert.certify.meets import refuse_unmet
from deskcert_schema.problems import Path as KeyPath
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
    oracle_lines: tuple[int, ...] = ()
    """Where each question of `oracle` stands."""
    secrets: tuple[tuple[str, str], ...] = ()
    """Variables of the environment that it or its plan names, and where."""
    plan_secrets: tuple[str, ...] = ()
    """Those that the plan names: a reference agent has to be given them."""

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


def load_scenario(path: Path, *, builtin: bool = False, app: AppSpec | None = None) -> Scenario:
    """`app`: the user's own, or None for deskcert's. Raises `ConfigError` with file and line. The plan beside it is
    checked too, where there is one."""
    contained(path, path.parent)
    loaded = read_document(path, "scenario")
    doc = loaded.value
    refuse_unmet(loaded, app)
    secrets = list(named_in(loaded, _SECRET_PLACES))
    plan = path.with_name(f"{path.stem}.plan.yaml")
    in_plan: list[tuple[str, str]] = []
    if plan.exists() or plan.is_symlink():
        contained(plan, path.parent)
        in_plan = list(named_in(read_document(plan, "plan"), ("goals",)))
    budget = doc.get("budget", {})
    asked = _questions(doc)
    return Scenario(
        id=doc["id"],
        title=doc["title"],
        area=doc["area"],
        expected=doc["expected"],
        attribution=doc["attribution"],
        instruction=doc["instruction"],
        start=doc["start"],
        start_line=loaded.positions.value(("start",)).line,
        oracle=tuple(item for _, item in asked),
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
        oracle_lines=tuple(loaded.positions.value(place).line for place, _ in asked),
        secrets=(*secrets, *in_plan),
        plan_secrets=tuple(sorted({name for name, _ in in_plan})),
    )


_SECRET_PLACES = ("start", "instruction", "oracle", "allowed_goal")


def _questions(doc: Mapping[str, Any]) -> list[tuple[KeyPath, Mapping[str, Any]]]:
    """Each question once, also where the allowed sub-goal repeats one of the oracle's, and where it stands."""
    asked: list[tuple[KeyPath, Mapping[str, Any]]] = []
    for part in ("oracle", "allowed_goal"):
        for index, item in enumerate(doc.get(part, ())):
            if not any(_same_question(item, known) for _, known in asked):
                asked.append(((part, index), item))
    return asked


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


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)
