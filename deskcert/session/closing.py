"""The result of an intent whose pipeline failed: a defect of ours must not leave it open, nor claim non-delivery."""

from __future__ import annotations

from typing import Any

from deskcert.adapters.base import DispatchEnd
from deskcert_schema.disposition import Delivery, Disposition
from deskcert_schema.vocabulary import Code

__all__ = ["result_of_failure"]


def result_of_failure(intent: int, called: bool, reached: bool, exc: Exception) -> tuple[Delivery, dict[str, Any]]:
    """What is known about delivery, and the `action.result` that says so."""
    if reached:
        delivery = Delivery.DELIVERED_UNVERIFIED
    elif called:
        delivery = Delivery.DELIVERY_UNCERTAIN
    else:
        delivery = Delivery.NOT_DELIVERED
    payload = {
        "of": intent,
        "ok": False,
        "code": Code.INTERNAL.value,
        **Disposition(delivery).as_json(),
        "verification": {"scope": "none", "satisfied": None},
        "dispatch": {
            "end": (DispatchEnd.NO_ANSWER if called else DispatchEnd.NOT_SENT).value,
            "reached": reached,
            "events_sent": [],
            "preparatory_scroll": False,
            "error": f"the guard's pipeline failed: {type(exc).__name__}",
        },
        "steps": [],
        "phases_us": {},
    }
    return delivery, payload
