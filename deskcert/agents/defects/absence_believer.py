"""Takes every look for a whole one: what it did not see is not there."""

from __future__ import annotations

from dataclasses import replace

from deskcert.agents.decisions import Decisions
from deskcert.agents.page import Page

__all__ = ["AbsenceBeliever"]


class AbsenceBeliever(Decisions):
    def as_seen(self, page: Page) -> Page:
        return replace(page, complete=True)
