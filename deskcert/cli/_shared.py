"""What several commands share: exit codes, words for errors, the pin of a verification."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from deskcert_schema.errors import DeskcertError, LedgerFormatError, LedgerTampered, UsageError

if TYPE_CHECKING:
    from deskcert_ledger.note import Verifier

__all__ = ["Exit", "exit_code_of", "fresh_out", "pins_for", "say"]


class Exit(IntEnum):
    """Of `ci`, `demo` and `score` (certify.md)."""

    CERTIFIED = 0
    NOT_CERTIFIED = 1
    USAGE = 2
    INCONCLUSIVE = 3
    BROKEN_EVIDENCE = 4


def exit_code_of(error: DeskcertError) -> Exit:
    match error:
        case UsageError():
            return Exit.USAGE
        case LedgerTampered() | LedgerFormatError():
            return Exit.BROKEN_EVIDENCE
        case _:
            return Exit.INCONCLUSIVE


def say(sentence: str) -> None:
    """To standard error: standard output is for results."""
    print(sentence, file=sys.stderr, flush=True)


def pins_for(keys: Sequence[str]) -> tuple[Verifier, ...]:
    """The keys that were given, else the local project's. A key carried inside the evidence never is a pin."""
    from deskcert_ledger.keys import load_pins, local_pin

    if keys:
        return load_pins(list(keys))
    pin = local_pin(Path.cwd())
    return () if pin is None else (pin,)


def fresh_out(cwd: Path, stamp: str) -> Path:
    """`deskcert-out/<UTC time>`, with a number behind it where that exists already."""
    base = cwd / "deskcert-out" / stamp
    out, number = base, 2
    while out.exists():
        out, number = base.with_name(f"{stamp}-{number}"), number + 1
    return out
