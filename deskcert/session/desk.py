"""What the commands of one session share: the parts they work with, and the state that they change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskcert.adapters.base import Adapter
from deskcert.contract.refs import Ref
from deskcert.guard.retry_gate import GateState
from deskcert.session.answers import Refused
from deskcert.session.args import Arg
from deskcert.session.budget import Budget
from deskcert.session.driver import Driver
from deskcert.session.happenings import Happenings
from deskcert.session.pictures import Take
from deskcert.session.points import AtPoint
from deskcert.session.records import Records
from deskcert.session.snapshots import Saved, SnapshotStore
from deskcert_schema.vocabulary import ClaimOutcome, Code, Command, DetailKind, Mode

if TYPE_CHECKING:
    from deskcert.guard.policy import Policy

__all__ = ["Call", "Desk", "Handler", "Options", "target_of"]


@dataclass(frozen=True, slots=True)
class Options:
    """Of one session, given by whoever starts it."""

    budget: Budget = field(default_factory=Budget)
    mode: Mode = Mode.HEADLESS
    timeout_ms: int = 5_000
    """Of the wait, where a command gives none."""
    bait: tuple[str, ...] = ()
    """Texts whose sight an observation records (`bait_seen`)."""
    kept_snapshots: int = 128
    upload_folders: tuple[Path, ...] = ()
    """Whose files may be uploaded; none by default."""
    pictures: Take = Take.OFF
    downloads: Path | None = None
    """Folder of the run in which downloads are kept; without one none is."""


@dataclass(slots=True)
class State:
    actions: int = 0
    """Acting commands so far; the number of the newest one."""
    snapshots: SnapshotStore = field(default_factory=SnapshotStore)
    gate: GateState = field(default_factory=GateState)
    """Made and read by the guard only."""
    claim: ClaimOutcome | None = None
    last_target: dict[str, Any] | None = None
    """seq, role and name of the last element that was acted on: a dialog may have been opened by it."""


@dataclass(frozen=True, slots=True)
class Desk:
    adapter: Adapter
    records: Records
    driver: Driver
    policy: Policy
    options: Options
    at_point: AtPoint
    now_us: Callable[[], int]
    started_us: int
    rng: Callable[[int], bytes]
    key: bytes = field(repr=False)
    """Of this run's fingerprints; never written anywhere."""
    handle: Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]] = field(repr=False)
    """One more command within this one's turn: what a batch is made of."""
    state: State
    happenings: Happenings

    def saved(self, ref: Ref, *, to_look_into: bool = False) -> Saved:
        """(1) (2) What was saved for a ref. Raises `Refused`, also for one that is only there to be looked into."""
        snapshot = self.state.snapshots.find(ref.snapshot)
        if snapshot is None:
            raise Refused(
                Code.SNAPSHOT_NOT_FOUND,
                f"this session has no snapshot {ref.snapshot}; the newest {self.options.kept_snapshots} are kept",
                phase="parse",
                suggestion="take a snapshot and use its refs",
                target={"ref": str(ref)},
            )
        found = snapshot.saved(ref.n)
        if found is None:
            raise Refused(
                Code.STALE_REF,
                f"snapshot {ref.snapshot} has no element e{ref.n}; its refs go from e1 to e{snapshot.ref_count}",
                phase="resolve",
                kind=DetailKind.RESOLUTION_COMPLETE_ABSENCE,
                target={"ref": str(ref)},
                snapshot_seq=snapshot.seq,
            )
        if found.node.get("anchor") is True and not to_look_into:
            raise Refused(
                Code.ACTION_NOT_SUPPORTED,
                f"{ref} is a part of the page, cut off in a skeleton; it can only be looked into",
                phase="resolve",
                suggestion=f"snapshot with root {ref} shows what is in it, with refs of its own",
                target=target_of(found),
                snapshot_seq=found.snapshot_seq,
            )
        return found


@dataclass(frozen=True, slots=True)
class Call:
    """One command, parsed."""

    command: str
    raw: Mapping[str, Any]
    values: Mapping[str, Any]
    action: int
    """Number of this acting command; for others the number of the newest one."""


@dataclass(frozen=True, slots=True)
class Handler:
    """One command: its arguments and what it does."""

    name: Command
    args: tuple[Arg, ...]
    run: Callable[[Desk, Call], Awaitable[dict[str, Any]]]
    """The envelope. Raises `Refused`."""
    acting: bool = False
    through_dialog: bool = False
    """Also while a dialog blocks the page."""
    always: bool = False
    """Also when the budget is used up."""


def target_of(saved: Saved) -> dict[str, Any]:
    """Whom an answer or a record names: ref, role, name, context, as they were seen."""
    node = saved.node
    return {
        "ref": str(saved.ref),
        "role": node.get("role", "unknown"),
        "name": node.get("name"),
        "context": [list(pair) for pair in node.get("context", ())],
    }
