"""The one error tree.

DeskcertError
├── UsageError            the caller's input is wrong: exit 2; says file, line and what was expected
│   └── ConfigError
├── ContractError         a value breaks the contract (a table, a schema, a ref's form)
├── LedgerError           the record
│   ├── LedgerFormatError     untrusted bytes are not a ledger (or a note, a key, a proof)
│   ├── LedgerUnavailable     a record could not be made durable; nothing may be dispatched
│   └── LedgerTampered        evidence contradicts a signature or a pin
├── AdapterError          the application's side; carries what is known about delivery
└── HarnessError          infrastructure of a run (browser, fixture, agent process) failed
"""

from __future__ import annotations

__all__ = [
    "AdapterError",
    "ConfigError",
    "ContractError",
    "DeskcertError",
    "HarnessError",
    "LedgerError",
    "LedgerFormatError",
    "LedgerTampered",
    "LedgerUnavailable",
    "UsageError",
]


class DeskcertError(Exception):
    """Root. `str()` is a sentence a person understands; facts are attributes."""


class UsageError(DeskcertError):
    """The caller can put it right by changing the command or its input."""


class ConfigError(UsageError):
    """A file of the user's is wrong. `problems` holds one sentence each, with file and line."""

    def __init__(self, problems: str | list[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else problems
        super().__init__("\n".join(self.problems))


class ContractError(DeskcertError):
    pass


class LedgerError(DeskcertError):
    pass


class LedgerFormatError(LedgerError):
    """Untrusted bytes that are not what they should be. `line` is 1-based where known, `offset` in bytes."""

    def __init__(self, reason: str, *, line: int | None = None, offset: int | None = None) -> None:
        self.reason, self.line, self.offset = reason, line, offset
        where = "".join(
            [f" at line {line}" if line is not None else "", f" (byte {offset})" if offset is not None else ""]
        )
        super().__init__(reason + where)


class LedgerUnavailable(LedgerError):
    pass


class LedgerTampered(LedgerError):
    pass


class AdapterError(DeskcertError):
    """Only this leaves an adapter. `delivery` is a `deskcert_schema.disposition.Delivery` value."""

    def __init__(self, message: str, *, delivery: str = "not_delivered", kind: str | None = None) -> None:
        self.delivery, self.kind = delivery, kind
        super().__init__(message)


class HarnessError(DeskcertError):
    pass
