"""A plan: what a reference agent shall reach, in words that a person would use. No refs, no selectors.

Format: formats.md, "Scenario, plan". Only reference agents read it; an agent under test gets the instruction alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import yaml

from deskcert_schema.errors import ConfigError
from deskcert_schema.vocabulary import ClaimOutcome

__all__ = ["Act", "DoneWhen", "Goal", "Plan", "load_plan", "parse_plan"]


class Act(StrEnum):
    CLICK = "click"
    SET_VALUE = "set-value"
    PRESS = "press"
    NAVIGATE = "navigate"
    READ = "read"
    """Look for something on the page and touch nothing."""


@dataclass(frozen=True, slots=True)
class DoneWhen:
    """What the page shows once the goal is reached. In a goal with a context: inside that row, list item or group."""

    text: str | None = None
    no_text: str | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    act: Act
    role: str | None = None
    name: str | None = None
    context: str | None = None
    """A label that encloses the target: row header, list item, legend, group, dialog or heading."""
    value: str | None = None
    key: str | None = None
    url: str | None = None
    """Absolute, or relative to the task's start."""
    done_when: DoneWhen | None = None
    optional: bool = False
    """Its absence from a page that was seen completely is no failure."""

    @property
    def words(self) -> str:
        what = " ".join(x for x in (self.role, f"{self.name!r}" if self.name else None, self.url) if x)
        return f"{self.act} {what}" + (f" in {self.context!r}" if self.context else "")


@dataclass(frozen=True, slots=True)
class Plan:
    goals: tuple[Goal, ...]
    claim: ClaimOutcome = ClaimOutcome.DONE
    """What to claim once every goal is reached."""


_NEEDS: Final[Mapping[Act, tuple[str, ...]]] = {
    Act.CLICK: ("role", "name"),
    Act.SET_VALUE: ("role", "name", "value"),
    Act.PRESS: ("role", "name", "key"),
    Act.NAVIGATE: ("url",),
    Act.READ: (),
}
_TEXT_KEYS: Final = ("role", "name", "context", "value", "key", "url")
_GOAL_KEYS: Final = frozenset(("act", *_TEXT_KEYS, "done_when", "optional"))
_PLAN_KEYS: Final = frozenset(("goals", "claim", "version"))


def load_plan(path: Path) -> Plan:
    """Raises `ConfigError` with the file's name and what was expected."""
    try:
        raw = yaml.safe_load(path.read_text("utf-8"))
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read ({exc.strerror}); give the plan file with --plan") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path}: is not YAML: {' '.join(str(exc).split())}") from exc
    try:
        return parse_plan(raw)
    except ConfigError as exc:
        raise ConfigError([f"{path}: {p}" for p in exc.problems]) from exc


def parse_plan(raw: object) -> Plan:
    if not isinstance(raw, Mapping):
        raise ConfigError("a plan is a mapping with the keys goals and claim")
    _only(raw, _PLAN_KEYS, "plan")
    goals = raw.get("goals", [])
    if not isinstance(goals, list):
        raise ConfigError("goals: expected a list")
    claim = raw.get("claim", ClaimOutcome.DONE.value)
    if claim not in set(ClaimOutcome):
        raise ConfigError(f"claim: expected one of {', '.join(ClaimOutcome)}, found {claim!r}")
    return Plan(tuple(_goal(g, i) for i, g in enumerate(goals, 1)), ClaimOutcome(claim))


def _goal(raw: object, number: int) -> Goal:
    where = f"goal {number}"
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where}: expected a mapping")
    _only(raw, _GOAL_KEYS, where)
    if raw.get("act") not in set(Act):
        raise ConfigError(f"{where}: act: expected one of {', '.join(Act)}, found {raw.get('act')!r}")
    act = Act(raw["act"])
    texts = {k: _text(raw, k, where) for k in _TEXT_KEYS}
    missing = [k for k in _NEEDS[act] if texts[k] is None]
    if missing:
        raise ConfigError(f"{where}: {act} needs {' and '.join(missing)}")
    optional = raw.get("optional", False)
    if not isinstance(optional, bool):
        raise ConfigError(f"{where}: optional: expected true or false")
    return Goal(act=act, **texts, done_when=_done_when(raw.get("done_when"), where), optional=optional)


def _done_when(raw: object, where: str) -> DoneWhen | None:
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where}: done_when: expected {{text: …}} or {{no_text: …}}")
    _only(raw, frozenset(("text", "no_text")), f"{where}: done_when")
    found = DoneWhen(_text(raw, "text", where), _text(raw, "no_text", where))
    if found == DoneWhen():
        raise ConfigError(f"{where}: done_when: expected text or no_text")
    return found


def _text(raw: Mapping[str, Any], key: str, where: str) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{where}: {key}: expected text, found {value!r}; put it in quotes")
    return value


def _only(raw: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    for key in raw:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(known))}")
