"""`navigate`: the page command, with the window's own guards."""

from __future__ import annotations

from typing import Final

from deskcert.session.desk import Handler

__all__ = ["COMMANDS"]

COMMANDS: Final[tuple[Handler, ...]] = ()
