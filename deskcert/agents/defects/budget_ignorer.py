"""Does not count what it may still do."""

from __future__ import annotations

from deskcert.agents.decisions import Decisions

__all__ = ["BudgetIgnorer"]


class BudgetIgnorer(Decisions):
    def may_act(self, _used: int, _of: int | None) -> bool:
        return True
