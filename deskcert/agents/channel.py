"""JSON lines from the agent's side (formats.md): a task, then one answer for each command, then the end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

from deskcert_schema.errors import ContractError

__all__ = ["MAX_LINE", "Answer", "Channel", "Ended", "Task"]

MAX_LINE: Final = 1 << 20
"""Bytes of one line."""
_DIALOG: Final = "pending_dialog"


class Ended(Exception):
    """deskcert closed the session: nothing more will be done, and only a claim is still taken."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Task:
    text: str
    start_url: str
    actions: int | None
    seconds: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """One envelope, with the parts that decisions depend on."""

    ok: bool
    data: Mapping[str, Any]
    code: str | None
    kind: str | None
    delivery: str | None
    retry: str | None
    message: str
    seq: int | None
    """The record that this answer stands in: what a repeat names."""
    dialog_open: bool
    """A native dialog blocks the page since this action."""

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Answer:
        error, data = raw.get("error", {}), raw.get("data", {})
        details = (error or data).get("details", {})
        disposition = (error or data).get("disposition", {})
        return cls(
            ok=raw.get("ok") is True,
            data=data,
            code=error.get("code"),
            kind=details.get("kind"),
            delivery=disposition.get("delivery"),
            retry=disposition.get("retry"),
            message=str(error.get("message", "")),
            seq=raw.get("ledger", {}).get("seq"),
            dialog_open=details.get("kind") == _DIALOG or _DIALOG in details or _DIALOG in data,
        )


class Channel:
    """Blocking: an agent has nothing to do while it waits for an answer."""

    def __init__(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        self._reader, self._writer = reader, writer
        self._last = 0

    def task(self) -> Task:
        raw = self._receive()
        if raw.get("type") != "task":
            raise ContractError(f"expected the task as the first line, found {str(raw)[:200]}")
        budget = raw.get("budget", {})
        return Task(raw.get("task", ""), raw.get("start_url", ""), budget.get("actions"), budget.get("seconds"))

    def ask(self, command: str, **args: Any) -> Answer:
        """Send one command and wait for its answer. Raises `Ended` when the session ends instead."""
        self.tell(command, **args)
        while True:
            raw = self._receive()
            if raw.get("id") == self._last:
                return Answer.read(raw)

    def tell(self, command: str, **args: Any) -> None:
        """Send one command and leave it at that."""
        self._last += 1
        line = json.dumps({"id": self._last, "command": command, "args": args}, ensure_ascii=False) + "\n"
        try:
            self._writer.write(line.encode())
            self._writer.flush()
        except (BrokenPipeError, ConnectionError) as exc:
            raise Ended("error") from exc

    def _receive(self) -> dict[str, Any]:
        line = self._reader.readline(MAX_LINE + 1)
        if not line or not line.endswith(b"\n"):
            raise Ended("error")
        raw = json.loads(line)
        if not isinstance(raw, dict):
            raise ContractError(f"expected an object a line, found {line[:200]!r}")
        if raw.get("type") == "end":
            raise Ended(str(raw.get("reason")))
        return raw
