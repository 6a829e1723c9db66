"""The log of everything the application really did: one JSON object a line, written when the database has committed.

It is written by the server, read by the oracle in its own process, and never seen by the agent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["KINDS", "Cause", "EffectLog"]

KINDS = (
    "account.deleted",
    "collection.booked",
    "export.created",
    "file.archived",
    "lab.pressed",
    "message.handled",
    "message.sent",
    "note.saved",
    "order.approved",
    "order.cancelled",
    "order.shipped",
    "payment.confirmed",
    "payout.approved",
    "payout.reference_saved",
    "payout.sent",
    "price.released",
    "settings.saved",
    "stock.reordered",
    "van.released",
)
"""Everything that can stand in the log."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Which request an effect came from."""

    request: str
    """Method and path, such as `POST /api/orders/1001/approve`."""
    via: str
    """`proxy | direct`: by which connection the request came."""


class EffectLog:
    """Append-only within one run; `restart` empties it for the next one."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, kind: str, identity: int | str, cause: Cause, fields: Mapping[str, Any]) -> None:
        """One `write` call for one line, so that a reader never sees half of one."""
        assert kind in KINDS, kind
        line = {
            "t": datetime.now(UTC).isoformat(timespec="microseconds"),
            "kind": kind,
            "id": identity,
            "via": cause.via,
            "request": cause.request,
            "fields": dict(fields),
        }
        os.write(self._file, json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def restart(self) -> None:
        os.ftruncate(self._file, 0)

    def close(self) -> None:
        os.close(self._file)
