"""The retry gate: "unsafe to retry" is enforced, not only said.

An action is recognised by its *fingerprint*: what it would do, where, with which value; no node, document generation or
snapshot id. So time-out, reload, new snapshot, submit is still the repeat that it is. Source: guard.md.

| the last attempt with this fingerprint | passes when |
| --- | --- |
| none, or not delivered | always |
| ok and delivered, no dialog left open, every request answered | a snapshot newer than its result was taken |
| anything else | the same, and the agent names the attempt (`repeat_of`) |
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

from deskcert.adapters.base import Action, RequestSeen
from deskcert.contract.evidence import Evidence, Field, Known
from deskcert.guard.names import FORMS
from deskcert.guard.rules import key_of, role_of
from deskcert_schema.disposition import RETRY_OF, Delivery, Retry

__all__ = [
    "Attempt",
    "GateDecision",
    "GateState",
    "decide",
    "digest_of",
    "fingerprint",
    "is_unanswered",
    "navigation_fingerprint",
    "page_fingerprint",
    "value_mac",
]

GATE_RULE: Final = "retry-gate"
EXEMPT: Final = "exempt:"
"""Begins the mark of what may be repeated at will: such an attempt is never remembered."""
_HARMLESS: Final = frozenset({"scroll", "scroll-to", "hover", "focus"})
_SAME_VERB: Final = dict.fromkeys(("double-click", "triple-click", "toggle"), "click")
"""Another way to the same effect is a repeat as well. check, uncheck, expand and collapse say which state they want."""
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Attempt:
    """The last attempt with one fingerprint that may have reached the application."""

    seq: int
    """Of its intent: what `repeat_of` names."""
    result_seq: int | None
    delivery: Delivery
    ok: bool
    pending_dialog: bool = False

    @property
    def settled(self) -> bool:
        """Known to be over. A result that could not be recorded settles nothing: it will read as unknown."""
        recorded = self.result_seq is not None
        return recorded and self.ok and RETRY_OF[self.delivery] is Retry.UNSAFE and not self.pending_dialog

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"seq": self.seq, "delivery": self.delivery.value, "ok": self.ok}
        if self.result_seq is not None:
            out["result_seq"] = self.result_seq
        return out | ({"pending_dialog": True} if self.pending_dialog else {})

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Attempt:
        delivery = Delivery(raw["delivery"])
        return cls(raw["seq"], raw.get("result_seq"), delivery, raw["ok"], raw.get("pending_dialog", False))


@dataclass(frozen=True, slots=True)
class GateState:
    """What a run has attempted so far. Frozen: `after` gives the next state."""

    attempts: Mapping[str, Attempt] = field(default_factory=dict)

    def after(self, fingerprint: str, attempt: Attempt) -> GateState:
        """An attempt that reached nothing changes nothing: what was delivered before it still was."""
        if attempt.delivery is Delivery.NOT_DELIVERED or fingerprint.startswith(EXEMPT):
            return self
        return GateState({**self.attempts, fingerprint: attempt})


@dataclass(frozen=True, slots=True)
class GateDecision:
    passes: bool
    fingerprint: str
    previous: Attempt | None
    unanswered: bool
    newer_snapshot: bool
    repeat_of: int | None

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "verdict": "pass" if self.passes else "refuse",
            "unanswered": self.unanswered,
            "newer_snapshot": self.newer_snapshot,
        }
        if self.previous is not None:
            out["previous"] = self.previous.as_json()
        return out | ({"repeat_of": self.repeat_of} if self.repeat_of is not None else {})


def decide(
    fingerprint: str, previous: Attempt | None, *, unanswered: bool, newest_snapshot: int, repeat_of: int | None
) -> GateDecision:
    """`newest_snapshot`: sequence number of the newest observation; `unanswered` speaks of the previous attempt."""
    newer = previous is not None and newest_snapshot > max(previous.seq, previous.result_seq or 0)
    return GateDecision(
        passes=judge(previous, unanswered=unanswered, newer_snapshot=newer, repeat_of=repeat_of),
        fingerprint=fingerprint,
        previous=previous,
        unanswered=unanswered,
        newer_snapshot=newer,
        repeat_of=repeat_of,
    )


def judge(previous: Attempt | None, *, unanswered: bool, newer_snapshot: bool, repeat_of: int | None) -> bool:
    """The table above. Replay asks this with the recorded facts."""
    if previous is None or previous.delivery is Delivery.NOT_DELIVERED:
        return True
    if previous.settled and not unanswered:
        return newer_snapshot
    named = repeat_of is not None and repeat_of in (previous.seq, previous.result_seq)
    return newer_snapshot and named


def is_unanswered(requests: Iterable[RequestSeen]) -> bool:
    """A request still pending, or a write whose answer was lost: what it did is not known."""
    return any(r.state == "pending" or (r.state == "failed" and r.method not in _SAFE_METHODS) for r in requests)


def value_mac(key: bytes, value: str) -> str:
    """Tells equal values of one run from different ones, and nothing more: the key is the run's and never written."""
    return hmac.new(key, value.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def fingerprint(action: Action, evidence: Evidence, mac: str | None) -> str:
    """Hex SHA-256 over the parts; `mac` is `value_mac` of the typed value. An action that is passed on (from a label to
    its control, Enter in a field to the default button, a click inside a button to the button) has the fingerprint of
    a click on what it is passed on to: it is another way to the same effect."""
    if (to := _passed_on_to(action, evidence)) is not None:
        action, evidence = Action("click"), to
    return (EXEMPT if action.command in _HARMLESS else "") + digest_of(
        {
            "action": _verb(action, evidence),
            "role": role_of(evidence.role),
            "name": _looks(evidence.names.accessible, evidence.names.text),
            "context": [[kind, FORMS["deep"](label)] for kind, label in evidence.context],
            "destination": _destination(evidence),
            "window": _origin_and_path(evidence.url),
            "value": mac,
        }
        | ({} if evidence.other is None else {"to": _end(evidence.other)})
    )


def _end(place: Evidence) -> list[Any]:
    """Where a drag ends."""
    named = _looks(place.names.accessible, place.names.text)
    return [role_of(place.role), named, [[kind, FORMS["deep"](label)] for kind, label in place.context]]


_CONTROLS: Final = frozenset(
    "button link menuitem menuitemcheckbox menuitemradio tab checkbox radio switch".split()  # noqa: SIM905
)
_FIELDS: Final = frozenset("textbox searchbox spinbutton combobox listbox option slider treeitem".split())  # noqa: SIM905


def _submits(evidence: Evidence) -> bool:
    return any(path.why == "default_submitter" for path in evidence.paths)


def _passed_on_to(action: Action, evidence: Evidence) -> Evidence | None:
    """The control that really acts, as evidence of it would say, where that is another one than the target."""
    verb, role = _verb(action, evidence), role_of(evidence.role)
    why = None
    if action.key is not None and key_of(action.key) == "enter" and _submits(evidence):
        why = "default_submitter"
    elif verb == "click" and role == "label":
        why = "label_control"
    elif verb == "click" and role not in _CONTROLS | _FIELDS:
        why = "ancestor"
    ways = (p for p in evidence.paths if p.why == why and (why != "ancestor" or role_of(p.role) in _CONTROLS))
    found = next(ways, None)
    if found is None:
        return None
    return replace(
        evidence, role=found.role, names=found.names, context=found.context, destination=found.destination, states={}
    )


def navigation_fingerprint(url: str) -> str:
    return digest_of({"action": "navigate", "url": url.partition("#")[0]})


def page_fingerprint(command: str, target: Mapping[str, Any]) -> str:
    """A dialog is answered once: it has an id of its own."""
    if (dialog := target.get("dialog")) is not None:
        return EXEMPT + digest_of({"action": command, "dialog": dialog["id"], "text": dialog["text"]})
    if (tab := target.get("tab")) is not None:
        # To look at another tab changes nothing; a closed one is not there to be closed again.
        return EXEMPT + digest_of({"action": command, "tab": tab["id"]})
    if command == "navigate":
        return navigation_fingerprint(target["url"])
    return digest_of({"action": command, "url": target["url"].partition("#")[0]})


def _verb(action: Action, evidence: Evidence) -> str:
    """Enter on a button is the click that it stands for; in a field it is a key of its own."""
    if action.key is None:
        return _SAME_VERB.get(action.command, action.command)
    key = key_of(action.key)
    activates = key in ("enter", "space") and evidence.states.get("editable") != Known(True)
    return "click" if activates else f"{action.command} {key}"


def _looks(*names: Field[str]) -> str | None:
    for name in names:
        if isinstance(name, Known) and name.value.strip():
            return FORMS["deep"](name.value)
    return None


def _destination(evidence: Evidence) -> list[str | None] | None:
    found = evidence.destination
    if not isinstance(found, Known):
        return None
    to = found.value
    form = _origin_and_path(to.form_action) if to.form_action is not None else None
    return [(to.form_method or "").upper() or None, form, to.link.partition("#")[0] if to.link is not None else None]


def _origin_and_path(url: str) -> str:
    """Without query and fragment, which carry tokens and positions that differ between two loads of one page."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("#")[0].partition("?")[0]
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def digest_of(parts: Mapping[str, Any]) -> str:
    """Hex SHA-256 of a fingerprint's parts."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
