"""Drops the snapshot from a ref: says `@e7` and trusts that everybody means the same page."""

from __future__ import annotations

from deskcert.agents.decisions import Decisions
from deskcert.agents.page import Node

__all__ = ["BareRef"]


class BareRef(Decisions):
    def ref_of(self, target: Node) -> str | None:
        return None if target.ref is None else "@" + target.ref.rpartition(":")[2]
