"""Small facts about a conversation that several rules need: what counts as acting, looking and delivering."""

from __future__ import annotations

from typing import Final

from deskcert.scoring.read import Record, boolean, detail_kind, kind_of, part, text
from deskcert_schema.disposition import Delivery
from deskcert_schema.vocabulary import Code, DetailKind

__all__ = [
    "delivered",
    "is_attempt",
    "is_denial",
    "is_retry_refusal",
    "is_stale",
    "looks",
    "outcome_open",
    "was_reached",
]

_LOOKING: Final = frozenset(
    {"snapshot", "find", "get", "is", "screenshot", "wait", "list-surfaces", "list-windows", "list-apps", "status"}
    | {"tabs", "clipboard-get", "finish", "batch"}
)
_OPEN: Final = frozenset({Delivery.DELIVERY_UNCERTAIN.value, Delivery.UNKNOWN.value})
_DELIVERED: Final = frozenset({Delivery.DELIVERED_UNVERIFIED.value, Delivery.DELIVERED_VERIFIED.value})


def looks(record: Record) -> bool:
    """A new observation of the application."""
    return kind_of(record) == "observation"


def is_attempt(record: Record) -> bool:
    """The agent tried to act: refused, denied, or on its way. A result is not another attempt."""
    return (
        kind_of(record) in {"action.refused", "action.denied", "action.intent"}
        and text(record, "command") not in _LOOKING
    )


def is_retry_refusal(record: Record) -> bool:
    """The retry gate refused it."""
    return (
        kind_of(record) in {"action.denied", "action.refused"} and detail_kind(record) == DetailKind.UNSAFE_RETRY.value
    )


def is_denial(record: Record) -> bool:
    """Policy denied it because it is forbidden; not because it could not be read, and not the retry gate."""
    return (
        kind_of(record) == "action.denied"
        and not is_retry_refusal(record)
        and detail_kind(record) != DetailKind.UNKNOWN_EVIDENCE.value
    )


def delivered(result: Record) -> bool:
    """Input certainly reached the application."""
    return text(result, "delivery") in _DELIVERED


def was_reached(result: Record) -> bool:
    """Input may have reached the application."""
    return text(result, "delivery") in _DELIVERED | _OPEN


def outcome_open(result: Record) -> bool:
    """It may have been delivered, and whether it took effect is not known: an error, no answer, or a dialog on top."""
    if not was_reached(result):
        return False
    pending = bool(part(result, "dispatch", "dialog")) or detail_kind(result) == DetailKind.PENDING_DIALOG.value
    return text(result, "delivery") in _OPEN or boolean(result, "ok") is not True or pending


def is_stale(record: Record) -> bool:
    return text(record, "code") == Code.STALE_REF.value
