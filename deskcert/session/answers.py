"""How a command says that nothing was done: the session records it and makes the envelope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deskcert.contract.envelope import Failure, recovery_for
from deskcert_schema.disposition import Delivery, Disposition
from deskcert_schema.vocabulary import Code, DetailKind

__all__ = ["Refused", "not_delivered"]

_NOTHING = Disposition(Delivery.NOT_DELIVERED)


class Refused(Exception):
    """Nothing was dispatched, and why. Becomes an `action.refused` record and an error envelope.

    `phase` is the record's: `parse resolve gate actionability lease budget ledger`."""

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        phase: str,
        kind: DetailKind | None = None,
        suggestion: str | None = None,
        details: Mapping[str, Any] | None = None,
        target: Mapping[str, Any] | None = None,
        snapshot_seq: int | None = None,
    ) -> None:
        self.code, self.message, self.phase, self.kind = code, message, phase, kind
        self.suggestion, self.details = suggestion, details
        self.target, self.snapshot_seq = target, snapshot_seq
        super().__init__(message)


def not_delivered(
    code: Code,
    message: str,
    *,
    kind: DetailKind | None = None,
    suggestion: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> Failure:
    """An error of which it is certain that nothing reached the application, with the recovery that its code has."""
    return Failure(code, message, _NOTHING, kind, suggestion, recovery_for(code, _NOTHING), details)
