"""What the pipeline is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from deskcert.adapters.base import Action, Handle, RawNode, WindowState
from deskcert.contract.refs import Ref
from deskcert.guard.policy import Policy
from deskcert.guard.retry_gate import GateState
from deskcert_schema.disposition import Delivery, Disposition, Retry
from deskcert_schema.vocabulary import Code, DetailKind, Mode

__all__ = ["ActOutcome", "ActRequest", "Interrupted", "NavigateRequest", "Saved", "SecretFactory", "recovery_for"]

type SecretFactory = Callable[[str, bool], Any]
"""`deskcert_ledger.Secret`, handed in so that the guard needs no ledger: (value, openable)."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What the snapshot kept for a ref."""

    node: RawNode
    handle: Handle
    window: WindowState


@dataclass(frozen=True, slots=True)
class ActRequest:
    """One ref action. `now_us` is monotonic, as in every answer; `timeout_ms` 0 is one look."""

    action_no: int
    action: Action
    ref: Ref
    saved: Saved
    snapshot_seq: int
    """Sequence number of the observation that made the ref."""
    newest_snapshot_seq: int
    """Of the newest observation of this run."""
    policy: Policy
    gate: GateState
    run_key: bytes = field(repr=False)
    """Per run, random, never written: keys the fingerprint's value."""
    now_us: int
    secret: SecretFactory
    repeat_of: int | None = None
    timeout_ms: int = 5_000
    mode: Mode = Mode.HEADLESS
    prev_commit_us: int = 0
    to: tuple[Ref, Saved] | None = None
    """For a drag: where it ends."""


@dataclass(frozen=True, slots=True)
class NavigateRequest:
    """A page command. `window` is the window as it is now, `url` where the command leads (for a dialog, where it
    stands)."""

    action_no: int
    url: str
    window: WindowState
    newest_snapshot_seq: int
    policy: Policy
    gate: GateState
    now_us: int
    repeat_of: int | None = None
    timeout_ms: int = 10_000
    mode: Mode = Mode.HEADLESS
    prev_commit_us: int = 0
    command: str = "navigate"
    dialog: Mapping[str, Any] | None = None
    """id, type, text, and `opener` (role and name of what was acted on when it opened), where they are known."""
    text: str | None = None
    """For the field of a prompt: secret."""
    secret: SecretFactory | None = None
    tab: Mapping[str, Any] | None = None
    """id and title of the tab that is focused or closed; `url` is then its address."""

    @property
    def target(self) -> dict[str, Any]:
        about = {"dialog": self.dialog, "tab": self.tab}
        return {"url": self.url} | {k: dict(v) for k, v in about.items() if v is not None}


@dataclass(frozen=True, slots=True)
class ActOutcome:
    """Everything an envelope needs. `data` on ok, `code`, `kind`, `message` otherwise."""

    ok: bool
    disposition: Disposition
    gate: GateState
    """The gate's next state: the driver keeps it for the next action."""
    code: Code | None = None
    kind: DetailKind | None = None
    message: str = ""
    suggestion: str = ""
    recovery: Mapping[str, Any] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    seq: int | None = None
    """Of the intent, denial or refusal; None when nothing could be recorded."""
    result_seq: int | None = None
    commit_us: int = 0
    """Of the last durable record: the next request's `prev_commit_us`."""

    def __post_init__(self) -> None:
        assert self.ok == (self.code is None)


class Interrupted(Exception):
    """The driver throws this into the generator when it stops waiting: cancellation, the run's end, a lost component.

    The generator answers with the steps that are still due (the lease, the result record) and returns its outcome; the
    driver carries them out, shielded. `reached`: the adapter's hook had announced `reached`.
    """

    def __init__(self, reason: str, *, reached: bool = False) -> None:
        self.reason, self.reached = reason, reached
        super().__init__(reason)


_FRESH: Final = {"strategy": "refresh_snapshot_then_retry_original", "retryable": True, "requires_fresh_snapshot": True}
_INSPECT: Final = {
    "strategy": "inspect_state_then_retry_original",
    "retryable": True,
    "requires_fresh_snapshot": True,
    "retry_after_ms": 250,
}


def recovery_for(code: Code, delivery: Delivery) -> Mapping[str, Any] | None:
    """Only where a retry is safe and could help; a denial has none."""
    if Disposition(delivery).retry is not Retry.SAFE:
        return None
    match code:
        case Code.STALE_REF | Code.SNAPSHOT_NOT_FOUND:
            return _FRESH
        case Code.APP_UNRESPONSIVE | Code.TIMEOUT:
            return _INSPECT
        case Code.ACTION_FAILED:
            return _FRESH
        case _:
            return None
