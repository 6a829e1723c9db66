"""(8) What an action claims about the element afterwards, and whether a read-back bears it out.

Only set-value has a claim about an element today; click and press claim nothing, because no read-back of the element
could tell what a click was for. Known false is a failure although the input was delivered; no evidence is no failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from deskcert.adapters.base import Action, Gone, Live, Navigation, Probed, Unreadable
from deskcert.contract.evidence import ABSENT, Evidence, Known
from deskcert_schema.vocabulary import VerificationScope

__all__ = [
    "HELD_ALREADY",
    "NO_CLAIM",
    "Verification",
    "has_claim",
    "holds_already",
    "read_back",
    "read_navigation",
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

    @property
    def settled(self) -> bool:
        """Another look would add nothing."""
        return self.satisfied is True or self.reason == "secure_field"

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"scope": self.scope.value, "satisfied": self.satisfied}
        for key in ("claim", "observed", "reason"):
            if (value := getattr(self, key)) is not None:
                out[key] = value
        return out


NO_CLAIM: Final = Verification(VerificationScope.NONE)
HELD_ALREADY: Final = Verification(VerificationScope.ELEMENT_VALUE, _VALUE_CLAIM, satisfied=True)


def has_claim(action: Action) -> bool:
    return action.command == "set-value"


def holds_already(action: Action, evidence: Evidence) -> bool:
    """The asked state is *known* to hold: then nothing is sent. An unread value is no reason to skip."""
    if action.command != "set-value" or action.value is None or _secure(evidence):
        return False
    return isinstance(evidence.value, Known) and same_text(evidence.value.value, action.value)


def read_back(action: Action, probed: Probed) -> Verification:
    """One read-back. The caller repeats it until it is satisfied or the settle time is over."""
    if not has_claim(action):
        return NO_CLAIM
    match probed:
        case Gone(reason):
            return _value(None, f"the element is gone: {reason}")
        case Unreadable(why):
            return _value(None, why)
        case Live(evidence) if _secure(evidence):
            return _value(None, "secure_field")
        case Live(evidence) if isinstance(evidence.value, Known):
            return _value(same_text(evidence.value.value, action.value or ""), None)
        case Live(evidence) if evidence.value == ABSENT:
            return _value(False if action.value else None, None if action.value else "the field shows no value")
        case _:
            return _value(None, "insufficient_evidence")


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


def _value(satisfied: bool | None, reason: str | None) -> Verification:
    return Verification(VerificationScope.ELEMENT_VALUE, _VALUE_CLAIM, satisfied, None, reason)


def _secure(evidence: Evidence) -> bool:
    return evidence.states.get("secure", ABSENT) == Known(True)
