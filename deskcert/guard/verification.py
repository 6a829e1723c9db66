"""(8) What an action claims about the element afterwards, and whether a read-back bears it out.

| command | claim |
| --- | --- |
| set-value, clear, type, select | the value that must stand there then |
| upload | names and sizes of the files that must stand there then |
| check, uncheck, expand, collapse, focus | the state that must hold then |
| toggle | the state is the other one than before |
| scroll, scroll-to | the element has moved, or is in view |
| drag | the place takes what is dragged there (where the page says so, in HTML's way of dragging) |

All others claim nothing, because no read-back of the element could tell what a click or a key was for. Known false is a
failure although the input was delivered; no evidence is no failure. Sources: guard.md (8), reference 6.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final

from deskcert.adapters.base import Action, DispatchEnd, Gone, Live, Navigation, Probed, Unreadable
from deskcert.contract.evidence import ABSENT, Evidence, Known, Unknown
from deskcert_schema.vocabulary import VerificationScope

__all__ = [
    "NO_CLAIM",
    "Verification",
    "has_claim",
    "held_already",
    "holds_already",
    "read_back",
    "read_drag",
    "read_navigation",
    "read_page",
    "same_text",
]

SETTLE_MS: Final = 400
SETTLE_STEP_MS: Final = 50

_VALUE_CLAIM: Final = "value equals the asked one"


@dataclass(frozen=True, slots=True)
class Verification:
    scope: VerificationScope
    claim: str | None = None
    satisfied: bool | None = None
    """None: there was no evidence."""
    observed: str | None = None
    """Only where it is no secret."""
    reason: str | None = None
    """Why there was no evidence."""
    tolerance: int | None = None
    """Of a geometry, in `unit`: a difference within it is none."""
    unit: str | None = None

    @property
    def settled(self) -> bool:
        """Another look would add nothing."""
        return self.satisfied is True or self.reason == "secure_field"

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"scope": self.scope.value, "satisfied": self.satisfied}
        for key in ("claim", "observed", "reason", "tolerance", "unit"):
            if (value := getattr(self, key)) is not None:
                out[key] = value
        return out


NO_CLAIM: Final = Verification(VerificationScope.NONE)

_STATE_OF: Final = {
    "check": ("checked", True),
    "uncheck": ("checked", False),
    "expand": ("expanded", True),
    "collapse": ("expanded", False),
    "focus": ("focused", True),
}
_TOGGLED: Final = ("checked", "pressed")
_OF_VALUE: Final = frozenset({"set-value", "clear", "type", "select", "upload"})
_OF_PLACE: Final = frozenset({"scroll", "scroll-to"})


def read_drag(events: tuple[str, ...]) -> Verification:
    """From what was sent: where the page does not consent to `dragover` there is no `drop`. A consent is no proof of
    what was done with it, and a drag made of pointer events asks nobody."""
    if "dragstart" not in events or "drop" in events:
        return NO_CLAIM
    return Verification(VerificationScope.ELEMENT_STATE, "the place takes what is dragged there", satisfied=False)


def has_claim(action: Action) -> bool:
    return action.command in _OF_VALUE or action.command in _OF_PLACE or _state_claim(action) is not None


def held_already(action: Action) -> Verification:
    """Of an action that was skipped because `holds_already`."""
    claim = _state_claim(action)
    scope = VerificationScope.ELEMENT_VALUE if claim is None else VerificationScope.ELEMENT_STATE
    return Verification(scope, _VALUE_CLAIM if claim is None else claim, satisfied=True)


def holds_already(action: Action, evidence: Evidence) -> bool:
    """The asked state is *known* to hold: then nothing is sent. An unread value is no reason to skip, and a box that is
    neither checked nor unchecked is not unchecked."""
    if action.command in _STATE_OF:
        return _state_holds(*_STATE_OF[action.command], evidence) is True
    if action.command not in ("set-value", "clear", "select") or _secure(evidence):
        return False
    return _value_holds(action, evidence, None) is True


def read_back(action: Action, probed: Probed, before: Evidence | None = None) -> Verification:
    """One read-back. The caller repeats it until it is satisfied or the settle time is over. `before` is the evidence
    that the action was sent on."""
    if not has_claim(action):
        return NO_CLAIM
    match probed:
        case Gone(reason):
            return _claimed(action, None, f"the element is gone: {reason}")
        case Unreadable(why):
            return _claimed(action, None, why)
        case Live(evidence) if action.command in _OF_VALUE and _secure(evidence):
            return _claimed(action, None, "secure_field")
        case Live(evidence):
            satisfied = _holds(action, evidence, before)
            return _claimed(action, satisfied, "insufficient_evidence" if satisfied is None else None)


def _holds(action: Action, evidence: Evidence, before: Evidence | None) -> bool | None:
    if action.command in _OF_VALUE:
        return _value_holds(action, evidence, before)
    if action.command in _STATE_OF:
        return _state_holds(*_STATE_OF[action.command], evidence)
    if action.command == "toggle":
        return _turned(evidence, before)
    if action.command == "scroll-to":
        status = evidence.hit_test.status
        return None if status == "unknown" else status != "deferred"
    # What did not move may stand in a scroller that it is not itself part of: no evidence, not a contradiction.
    moved = before is not None and None not in (before.box, evidence.box) and before.box != evidence.box
    return True if moved else None


def _state_claim(action: Action) -> str | None:
    if action.command in _STATE_OF:
        state, wanted = _STATE_OF[action.command]
        return f"{state} is {str(wanted).lower()}"
    if action.command == "toggle":
        return "the state is the other one than before"
    return {"scroll": "the element has moved", "scroll-to": "the element is in view"}.get(action.command)


def _state_holds(state: str, wanted: bool, evidence: Evidence) -> bool | None:
    if state == "checked" and evidence.states.get("indeterminate", ABSENT) == Known(True):
        return False
    found = evidence.states.get(state, ABSENT)
    return found.value is wanted if isinstance(found, Known) else None


def _turned(evidence: Evidence, before: Evidence | None) -> bool | None:
    for state in _TOGGLED:
        then = before.states.get(state, ABSENT) if before is not None else ABSENT
        now = evidence.states.get(state, ABSENT)
        if isinstance(then, Known) and isinstance(now, Known):
            return bool(then.value != now.value)
    return None


def _value_holds(action: Action, evidence: Evidence, before: Evidence | None) -> bool | None:
    """None where the field shows no value, or where it is not known what stood there before."""
    asked = _asked_value(action, before)
    if asked is None or isinstance(evidence.value, Unknown):
        return None
    if isinstance(evidence.value, Known):
        if action.command == "select":
            return _chosen(str(evidence.value.value), evidence)
        return same_text(evidence.value.value, asked)
    return False if asked else None


def _asked_value(action: Action, before: Evidence | None) -> str | None:
    if action.command == "upload":
        files = [(PurePath(f["path"]).name, f["bytes"]) for f in json.loads(action.value or "[]")]
        return ", ".join(f"{name} ({size} bytes)" for name, size in files)
    if action.command != "type":
        return action.value or ""
    if before is None or isinstance(before.value, Unknown):
        return None
    return (before.value.value if isinstance(before.value, Known) else "") + (action.value or "")


def _chosen(shown: str, evidence: Evidence) -> bool | None:
    """A list shows the labels of what is chosen, in its order, joined by commas; the evidence has the asked ones."""
    asked = [p.names.accessible for p in evidence.paths if p.why == "descendant" and p.role == "option"]
    labels = [" ".join(str(label.value).split()) for label in asked if isinstance(label, Known)]
    if not labels or len(labels) != len(asked):
        return None
    plain = " ".join(shown.split())
    return ", ".join(sorted(labels, key=plain.find)) == plain


def read_page(command: str, navigation: Navigation, before: str | None, url: str) -> Verification:
    """Of any page command. A reload makes a new generation; going back may stay in the same document."""
    if command in ("dialog-accept", "dialog-dismiss"):
        closed = True if navigation.end is DispatchEnd.COMPLETED else None
        return Verification(VerificationScope.ELEMENT_STATE, "the dialog is closed", closed)
    if command == "tab-close":
        closed = True if navigation.end is DispatchEnd.COMPLETED else None
        return Verification(VerificationScope.ELEMENT_STATE, "the tab is closed", closed)
    if command == "tab-focus":
        there = True if navigation.committed is not None else None
        return Verification(VerificationScope.NAVIGATION, "the tab is the guarded one", there)
    read = read_navigation(navigation, before, url)
    if command != "reload" or navigation.committed is None:
        return read
    return replace(read, satisfied=navigation.committed.document != before)


def read_navigation(navigation: Navigation, before: str | None, url: str) -> Verification:
    """A page command is verified by the document that was committed; `before` is the generation it replaces."""
    scope, claim = VerificationScope.NAVIGATION, "a new document was committed"
    committed = navigation.committed
    if committed is None:
        return Verification(scope, claim, None, None, "no document was committed")
    moved = committed.document != before or committed.url == url
    return Verification(scope, claim, moved, committed.url)


def same_text(found: str, asked: str) -> bool:
    """Equal but for the line ends, which every browser normalises in a text area."""
    return found.replace("\r\n", "\n").replace("\r", "\n") == asked.replace("\r\n", "\n").replace("\r", "\n")


def _claimed(action: Action, satisfied: bool | None, reason: str | None) -> Verification:
    claim = _state_claim(action)
    scope = VerificationScope.ELEMENT_VALUE if claim is None else VerificationScope.ELEMENT_STATE
    return Verification(scope, _VALUE_CLAIM if claim is None else claim, satisfied, None, reason)


def _secure(evidence: Evidence) -> bool:
    return evidence.states.get("secure", ABSENT) == Known(True)
