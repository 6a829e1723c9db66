"""The guard's invariants over random histories of a hostile application. Source: guard.md, "The guard is proven".

| invariant | where it is asserted |
| --- | --- |
| never acts on another element than the one that was named | `_judge`: `thing`, which no evidence has |
| at most one delivery an action, one dispatch an intent | `_judge`, `every_dispatch_has_its_own_durable_intent` |
| nothing is dispatched after a denial | `_judge`: `POLICY_DENIED` |
| no dispatch without a durable intent; every intent gets one result | `every_dispatch_has_…`, `_judge_records` |
| the disposition agrees with what was delivered | `_judge`: `delivery` |
| unknown is never read as absent, nor as a pass | `_judge`: `unread` |
| no repeat past the retry gate | `_judge_repeat` |
| dispatched under the lease only; no wait under it; given back | `_judge_steps`, `no_lease_is_left_behind` |
| a denial is immediate: no further look, no wait, whatever else is wrong | `_judge_steps` |
| nothing is dispatched after the deadline; a late look does not count | `_judge_steps` |
| a typed value stands in no record | `_judge_records` |
| every decision comes out the same from the records alone | `teardown` |
"""

from __future__ import annotations

import json
from collections.abc import Callable

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from deskcert.contract.evidence import Destination, Known, Unknown
from deskcert.contract.refs import Ref
from deskcert.guard.outcome import ActOutcome
from deskcert.guard.steps import Announce, Look, Perform, Release, Requests, Sleep, Step, TakeLease
from deskcert.guard.steps import Record as RecordStep
from deskcert.replay.decisions import recompute_records
from deskcert.testing import Delivered, Element, Fault, Ledgered, SimulatedRun, World
from deskcert_ledger import Record
from deskcert_schema.disposition import Delivery
from deskcert_schema.vocabulary import Code, DetailKind, PipelinePoint

POLICY = {
    "version": 1,
    "deny": [
        {"id": "no-delete", "name": "Delete account"},
        {"id": "no-transfer", "destination": {"method": "POST", "url": "**/transfers"}, "action": ["click", "press"]},
    ],
}
FORBIDDEN = ("Delete account", "DeIete account", "D\u0435lete\u200b account")
ORDERS = Destination(form_action="http://app.test/orders", form_method="POST")
TRANSFERS = Destination(form_action="http://app.test/transfers", form_method="post")


def application() -> World:
    rows = [
        Element(f"n{i}", f"order-{i}", name="Approve", context=(("row", f"Order {1000 + i}"),), destination=ORDERS)
        for i in (1, 2, 3)
    ]
    return World(
        [
            *rows,
            Element("n4", "note", role="textbox", name="Note", value="", editable=True),
            Element("n5", "pin", role="textbox", name="PIN", value="", editable=True, secure=True),
            Element("n6", "account", name="Delete account"),
            Element("n7", "transfer", name="Send", destination=TRANSFERS),
        ]
    )


NODES = [f"n{i}" for i in range(1, 8)]
type Change = Callable[[World], None]


def _in_place(node: str, **what: object) -> Change:
    def change(world: World) -> None:
        world.change(node, **what)

    return change


def _whole(name: str, *nodes: str) -> Change:
    def change(world: World) -> None:
        getattr(world, name)(*nodes)

    return change


node = st.sampled_from(NODES)
field = st.sampled_from(["name", "visible", "enabled", "editable", "destination", "hit_test", "value", "secure"])
change = st.one_of(
    st.builds(lambda n, f: _in_place(n, unread=frozenset({f})), node, field),
    st.builds(lambda n: _in_place(n, unread=frozenset()), node),
    st.builds(lambda n, name: _in_place(n, name=name), node, st.sampled_from(["Approve", "Reject", "", *FORBIDDEN])),
    st.builds(lambda n, on: _in_place(n, enabled=on), node, st.booleans()),
    st.builds(lambda n, on: _in_place(n, visible=on), node, st.booleans()),
    st.builds(lambda n, by: _in_place(n, covered_by=by), node, st.sampled_from([None, "Cookies"])),
    st.builds(lambda n, to: _in_place(n, destination=to), node, st.sampled_from([None, ORDERS, TRANSFERS])),
    st.builds(lambda n, v: _in_place(n, value=v), st.sampled_from(["n4", "n5"]), st.sampled_from(["", "a", "b"])),
    st.builds(lambda n: _whole("remove", n), node),
    st.builds(lambda n: _whole("remount", n), node),
    st.builds(lambda n: _whole("twin", n), node),
    st.builds(lambda a, b: _whole("recycle", a, b), node, node),
    st.just(_whole("reorder")),
    st.just(_whole("reload")),
    st.just(_whole("restart")),
    st.just(_whole("answer_all")),
)
COMMANDS = st.sampled_from(["click", "click", "press", "set-value"])
VALUES = st.sampled_from(["first words", "other words"])
TIMEOUTS = st.sampled_from([0, 300, 1_000])
POINTS = st.sampled_from([p for p in PipelinePoint if p not in (PipelinePoint.OBSERVED, PipelinePoint.REACHED)])


LAST_STEPS_MS = 5
"""Between the last look in time and its dispatch: the intent is recorded, and the point announced."""


def decided(record: Ledgered) -> bool:
    return record.kind != "action.refused" or "evidence" in record.data


def looks(element: Element) -> tuple[object, ...]:
    """By which a person, and so the retry gate, recognises a control."""
    return element.role, element.name, element.context, element.destination


class Guarded(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.run = SimulatedRun(application(), POLICY)
        self.truth: dict[Ref, str] = {}
        self.refs: list[Ref] = []
        self.last: dict[tuple[object, ...], tuple[int, ActOutcome, bool]] = {}
        """What was delivered last to something that looks so: (intent, outcome, unanswered)."""

    @initialize()
    def first_snapshot(self) -> None:
        self.snapshot()

    @rule()
    def snapshot(self) -> None:
        refs = self.run.snapshot()
        for ref, element in zip(refs, self.run.world.elements, strict=False):
            self.truth[ref] = element.thing
        self.refs = [*self.refs[-10:], *refs]

    @rule(changed=change)
    def application_changes(self, changed: Change) -> None:
        changed(self.run.world)

    @rule(changed=change, point=POINTS)
    def application_will_change(self, changed: Change, point: PipelinePoint) -> None:
        self.run.at[point] = changed

    @rule(fault=st.sampled_from(list(Fault)), changed=change)
    def dispatch_will_meet(self, fault: Fault, changed: Change) -> None:
        self.run.world.fault = fault
        self.run.world.before_dispatch = changed

    @rule(readable=st.booleans())
    def reads(self, readable: bool) -> None:
        self.run.world.readable = readable

    @rule(after=st.integers(0, 60))
    def ledger_will_fail(self, after: int) -> None:
        """For good: one failed write poisons a ledger."""
        if self.run.lose_ledger_at is None:
            self.run.lose_ledger_at = len(self.run.records) + after

    @rule(step=st.sampled_from([Look, Perform, Release, Sleep]))
    def driver_stops(self, step: type) -> None:
        self.run.interrupt_before = step

    @rule(which=st.integers(0, 6), command=COMMANDS, value=VALUES, repeat=st.booleans(), timeout=TIMEOUTS)
    def agent_acts(self, which: int, command: str, value: str, repeat: bool, timeout: int) -> None:
        if self.refs:
            self._act(self.refs[-1 - which % len(self.refs)], command, value, repeat, timeout)

    @rule(which=st.integers(0, 2), repeat=st.booleans())
    def agent_approves(self, which: int, repeat: bool) -> None:
        if len(self.refs) >= 7:
            self._act(self.refs[-7 + which], "click", "", repeat, 300)

    @rule(which=st.integers(0, 2), repeat=st.booleans())
    def agent_looks_and_approves(self, which: int, repeat: bool) -> None:
        self.snapshot()
        self.agent_approves(which, repeat)

    @rule(which=st.integers(0, 20), command=COMMANDS, value=VALUES)
    def agent_uses_an_old_ref(self, which: int, command: str, value: str) -> None:
        if self.refs:
            self._act(self.refs[which % len(self.refs)], command, value, False, 300)

    def _act(self, ref: Ref, command: str, value: str, repeat: bool, timeout: int) -> None:
        how = {"value": value} if command == "set-value" else {"key": "Enter"} if command == "press" else {}
        repeat_of = max((seq for seq, _, _ in self.last.values()), default=None) if repeat else None
        before, sent = len(self.run.world.delivered), len(self.run.world.dispatches)
        snapshots = self.run.newest_snapshot
        unanswered = set(self.run.world.pending)
        steps, records, began = len(self.run.steps), len(self.run.records), self.run.now
        outcome = self.run.act(command, ref, timeout_ms=timeout, repeat_of=repeat_of, **how)
        self._judge(ref, outcome, self.run.world.delivered[before:], self.run.world.dispatches[sent:])
        self._judge_steps(self.run.steps[steps:], outcome, timeout, began)
        self._judge_records(self.run.records[records:], value)
        for delivered in self.run.world.delivered[before:]:
            self._judge_repeat(delivered, outcome, snapshots, repeat_of, unanswered)
        self.run.interrupt_before = None

    def _judge(self, ref: Ref, outcome: ActOutcome, delivered: list[Delivered], sent: list[int]) -> None:
        assert len(delivered) <= 1, "one action reached the application twice"
        delivery = outcome.disposition.delivery
        for one in delivered:
            assert one.thing == self.truth[ref], "another element than the one that was named"
            assert one.element.name not in FORBIDDEN
            leads = one.command == "press" or (one.command == "click" and not one.element.editable)
            assert not leads or one.element.destination != TRANSFERS
            needed = {"name", "visible", "enabled"} | ({"destination"} if leads else set())
            needed |= {"editable"} if one.command == "set-value" else set()
            needed |= {"hit_test"} if one.command == "click" else set()
            assert not one.element.unread & needed, "acted on what could not be read"
            assert one.element.enabled
            assert one.element.visible
            assert delivery is not Delivery.NOT_DELIVERED, "the application was reached"
        if not delivered:
            assert delivery in (Delivery.NOT_DELIVERED, Delivery.DELIVERY_UNCERTAIN, Delivery.UNKNOWN)
        if outcome.ok:
            assert delivered or delivery is Delivery.NOT_DELIVERED
        if outcome.code in (Code.POLICY_DENIED, Code.STALE_REF):
            assert not delivered
        if outcome.code is Code.POLICY_DENIED and "earlier" not in outcome.details:
            assert not sent
        if delivery is Delivery.DELIVERED_VERIFIED and not self.run.at:
            found = self.run.sees(ref)
            assert found is None or found.evidence.value in (
                Known(delivered[0].value),
                Unknown("the application did not answer in time"),
            )

    def _judge_steps(self, steps: list[Step], outcome: ActOutcome, timeout_ms: int, began_us: int) -> None:
        leased, us = False, 0
        for step in steps:
            us += step.ms * 1_000 if isinstance(step, Sleep) else self.run.step_us
            leased = isinstance(step, TakeLease) or (leased and not isinstance(step, Release))
            assert leased or not isinstance(step, Perform), "dispatched without the lease"
            assert not leased or not isinstance(step, Sleep), "waited under the lease"
            late = timeout_ms > 0 and us > (timeout_ms + LAST_STEPS_MS) * 1_000
            assert not late or not isinstance(step, Perform), "dispatched after the deadline"
        assert self.run.now - began_us == us
        denied = outcome.code is Code.POLICY_DENIED and "earlier" not in outcome.details
        looks = [i for i, step in enumerate(steps) if isinstance(step, Look)]
        if denied and outcome.kind in (DetailKind.FORBIDDEN_NAME, DetailKind.FORBIDDEN_DESTINATION):
            rest = steps[looks[-1] + 1 :]
            assert all(isinstance(s, Announce | Release | Requests | RecordStep) for s in rest), "a denial that waits"

    def _judge_records(self, records: list[Ledgered], value: str) -> None:
        intents = [r.seq for r in records if r.kind == "action.intent"]
        results = [r.data["of"] for r in records if r.kind == "action.result"]
        assert results == intents[: len(results)], "a result of another intent, or a second one"
        assert self.run.lose_ledger_at is not None or len(results) == len(intents), "an intent without its result"
        secret = value if value and " " in value else None
        for record in records:
            assert secret is None or secret not in json.dumps(record.data, default=str), "a typed value in a record"

    def _judge_repeat(
        self, one: Delivered, outcome: ActOutcome, newest: int, repeat_of: int | None, unanswered: set[int]
    ) -> None:
        how = "set" if one.command == "set-value" else "activate"
        # The value asked for may be any text; an editable control takes Enter as a key of its own.
        key = (how if not one.element.editable else one.command, one.value, *looks(one.element), self.run.world.url)
        if key in self.last:
            seq, earlier, _ = self.last[key]
            result = earlier.result_seq or seq
            assert newest > result, "repeated without a newer look"
            known = (
                earlier.ok
                and earlier.result_seq is not None
                and earlier.disposition.delivery
                in (
                    Delivery.DELIVERED_UNVERIFIED,
                    Delivery.DELIVERED_VERIFIED,
                )
            )
            if not known or earlier.kind is DetailKind.PENDING_DIALOG or seq in unanswered:
                assert repeat_of in (seq, earlier.result_seq), "repeated without naming what is repeated"
        self.last[key] = (one.number, outcome, one.number in self.run.world.pending)

    @invariant()
    def every_dispatch_has_its_own_durable_intent(self) -> None:
        intents = {r.seq for r in self.run.records if r.kind == "action.intent"}
        assert len(set(self.run.world.dispatches)) == len(self.run.world.dispatches)
        assert set(self.run.world.dispatches) <= intents

    def teardown(self) -> None:
        """Every decision of the history comes out the same from its records alone."""
        again = recompute_records(Record(r.seq, r.kind, "guard", "", 0, dict(r.data), b"") for r in self.run.records)
        assert not again.differences
        assert again.decisions == sum(r.kind.startswith("action.") for r in self.run.records if decided(r))

    @invariant()
    def no_lease_is_left_behind(self) -> None:
        assert not self.run.lease_held
        takes = sum(isinstance(s, TakeLease) for s in self.run.steps)
        assert takes == sum(isinstance(s, Release) for s in self.run.steps)


Guarded.TestCase.settings = settings(
    max_examples=200,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking a history takes minutes; do it by hand
)
TestGuardedOverRandomHistories = Guarded.TestCase
