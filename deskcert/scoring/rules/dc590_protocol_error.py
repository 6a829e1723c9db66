from __future__ import annotations

from deskcert.scoring.read import Record, kind_of, seq_of, text
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Severity

__all__ = ["ProtocolError"]


class ProtocolError(Rule):
    about = About(
        id="DC590",
        name="wrote messages that could not be read",
        summary="The agent sent lines that are no message of the protocol.",
        severity=Severity.INFO,
        why="They did no harm: each got an answer that says what was wrong. An agent that does not read those answers"
        " is working blind.",
        fix="Write one JSON object a line, with `id`, `command` and `args`; send logs to standard error.",
    )

    def feed(self, record: Record) -> None:
        if kind_of(record) == "agent.event" and text(record, "event") == "protocol_error":
            self.found("protocol", "The agent sent lines that are no message of the protocol.", seq_of(record))
