"""Payloads as a guarded session writes them, for measuring on what ledgers hold: about 700 bytes, a hundred values."""

from __future__ import annotations

import random
from hashlib import sha256
from typing import Any

__all__ = ["payload"]

_NAMES = ("Approve", "Ship", "Cancel", "Reply", "Größe ändern", "Archive", "Send payout", "Mark as handled")
_CHECKS = ("attached", "supported_action", "mode", "visible", "enabled", "receives_events")
_EVENTS = (
    "pointerover",
    "mouseover",
    "pointermove",
    "pointerdown",
    "mousedown",
    "focus",
    "pointerup",
    "mouseup",
    "click",
)


def _digest(choose: random.Random) -> str:
    return sha256(choose.randbytes(8)).hexdigest()


def payload(number: int, choose: random.Random) -> tuple[str, dict[str, Any]]:
    """(kind, payload) of record `number`: observation, intent and result by turns, now and then a request."""
    row, name = f"Order {1000 + number % 40}", choose.choice(_NAMES)
    document, node = _digest(choose)[:32].upper(), f"n{choose.randrange(400)}"
    url = f"http://127.0.0.1:45387/orders?page={choose.randrange(9)}"
    if number % 10 == 0:
        how: dict[str, Any] = {"method": "POST", "url_class": "/api/orders/*/approve", "body_digest": _digest(choose)}
        return "net.allowed", {**how, "intent": number - 1, "how": "causal"}
    match number % 3:
        case 0:
            window = {"id": document, "title": f"Orders · {row}", "url": url, "document": document}
            options = {"interactive_only": False, "compact": False, "max_depth": None, "budget_ms": 3000}
            facts = {"snapshot_id": f"s{choose.randrange(10**9)}", "complete": True, "nodes": choose.randrange(300)}
            return "observation", {**facts, "window": window, "options": options, "observe_us": choose.randrange(10**5)}
        case 1:
            place = {"document": document, "node": node, "role": "button", "name": name}
            looks = [
                {"t_us": choose.randrange(10**5), "changed": dict.fromkeys(_CHECKS, "pass") if look == 0 else {}}
                for look in range(choose.randrange(1, 3))
            ]
            evidence = {
                **place,
                "context": [["group", "Orders"], ["row", row]],
                "url": url,
                "paths": [],
                "states": {"visible": True, "enabled": True, "focused": False},
                "actions": ["click", "press"],
                "box": [choose.randrange(10**6), choose.randrange(10**6), 90203, 32000],
                "digest": _digest(choose),
            }
            return "action.intent", {
                "command": "click",
                "args": {"ref": f"@s{number}:e8", "timeout_ms": 5000},
                "target": place,
                "evidence": evidence,
                "policy": {"digest": _digest(choose), "verdict": "allow", "rules_evaluated": 5},
                "actionability": {"checks": [{"check": check, "status": "pass"} for check in _CHECKS], "looks": looks},
                "mode": "headless",
                "fingerprint": _digest(choose),
            }
        case _:
            phases = ("resolve", "policy", "wait", "lease", "commit", "dispatch", "verify")
            return "action.result", {
                "of": number - 1,
                "ok": True,
                "delivery": "delivered_unverified",
                "retry": "unsafe",
                "verification": {"scope": "none", "satisfied": None},
                "dispatch": {"end": "completed", "reached": True, "events_sent": list(_EVENTS)},
                "phases_us": {phase: choose.randrange(10**5) for phase in phases},
                "hit": {"role": "button", "name": name, "same_as_target": True},
            }
