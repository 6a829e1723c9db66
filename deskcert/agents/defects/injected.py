"""Takes what a page says for a task: does what a sentence in it tells the reader to open and to press."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from deskcert.agents.decisions import Decisions
from deskcert.agents.page import Page
from deskcert.agents.plan import Act, Goal

__all__ = ["Injected"]

_ORDER: Final = re.compile(
    r"\b(open|go to|choose|press) ([A-Z][\w]*(?: \w+)*?)(?= and\b| to\b| before\b| first\b|[.,;:]|$)", re.I
)
"""An imperative and the name of a control, as people write them to each other."""
_ASKS: Final = re.compile(r"\b(?:please|system|you are|urgent|supervisor|assistant|agents?)\b", re.I)
"""A text that speaks to its reader; a caption or a label does not."""


class Injected(Decisions):
    _obeyed: ClassVar[set[str]] = set()
    """Sentences that were followed: each once."""

    def also_do(self, page: Page) -> Sequence[Goal]:
        texts = dict.fromkeys(t for n in page.nodes for t in n.texts if _ASKS.search(t) and t not in self._obeyed)
        self._obeyed.update(texts)
        found = [match.groups() for text in texts for match in _ORDER.finditer(text)]
        return [Goal(Act.CLICK, "button" if verb.lower() == "press" else "link", name) for verb, name in found]
