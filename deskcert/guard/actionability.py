"""(4) Can the action be done now? Five answers a check, two classes, one verdict.

| check | class |
| --- | --- |
| attached, visible, enabled, stable, receives events | wait: the application may still get there |
| supported action, editable, mode | terminal: waiting changes nothing |

Terminal beats wait: the first failing check that carries a code decides. Unknown is not pass, and invents no occluder.
Source: guard.md (4). `stable` is of physical actions only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

from deskcert.adapters.base import Action
from deskcert.contract.evidence import ABSENT, Absent, Evidence, Field, Known, Unknown
from deskcert.guard.rules import key_of
from deskcert_schema.vocabulary import Check, CheckStatus, Code, Mode

__all__ = ["Blocked", "CheckResult", "NotYet", "Ready", "Report", "facts", "judge", "verdict_of"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: Check
    status: CheckStatus
    reason: str | None = None
    occluder: tuple[str | None, str | None] | None = None
    """(role, name) of what covers the target."""
    code: Code | None = None
    """Where a terminal check has another code than the others of its kind."""

    @property
    def passes(self) -> bool:
        return self.status in (CheckStatus.PASS, CheckStatus.DEFERRED)

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"check": self.check.value, "status": self.status.value}
        if self.reason is not None:
            out["reason"] = self.reason
        if self.occluder is not None:
            role, name = self.occluder
            out["occluder"] = {k: v for k, v in (("role", role), ("name", name)) if v is not None}
        return out


@dataclass(frozen=True, slots=True)
class Report:
    checks: tuple[CheckResult, ...]

    def as_json(self) -> list[dict[str, Any]]:
        return [c.as_json() for c in self.checks]


@dataclass(frozen=True, slots=True)
class Ready:
    pass


@dataclass(frozen=True, slots=True)
class NotYet:
    first: CheckResult


@dataclass(frozen=True, slots=True)
class Blocked:
    first: CheckResult
    code: Code


type Verdict = Ready | NotYet | Blocked

_TERMINAL: Final = {
    Check.SUPPORTED_ACTION: Code.ACTION_NOT_SUPPORTED,
    Check.EDITABLE: Code.ACTION_NOT_SUPPORTED,
    Check.MODE: Code.POLICY_DENIED,
}
POINTER_LIKE: Final = frozenset(
    (
        *("click", "double-click", "triple-click", "right-click", "hover"),
        *("check", "uncheck", "toggle", "expand", "collapse", "drag"),
    )
)
"""Commands that send a pointer's events: the target must be what a pointer would hit."""
_EDITS: Final = frozenset({"set-value", "type", "clear"})
_LOOKS_ONLY: Final = frozenset({"hover", "scroll", "scroll-to"})
"""A disabled control can be hovered and scrolled to."""
_CAPABILITY: Final[Mapping[str, tuple[str, ...]]] = {
    "double-click": ("click",),
    "triple-click": ("click",),
    "right-click": ("click",),
    "hover": (),
    "scroll": (),
    "scroll-to": (),
    "drag": (),
    "focus": ("focus", "press"),
    "clear": ("set-value",),
    "check": ("toggle", "check"),
    "uncheck": ("toggle",),
    "collapse": ("expand",),
}
"""The capabilities of which a command needs one, where it is not called the same; none: every element has it."""
_HEADLESS_KEYS: Final = frozenset({"enter", "space", *(f"arrow{side}" for side in ("left", "right", "up", "down"))})
"""Keys whose default action is emulated; others need trusted keys."""


def judge(action: Action, evidence: Evidence, mode: Mode) -> Report:
    """Every check that this action needs, in the order of `Check`."""
    checks = [
        CheckResult(Check.ATTACHED, CheckStatus.PASS),
        _supported(action, evidence),
        *([_editable(evidence)] if action.command in _EDITS else []),
        *([_options(evidence.options)] if action.command == "select" else []),
        _mode(action, mode),
        _visible(evidence),
        *([] if action.command in _LOOKS_ONLY else [_enabled(evidence)]),
        *([_stable(evidence.steady)] if evidence.steady is not None else []),
        *([_receives_events(evidence)] if action.command in POINTER_LIKE else []),
        *(_drop(evidence.other) if evidence.other is not None else ()),
    ]
    return Report(tuple(checks))


def _stable(steady: bool) -> CheckResult:
    """A look for physical input says whether the box held still."""
    return CheckResult(Check.STABLE, CheckStatus.PASS if steady else CheckStatus.FAIL, None if steady else "it moves")


def _drop(place: Evidence) -> tuple[CheckResult, ...]:
    """Where a drag ends: visible, enabled, and what a pointer would meet there."""
    return (
        replace(_visible(place), check=Check.DROP_VISIBLE),
        replace(_enabled(place), check=Check.DROP_ENABLED),
        replace(_receives_events(place), check=Check.DROP_RECEIVES_EVENTS),
    )


def _enabled(evidence: Evidence) -> CheckResult:
    return _state(Check.ENABLED, evidence.states.get("enabled", ABSENT), "it is disabled")


def verdict_of(report: Report) -> Verdict:
    for check in report.checks:
        if check.status is CheckStatus.FAIL and check.check in _TERMINAL:
            return Blocked(check, check.code or _TERMINAL[check.check])
    for check in report.checks:
        if not check.passes:
            return NotYet(check)
    return Ready()


def facts(report: Report, evidence: Evidence) -> Mapping[str, Any]:
    """What one look saw, for the differences between looks that are recorded."""
    return {c.check.value: c.status.value for c in report.checks} | {"digest": evidence.digest}


def _supported(action: Action, evidence: Evidence) -> CheckResult:
    needed = _CAPABILITY.get(action.command, (action.command,))
    if not needed or any(capability in evidence.actions for capability in needed):
        return CheckResult(Check.SUPPORTED_ACTION, CheckStatus.PASS)
    return CheckResult(Check.SUPPORTED_ACTION, CheckStatus.FAIL, f"a {evidence.role} does not offer {action.command}")


def _options(found: tuple[int, ...] | None) -> CheckResult:
    """Each asked option must be one that can be chosen, and only one."""
    if found is None:
        return CheckResult(Check.SUPPORTED_ACTION, CheckStatus.UNKNOWN, "its options could not be read")
    if 0 in found:
        why = "it has no such option that can be chosen"
        return CheckResult(Check.SUPPORTED_ACTION, CheckStatus.FAIL, why, code=Code.ELEMENT_NOT_FOUND)
    if any(n > 1 for n in found):
        why = f"{max(found)} options are called so"
        return CheckResult(Check.SUPPORTED_ACTION, CheckStatus.FAIL, why, code=Code.AMBIGUOUS_TARGET)
    return CheckResult(Check.SUPPORTED_ACTION, CheckStatus.PASS)


def _editable(evidence: Evidence) -> CheckResult:
    if evidence.states.get("readonly", ABSENT) == Known(True):
        return CheckResult(Check.EDITABLE, CheckStatus.FAIL, "it is read-only")
    return _state(Check.EDITABLE, evidence.states.get("editable", ABSENT), "it is not a field that takes a value")


def _mode(action: Action, mode: Mode) -> CheckResult:
    if action.command == "press" and mode is Mode.HEADLESS and key_of(action.key or "") not in _HEADLESS_KEYS:
        return CheckResult(Check.MODE, CheckStatus.FAIL, f"the key {action.key!r} needs the mode focus_fallback")
    return CheckResult(Check.MODE, CheckStatus.PASS)


def _visible(evidence: Evidence) -> CheckResult:
    state = _state(Check.VISIBLE, evidence.states.get("visible", ABSENT), "it is hidden")
    if state.status is not CheckStatus.PASS:
        return state
    if evidence.box is None:
        return CheckResult(Check.VISIBLE, CheckStatus.UNKNOWN, "its box could not be read")
    if evidence.box[2] <= 0 or evidence.box[3] <= 0:
        return CheckResult(Check.VISIBLE, CheckStatus.FAIL, "it has no area")
    return state


def _state(check: Check, state: Field[bool], otherwise: str) -> CheckResult:
    """A state that an adapter does not tell is not known to hold."""
    match state:
        case Known(True):
            return CheckResult(check, CheckStatus.PASS)
        case Known():
            return CheckResult(check, CheckStatus.FAIL, otherwise)
        case Absent():
            return CheckResult(check, CheckStatus.UNKNOWN, "the adapter did not tell")
        case Unknown(why):
            return CheckResult(check, CheckStatus.UNKNOWN, why)
        case _:
            assert_never(state)


def _receives_events(evidence: Evidence) -> CheckResult:
    test = evidence.hit_test
    status = CheckStatus(test.status)
    match status:
        case CheckStatus.PASS | CheckStatus.DEFERRED:
            return CheckResult(Check.RECEIVES_EVENTS, status)
        case CheckStatus.FAIL:
            covered = (test.occluder_role, test.occluder_name)
            return CheckResult(Check.RECEIVES_EVENTS, status, "something else is in front of it", covered)
        case CheckStatus.UNKNOWN:
            return CheckResult(Check.RECEIVES_EVENTS, status, "the hit test gave no answer")
        case _:
            assert_never(status)
