"""What the driver owes whatever happens: a result for every intent, the lease given back, no dispatch after the end."""

from __future__ import annotations

import asyncio

import pytest
from guarded_world import Guarded, orders

from deskcert.adapters.simulator import Simulator
from deskcert.guard.steps import Announce, Record, TakeLease
from deskcert.session import Lease
from deskcert.session.driver import Driver, PipelineBroken
from deskcert.session.records import Records
from deskcert_schema.disposition import Delivery
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import PipelinePoint, RecordKind


class Gate:
    """Stops the session at one pipeline point until it is told to go on."""

    def __init__(self, point: str) -> None:
        self.point, self.there, self.go_on = point, asyncio.Event(), asyncio.Event()

    async def __call__(self, point: PipelinePoint, _action: int) -> None:
        if point == self.point and not self.there.is_set():
            self.there.set()
            await self.go_on.wait()


async def _cancelled_at(guarded: Guarded, gate: Gate, name: str = "Approve in Order 1001") -> None:
    """Click, and withdraw the call while the pipeline stands at the gate."""
    ref = (await guarded.refs())[name]
    call = asyncio.ensure_future(guarded.session.handle("click", {"ref": ref}))
    await gate.there.wait()
    call.cancel()
    await asyncio.sleep(0)
    gate.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.parametrize(
    ("point", "kinds", "delivery", "dispatched"),
    [
        ("resolved", ["action.refused"], None, 0),
        ("leased", ["action.refused"], None, 0),
        ("intent_recorded", ["action.intent", "action.result"], "not_delivered", 0),
        ("dispatched", ["action.intent", "action.result"], "delivered_unverified", 1),
        ("reached", ["action.intent", "action.result"], "delivered_unverified", 1),
        ("verified", ["action.intent", "action.result"], "delivered_unverified", 1),
        ("result_recorded", ["action.intent", "action.result"], "delivered_unverified", 1),
    ],
)
async def test_a_caller_that_withdraws_leaves_nothing_open(tmp_path, point, kinds, delivery, dispatched) -> None:
    gate = Gate(point)
    guarded = Guarded(tmp_path, orders(), at_point=gate)
    await _cancelled_at(guarded, gate)
    assert len(guarded.world.delivered) == dispatched
    records = [r for r in guarded.records() if r["kind"] not in ("observation", "checkpoint")]
    seen = [r["kind"] for r in records]
    assert seen[: len(kinds)] == kinds
    assert seen.count("action.intent") == seen.count("action.result")
    if delivery is not None:
        assert records[1]["delivery"] == delivery


async def test_after_a_withdrawn_call_the_next_one_works_and_the_retry_gate_remembers(tmp_path) -> None:
    gate = Gate("verified")
    guarded = Guarded(tmp_path, orders(), at_point=gate)
    await _cancelled_at(guarded, gate)
    refs = await guarded.refs()
    assert (await guarded("click", ref=refs["Approve in Order 1002"]))["ok"]
    stale = await guarded.session.handle("snapshot", {})
    assert stale["ok"]
    assert [d.thing for d in guarded.world.delivered] == ["order-1001", "order-1002"]


async def test_the_first_attempt_of_a_withdrawn_call_is_known_to_the_retry_gate(tmp_path) -> None:
    gate = Gate("verified")
    guarded = Guarded(tmp_path, orders(), at_point=gate)
    ref = (await guarded.refs())["Approve in Order 1001"]
    call = asyncio.ensure_future(guarded.session.handle("click", {"ref": ref}))
    await gate.there.wait()
    call.cancel()
    gate.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    again = await guarded("click", ref=ref)
    assert again["error"]["details"]["kind"] == "unsafe_retry"
    assert len(guarded.world.delivered) == 1


class Raising(Simulator):
    """An adapter that delivers, or does not, and then raises."""

    def __init__(self, world, error: Exception, announce: tuple[str, ...]) -> None:
        super().__init__(world)
        self.error, self.announce = error, announce

    async def perform(self, handle, action, expected, *, number, budget_ms, at):
        for point in self.announce:
            await at(point)
        raise self.error


@pytest.mark.parametrize(
    ("error", "announced", "delivery", "code"),
    [
        (AdapterError("not sent"), (), "not_delivered", "APP_UNRESPONSIVE"),
        (AdapterError("not sent, it says"), ("dispatched",), "delivery_uncertain", "TIMEOUT"),
        (AdapterError("lost", delivery="delivery_uncertain"), ("dispatched",), "delivery_uncertain", "TIMEOUT"),
        (AdapterError("lost", delivery="unknown"), ("dispatched", "reached"), "delivered_unverified", "TIMEOUT"),
        (TimeoutError(), ("dispatched", "reached"), "delivered_unverified", "TIMEOUT"),
        (ValueError("a defect of the adapter"), ("dispatched", "reached"), "delivered_unverified", "INTERNAL"),
        (ValueError("a defect of the adapter"), ("dispatched",), "delivery_uncertain", "INTERNAL"),
    ],
)
async def test_an_adapter_that_raises_is_never_taken_for_proof_of_non_delivery(
    tmp_path, error, announced, delivery, code
) -> None:
    world = orders()
    guarded = Guarded(tmp_path, world, adapter=Raising(world, error, announced))
    ref = (await guarded.refs())["Approve in Order 1001"]
    answer = await guarded("click", ref=ref)
    assert (answer["error"]["code"], answer["error"]["disposition"]["delivery"]) == (code, delivery)
    results = [r for r in guarded.records() if r["kind"] == "action.result"]
    assert [r["delivery"] for r in results] == [delivery]


async def test_a_defect_of_ours_is_recorded_as_one(tmp_path) -> None:
    class Defective(Simulator):
        async def observe(self, options):
            raise KeyError("a name on the page")

    guarded = Guarded(tmp_path, adapter=Defective(orders()))
    answer = await guarded("snapshot")
    assert answer["error"]["code"] == "INTERNAL"
    lost = [r for r in guarded.records() if r["kind"] == "component.lost"]
    assert [(r["component"], r["detail"]) for r in lost] == [("session", "snapshot failed inside deskcert: KeyError")]


async def test_a_pipeline_that_fails_gives_its_lease_back_and_its_intent_a_result(tmp_path) -> None:
    guarded = Guarded(tmp_path)
    lease = Lease()

    async def at(point, action) -> None:
        return None

    driver = Driver(Simulator(guarded.world), Records(guarded.ledger), lease, at, lambda: 0)
    intent = {
        **{"command": "navigate", "args": {}, "action": 1, "target": {"url": "u"}, "evidence": {}, "mode": "headless"},
        **{"policy": {"digest": "0" * 64, "verdict": "allow", "rules_evaluated": 0}, "actionability": {"checks": []}},
        **{"deadline_ms": 0, "fingerprint": "f"},
    }

    def broken():
        yield TakeLease(100)
        yield Record(RecordKind.ACTION_INTENT, intent)
        yield Announce(PipelinePoint.INTENT_RECORDED)
        raise RuntimeError("a defect of the guard")

    with pytest.raises(PipelineBroken) as found:
        await driver.drive(broken(), action=1)
    assert found.value.delivery is Delivery.NOT_DELIVERED
    assert await lease.take(0) == (True, 0)
    assert guarded.kinds() == ["action.intent", "action.result"]


async def test_the_lease_is_waited_for_within_bounds_and_counts_who_stood_before() -> None:
    lease = Lease()
    assert await lease.take(0) == (True, 0)
    waiting = asyncio.ensure_future(lease.take(60_000))
    await asyncio.sleep(0)
    assert await lease.take(1) == (False, 2)
    lease.release()
    assert await waiting == (True, 1)
