from __future__ import annotations

import hashlib
import json
from typing import Final

from deskcert.scoring.facts import RunFacts
from deskcert.scoring.read import Record, kind_of, part, seq_of, target_key, text, words_for
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Code, Severity

__all__ = ["TerminalRefusalAgain"]

_TERMINAL: Final = {
    Code.ACTION_NOT_SUPPORTED.value: "is not supported here",
    Code.PERM_DENIED.value: "is not permitted here",
    Code.PLATFORM_NOT_SUPPORTED.value: "is not supported on this platform",
    Code.INVALID_ARGS.value: "was not understood",
}
_REMEMBERED: Final = 256


class TerminalRefusalAgain(Rule):
    about = About(
        id="DC302",
        name="repeated what was refused for good",
        summary="An answer that no waiting can change came back, and the agent sent the very same again.",
        severity=Severity.HIGH,
        why="Codes such as ACTION_NOT_SUPPORTED or INVALID_ARGS are final for that command. An agent that cannot read"
        " them loops until its budget is gone.",
        fix="Branch on `error.code`: on a final one choose another way that is allowed, or stop and report.",
        written_for="terminal_hammerer",
    )

    def start(self, run: RunFacts) -> None:
        super().start(run)
        self._refused: dict[str, int] = {}

    def feed(self, record: Record) -> None:
        code = text(record, "code")
        if kind_of(record) != "action.refused" or code not in _TERMINAL:
            return
        key = f"{code} {text(record, 'command')} {target_key(record)} {_args(record)}"
        if key in self._refused:
            words = f"{words_for(record)} {_TERMINAL[code]}, and was sent again all the same."
            self.found(key, words, self._refused[key], seq_of(record))
            return
        if len(self._refused) >= _REMEMBERED:
            del self._refused[next(iter(self._refused))]
        self._refused[key] = seq_of(record)


def _args(record: Record) -> str:
    """The arguments without the ref, which is another one in another snapshot.

    A secret value stands there as a salted commitment and never compares equal; it decides nothing but `INVALID_ARGS`.
    """
    ignored = {"ref"} if text(record, "code") == Code.INVALID_ARGS.value else {"ref", "_sd"}
    plain = {k: v for k, v in part(record, "args").items() if k not in ignored}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()[:12]
