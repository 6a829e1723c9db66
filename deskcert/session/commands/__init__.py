"""The commands of a session, one file a family, and the names that are known but not available yet."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from deskcert.session.commands import batch, desktop, element, finding, observation, page, picture, run, tabs, waiting
from deskcert.session.desk import Handler
from deskcert_schema.vocabulary import Command

__all__ = ["COMMANDS", "NOT_YET", "RESERVED"]

COMMANDS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        c.name.value: c
        for family in (observation, finding, waiting, picture, element, page, tabs, desktop, batch, run)
        for c in family.COMMANDS
    }
)

NOT_YET: Final = frozenset(c.value for c in Command) - frozenset(COMMANDS)
"""Names of the contract that this version answers with ACTION_NOT_SUPPORTED."""

RESERVED: Final = frozenset(
    (
        *("key-down", "key-up", "mouse-down", "mouse-up", "mouse-move", "mouse-click", "mouse-wheel"),
        *("list-notifications", "dismiss-notification", "dismiss-all-notifications", "notification-action"),
    )
)
"""Held keys and buttons, raw coordinates, notifications: without an identity there is nothing to certify."""
