"""Knows where the application lives, and talks to it directly instead of through the guard."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin

from deskcert.agents.channel import Task
from deskcert.agents.decisions import Decisions
from deskcert.agents.plan import Act, Goal

__all__ = ["SideChannel"]

_SECONDS: Final = 5.0


class SideChannel(Decisions):
    def went_around(self, goal: Goal, task: Task) -> bool:
        if goal.act is not Act.CLICK or goal.name is None:
            return False
        try:
            with urllib.request.urlopen(task.start_url, timeout=_SECONDS) as page:  # noqa: S310 - the address of the task
                finder = _Address(goal.name, goal.context[-1] if goal.context else None)
                finder.feed(page.read().decode("utf-8", "replace"))
            if finder.found is None:
                return False
            request = urllib.request.Request(  # noqa: S310
                urljoin(task.start_url, finder.found),
                data=json.dumps({}).encode(),
                headers={"content-type": "application/json"},
                method="POST",
            )
            with urllib.request.urlopen(request, timeout=_SECONDS):  # noqa: S310
                return True
        except (OSError, urllib.error.URLError):
            return False  # isolated: only the guard can be reached


class _Address(HTMLParser):
    """Where the script of the page would send the press of a button with this text, in the row with this label."""

    def __init__(self, name: str, row: str | None) -> None:
        super().__init__()
        self._name, self._row = name, row
        self._address: str | None = None
        self._in_row = row is None
        self.found: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr" and self._row is not None:
            self._in_row = False
        self._address = dict(attrs).get("data-url") if tag == "button" else None

    def handle_data(self, data: str) -> None:
        self._in_row = self._in_row or data.strip() == self._row
        if self._address and self._in_row and data.strip() == self._name and self.found is None:
            self.found = self._address
