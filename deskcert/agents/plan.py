"""A plan: what a reference agent shall reach, in words that a person would use. No refs, no selectors.

Format: formats.md, "Scenario, plan". Only reference agents read it; an agent under test gets the instruction alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from deskcert_schema import strict_yaml
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
    """What the page shows once the goal is reached; every part that is given must hold. A text stands inside
    `context` where that is given; else in the goal's context, or anywhere on the page where it did not stand before."""

    text: str | None = None
    no_text: str | None = None
    """Text that must be gone; `gone` says the same."""
    url: str | None = None
    """Part of the page's address."""
    role: str | None = None
    name: str | None = None
    """With `role`: an element that must be there; with `state` and `value`, in that state, with that value."""
    context: tuple[str, ...] = ()
    state: str | None = None
    value: str | None = None

    @property
    def element(self) -> bool:
        return any(x is not None for x in (self.role, self.name, self.state, self.value))


@dataclass(frozen=True, slots=True)
class Goal:
    act: Act
    role: str | None = None
    name: str | None = None
    """Empty: an element that has none."""
    context: tuple[str, ...] = ()
    """Labels that enclose the target: row header, list item, legend, group, dialog or heading. All of them must."""
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
        return f"{self.act} {what}" + (f" in {', '.join(self.context)!r}" if self.context else "")


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
_TEXT_KEYS: Final = ("role", "name", "value", "key", "url")
_GOAL_KEYS: Final = frozenset(("act", *_TEXT_KEYS, "context", "done_when", "optional", "forbidden", "why"))
_WHEN_KEYS: Final = frozenset(("text", "no_text", "gone", "url", "role", "name", "context", "state", "value"))
_PLAN_KEYS: Final = frozenset(("goals", "claim", "version", "message"))


def load_plan(path: Path) -> Plan:
    """Raises `ConfigError` with the file's name and what was expected."""
    try:
        text = path.read_text("utf-8")
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read ({exc.strerror}); give the plan file with --plan") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path}: is not UTF-8 text; save it as UTF-8") from exc
    loaded = strict_yaml.load(text, name=str(path))
    try:
        return parse_plan(_with_secrets(loaded.value))
    except ConfigError as exc:
        raise ConfigError([f"{path}: {p}" for p in exc.problems]) from exc


def _with_secrets(value: Any) -> Any:
    """`${ENV:NAME}` stands for a variable that deskcert passes on. Raises `ConfigError` for one that is not there."""
    match value:
        case str():
            return _SECRET.sub(lambda m: _variable(m[1]), value)
        case dict():
            return {key: _with_secrets(inner) for key, inner in value.items()}
        case list():
            return [_with_secrets(inner) for inner in value]
        case _:
            return value


_SECRET: Final = re.compile(r"\$\{ENV:([A-Za-z_][A-Za-z0-9_]*)\}")


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ConfigError(f"${{ENV:{name}}} is not set; set {name} in the environment of deskcert")
    return value


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
    return Goal(
        act=act,
        **texts,
        context=_labels(raw, where),
        done_when=_done_when(raw.get("done_when"), where),
        optional=optional,
    )


def _done_when(raw: object, where: str) -> DoneWhen | None:
    if raw is None:
        return None
    where = f"{where}: done_when"
    if not isinstance(raw, Mapping) or not raw:
        raise ConfigError(f"{where}: expected a condition such as {{text: …}} or {{gone: …}}")
    _only(raw, _WHEN_KEYS, where)
    texts = {k: _text(raw, k, where) for k in ("text", "url", "role", "name", "state", "value")}
    gone = _text(raw, "no_text", where) or _text(raw, "gone", where)
    return DoneWhen(**texts, no_text=gone, context=_labels(raw, where))


def _labels(raw: Mapping[str, Any], where: str) -> tuple[str, ...]:
    found = raw.get("context", [])
    labels = [found] if isinstance(found, str) else found
    if not isinstance(labels, list) or not all(isinstance(x, str) and x for x in labels):
        raise ConfigError(f"{where}: context: expected a label or a list of labels, found {found!r}")
    return tuple(labels)


def _text(raw: Mapping[str, Any], key: str, where: str) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{where}: {key}: expected text, found {value!r}; put it in quotes")
    return value


def _only(raw: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    for key in raw:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(known))}")
