"""The envelope: the one shape of every answer. Built here and nowhere else, so that its rules hold everywhere.

    {"version":"2.5","ok":true, "command":"click","data":{…},"ledger":{…}}
    {"version":"2.5","ok":false,"command":"click","error":{"code","message",…,"disposition":{…}},"ledger":{…}}

- Optional keys are left out, never null.
- A disposition is on every error and on every acting success; a success carries one of `SUCCESS_DELIVERIES` only.
- A denial (`POLICY_DENIED`) is `not_delivered`, carries `details.retryable: false` and no `recovery`.
- `recovery` stands only beside a disposition whose retry is safe.

Source: the design's contract.md. A caller that breaks a rule gets `ContractError`: that is a defect of ours, and an
answer that claims too much must not leave the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from deskcert_schema.disposition import SUCCESS_DELIVERIES, Delivery, Disposition, Retry
from deskcert_schema.errors import ContractError
from deskcert_schema.vocabulary import Code, Command, DetailKind

__all__ = ["ACTING", "VERSION", "Failure", "LedgerPlace", "Recovery", "acted", "failure", "recovery_for", "success"]

VERSION: Final = "2.5"

ACTING: Final = frozenset(
    {
        Command.CLICK,
        Command.DOUBLE_CLICK,
        Command.TRIPLE_CLICK,
        Command.RIGHT_CLICK,
        Command.HOVER,
        Command.FOCUS,
        Command.TYPE,
        Command.SET_VALUE,
        Command.CLEAR,
        Command.PRESS,
        Command.TAB_FOCUS,
        Command.TAB_CLOSE,
        Command.SELECT,
        Command.CHECK,
        Command.UNCHECK,
        Command.TOGGLE,
        Command.EXPAND,
        Command.COLLAPSE,
        Command.SCROLL,
        Command.SCROLL_TO,
        Command.DRAG,
        Command.UPLOAD,
        Command.NAVIGATE,
        Command.BACK,
        Command.FORWARD,
        Command.RELOAD,
        Command.DIALOG_ACCEPT,
        Command.DIALOG_DISMISS,
        Command.LAUNCH,
        Command.CLOSE_APP,
        Command.FOCUS_WINDOW,
        Command.MOVE_WINDOW,
        Command.RESIZE_WINDOW,
        Command.MINIMIZE,
        Command.MAXIMIZE,
        Command.RESTORE,
        Command.CLIPBOARD_SET,
    }
)
"""Commands whose success is an acting result, with a disposition."""


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """Where the answer's records stand; `seq` is what `repeat_of` names."""

    seq: int
    result_seq: int | None = None
    commit_us: int | None = None
    """Time of the durable commit of the last of them, microseconds."""

    def as_json(self) -> dict[str, Any]:
        return _present({"seq": self.seq, "result_seq": self.result_seq, "commit_us": self.commit_us})


@dataclass(frozen=True, slots=True)
class Recovery:
    """What could help, for an agent that may retry. Never a command to execute."""

    strategy: str
    retryable: bool
    requires_fresh_snapshot: bool
    retry_after_ms: int | None = None

    def as_json(self) -> dict[str, Any]:
        return _present(
            {
                "strategy": self.strategy,
                "retryable": self.retryable,
                "requires_fresh_snapshot": self.requires_fresh_snapshot,
                "retry_after_ms": self.retry_after_ms,
            }
        )


_REFRESH: Final = Recovery("refresh_snapshot_then_retry_original", True, True)
_INSPECT: Final = Recovery("inspect_state_then_retry_original", True, True, 250)
_RECOVERIES: Final[Mapping[Code, Recovery]] = MappingProxyType(
    {
        Code.STALE_REF: _REFRESH,
        Code.SNAPSHOT_NOT_FOUND: _REFRESH,
        Code.APP_UNRESPONSIVE: _INSPECT,
        Code.TIMEOUT: _INSPECT,
    }
)


def recovery_for(code: Code, disposition: Disposition) -> Recovery | None:
    """None where a retry is not safe, or would not help."""
    return _RECOVERIES.get(code) if disposition.retry is Retry.SAFE else None


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer's `error`. Checked when made: raises `ContractError` for a claim that the contract forbids."""

    code: Code
    message: str
    disposition: Disposition
    kind: DetailKind | None = None
    """Stands in `details.kind`."""
    suggestion: str | None = None
    recovery: Recovery | None = None
    details: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.message:
            raise ContractError(f"an error {self.code} needs a message")
        if self.recovery is not None and self.disposition.retry is not Retry.SAFE:
            raise ContractError(f"recovery beside {self.disposition.delivery}: only a safe retry has one")
        if self.code is Code.POLICY_DENIED:
            self._check_denial()

    def _check_denial(self) -> None:
        if self.kind is None:
            raise ContractError("a denial needs a kind")
        if self.disposition.delivery is not Delivery.NOT_DELIVERED:
            raise ContractError(f"a denial is not_delivered, never {self.disposition.delivery}")
        if self.recovery is not None:
            raise ContractError("a denial has no recovery")
        if self.kind is DetailKind.UNSAFE_RETRY and "original" not in (self.details or {}):
            raise ContractError("unsafe_retry needs details.original: what the repeat would repeat")

    def as_json(self) -> dict[str, Any]:
        details = dict(self.details or {})
        if self.kind is not None:
            details["kind"] = self.kind.value
        if self.code is Code.POLICY_DENIED:
            details["retryable"] = False
        return _present(
            {
                "code": self.code.value,
                "message": self.message,
                "suggestion": self.suggestion,
                "recovery": None if self.recovery is None else self.recovery.as_json(),
                "details": details or None,
                "disposition": self.disposition.as_json(),
            }
        )


def success(command: Command, data: Mapping[str, Any], *, ledger: LedgerPlace | None = None) -> dict[str, Any]:
    """Of a command that reads. Raises `ContractError` for an acting command: that is `acted`."""
    if command in ACTING:
        raise ContractError(f"{command} acts: its success carries a disposition")
    return _envelope(command, True, "data", _present(data), ledger)


def acted(
    command: Command, data: Mapping[str, Any], disposition: Disposition, *, ledger: LedgerPlace | None = None
) -> dict[str, Any]:
    """Of a command that acts; `disposition` is put into `data`.

    Raises `ContractError` for a delivery that no success may carry, and for `data` that says another one.
    """
    if disposition.delivery not in SUCCESS_DELIVERIES:
        raise ContractError(f"no success is {disposition.delivery}; answer with an error")
    stamped = disposition.as_json()
    if data.get("disposition", stamped) != stamped:
        raise ContractError(f"the data says {data['disposition']}, the answer {stamped}")
    return _envelope(command, True, "data", {**_present(data), "disposition": stamped}, ledger)


def failure(command: str, error: Failure, *, ledger: LedgerPlace | None = None) -> dict[str, Any]:
    """`command` is what was asked, which need not be a command; cut to 100 characters."""
    return _envelope(command[:100] or "unknown", False, "error", error.as_json(), ledger)


def _envelope(command: str, ok: bool, key: str, content: dict[str, Any], ledger: LedgerPlace | None) -> dict[str, Any]:
    envelope: dict[str, Any] = {"version": VERSION, "ok": ok, "command": str(command), key: content}
    if ledger is not None:
        envelope["ledger"] = ledger.as_json()
    return envelope


def _present(value: Mapping[str, Any]) -> dict[str, Any]:
    """Without keys whose value is None, at every depth."""
    return {key: _within(item) for key, item in value.items() if item is not None}


def _within(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _present(value)
    if isinstance(value, list | tuple):
        return [_within(item) for item in value]
    return value
