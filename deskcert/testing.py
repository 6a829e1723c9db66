"""For tests of agents, and of deskcert itself, without a browser: a hostile application in memory under the real guard.

    run = SimulatedRun(World([Element("n1", "order-1", name="Approve")]), {"version": 1, "deny": [...]})
    ref = run.snapshot()[0]
    outcome = run.act("click", ref)
    run.world.delivered          # the truth
    run.records                  # what the ledger would hold

Virtual time, no I/O. What goes wrong is in `World`; `run.at` changes the world at a pipeline point;
`run.lose_ledger_at` makes the ledger fail.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from deskcert.adapters.base import Action, Dispatch, DispatchEnd, Handle, Live
from deskcert.adapters.desktop import Operated
from deskcert.adapters.simulator import Delivered, Element, Fault, Simulator, World
from deskcert.contract.refs import Ref
from deskcert.guard.outcome import ActOutcome, ActRequest, Interrupted, NavigateRequest, Saved
from deskcert.guard.page import navigate
from deskcert.guard.pipeline import act
from deskcert.guard.policy import Policy, compile_policy
from deskcert.guard.retry_gate import GateState
from deskcert.guard.steps import (
    Announce,
    Answer,
    Done,
    Leased,
    Look,
    Looked,
    Navigate,
    Navigated,
    Operate,
    OperationDone,
    Perform,
    Performed,
    Record,
    Recorded,
    Release,
    Requests,
    RequestsSeen,
    Sleep,
    Step,
    TakeLease,
)
from deskcert_schema.vocabulary import PipelinePoint

__all__ = ["Delivered", "Element", "Fault", "Ledgered", "SimulatedRun", "Simulator", "World"]


DIGEST: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Ledgered:
    """One record as it would stand in the ledger; secrets are hidden, blobs put back."""

    seq: int
    kind: str
    data: Mapping[str, Any]


@dataclass(slots=True)
class SimulatedRun:
    world: World
    policy_document: Mapping[str, Any]
    at: dict[PipelinePoint, Callable[[World], None]] = field(default_factory=dict)
    """What happens to the application at a point; each once."""
    interrupt_before: type | None = None
    """A step class: the driver throws `Interrupted` instead of carrying out the next one."""
    lose_ledger_at: int | None = None
    """From this sequence number on nothing can be recorded."""
    lease_free: bool = True
    step_us: int = 200
    """What every step takes."""
    records: list[Ledgered] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    now: int = 0
    gate: GateState = field(default_factory=GateState)
    actions: int = 0
    newest_snapshot: int = 0
    lease_held: bool = False
    _snapshots: dict[str, tuple[int, Mapping[int, Saved]]] = field(default_factory=dict)
    _policy: Policy | None = None

    def __post_init__(self) -> None:
        self._record("run.start", {"policy": {"digest": DIGEST, "content": dict(self.policy_document)}})

    @property
    def policy(self) -> Policy:
        if self._policy is None:
            self._policy = compile_policy(self.policy_document, digest=DIGEST)
        return self._policy

    def snapshot(self) -> tuple[Ref, ...]:
        """Refs of all elements, in order; the observation is recorded."""
        seen = self.world.observe()
        name = f"s{len(self._snapshots):08d}"
        nodes = [{**raw, "ref": n} for n, raw in enumerate(seen.nodes, 1)]
        window = seen.window
        payload = {"snapshot_id": name, "complete": seen.complete, "nodes": len(nodes), "tree": {"nodes": nodes}}
        shown = {"id": window.id, "title": window.title, "url": window.url, "document": window.document}
        recorded = self._record("observation", payload | {"window": shown})
        saved = {n: Saved(raw, Handle(window.document, raw["node"]), window) for n, raw in enumerate(seen.nodes, 1)}
        if recorded.seq is not None:
            self.newest_snapshot = recorded.seq
            self._snapshots[name] = (recorded.seq, saved)
        return tuple(Ref(name, n) for n in saved) if recorded.seq is not None else ()

    def thing(self, ref: Ref) -> str:
        """The truth about what the agent saw under this ref; only while its node has not been recycled."""
        saved = self._snapshots[ref.snapshot][1][ref.n]
        found = self.world.find(saved.handle.node)
        return found.thing if found is not None else ""

    def act(self, command: str, ref: Ref, **how: Any) -> ActOutcome:
        """`value`, `key` of the action; `repeat_of`, `timeout_ms` of the request."""
        self.actions += 1
        seq, saved = self._snapshots[ref.snapshot]
        action = Action(command, how.pop("value", None), how.pop("key", None))
        request = ActRequest(
            action_no=self.actions,
            action=action,
            ref=ref,
            saved=saved[ref.n],
            snapshot_seq=seq,
            newest_snapshot_seq=self.newest_snapshot,
            policy=self.policy,
            gate=self.gate,
            run_key=b"simulated run key",
            now_us=self.now,
            secret=_hidden,
            **how,
        )
        return self._drive(act(request))

    def navigate(self, url: str, **how: Any) -> ActOutcome:
        self.actions += 1
        request = NavigateRequest(
            action_no=self.actions,
            url=url,
            window=self.world.window(),
            newest_snapshot_seq=self.newest_snapshot,
            policy=self.policy,
            gate=self.gate,
            now_us=self.now,
            **how,
        )
        return self._drive(navigate(request))

    def _drive(self, steps: Generator[Step, Answer, ActOutcome]) -> ActOutcome:
        try:
            step = next(steps)
            while True:
                if self.interrupt_before is not None and isinstance(step, self.interrupt_before):
                    self.interrupt_before = None
                    step = steps.throw(Interrupted("the run was stopped"))
                    continue
                step = steps.send(self._carry_out(step))
        except StopIteration as done:
            outcome = done.value
            assert isinstance(outcome, ActOutcome)
            self.gate = outcome.gate
            return outcome

    def _carry_out(self, step: Step) -> Answer:
        self.steps.append(step)
        self.now += step.ms * 1_000 if isinstance(step, Sleep) else self.step_us
        match step:
            case Look(handle):
                return Looked(self.world.probe(handle), self.now)
            case TakeLease():
                self.lease_held = self.lease_free
                return Leased(self.lease_free, 0, self.now)
            case Release():
                self.lease_held = False
                return Done(self.now)
            case Record(kind, payload):
                return self._record(kind.value, payload)
            case Announce(point):
                self.at.pop(point, _nothing)(self.world)
                return Done(self.now)
            case Perform(handle, action, expected, number):
                self.at.pop(PipelinePoint.DISPATCHED, _nothing)(self.world)
                return Performed(self.world.perform(handle, action, expected, number), self.now)
            case Navigate(url, number):
                return Navigated(self.world.navigate(url, number), self.now)
            case Operate():
                nothing = Dispatch(DispatchEnd.NOT_SENT, reached=False, error="there is no desktop", unsupported=True)
                return OperationDone(Operated(nothing), self.now)
            case Requests(number):
                return RequestsSeen(self.world.requests(number), self.now)
            case Sleep():
                return Done(self.now)

    def _record(self, kind: str, payload: Mapping[str, Any]) -> Recorded:
        seq = len(self.records)
        if self.lose_ledger_at is not None and seq >= self.lose_ledger_at:
            return Recorded(None, 0, self.now, "the disk is full")
        # As in the ledger: `kind` is the record's own kind on a line.
        line = {("detail_kind" if key == "kind" else key): value for key, value in payload.items()}
        self.records.append(Ledgered(seq, kind, line))
        return Recorded(seq, self.step_us, self.now)

    def of_kind(self, kind: str) -> list[Ledgered]:
        return [r for r in self.records if r.kind == kind]

    def sees(self, ref: Ref) -> Live | None:
        """One look at what a ref points to, outside any action."""
        probed = self.world.probe(self._snapshots[ref.snapshot][1][ref.n].handle)
        return probed if isinstance(probed, Live) else None


def _nothing(_: World) -> None:
    return None


def _hidden(value: str, openable: bool) -> dict[str, Any]:
    return {"hidden": True, "openable": openable, "characters": len(value)}
