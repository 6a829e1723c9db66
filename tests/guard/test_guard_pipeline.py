"""The numbered pipeline as a conversation: which steps, in which order, and what stands in the record."""

from __future__ import annotations

from typing import Any

import pytest

from deskcert.adapters.base import Action
from deskcert.contract.refs import Ref
from deskcert.guard.outcome import ActRequest, Interrupted
from deskcert.guard.pipeline import act
from deskcert.guard.policy import compile_policy
from deskcert.guard.retry_gate import GateState
from deskcert.guard.steps import (
    Announce,
    Done,
    Leased,
    Look,
    Looked,
    Navigate,
    Perform,
    Record,
    Recorded,
    Release,
    Requests,
    Sleep,
    TakeLease,
)
from deskcert.testing import Element, Fault, SimulatedRun, World
from deskcert_schema.disposition import Delivery
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import Code, DetailKind, PipelinePoint

POLICY: dict[str, Any] = {
    "version": 1,
    "deny": [
        {"id": "no-delete", "name": "Delete account", "reason": "irreversible"},
        {"id": "no-admin", "url": "**/admin"},
    ],
}


def simulated(*elements: Element) -> tuple[SimulatedRun, Ref]:
    run = SimulatedRun(World(list(elements) or [Element("n1", "order-1", name="Approve")]), POLICY)
    ref = run.snapshot()[0]
    run.steps.clear()
    return run, ref


def said(run: SimulatedRun) -> list[str]:
    return [
        s.point.value if isinstance(s, Announce) else s.kind.value if isinstance(s, Record) else type(s).__name__
        for s in run.steps
    ]


def field(**what: Any) -> Element:
    return Element("n1", "note", role="textbox", name="Note", editable=True, **{"value": "a"} | what)


def test_the_whole_way_of_a_click() -> None:
    run, ref = simulated()
    outcome = run.act("click", ref)
    assert said(run) == [
        *("Look", "resolved", "actionable", "TakeLease", "leased", "Look", "action.intent", "intent_recorded"),
        *("Perform", "Release", "verified", "action.result", "result_recorded", "Requests"),
    ]
    assert outcome.ok
    assert outcome.disposition.delivery is Delivery.DELIVERED_UNVERIFIED
    intent, result = run.records[-2].data, run.records[-1].data
    assert (outcome.seq, outcome.result_seq) == (run.records[-2].seq, run.records[-1].seq)
    assert intent["target"] == {"ref": str(ref), "document": "doc1", "node": "n1", "by": "name"} | {
        "role": "button",
        "name": "Approve",
        "context": [],
    }
    assert intent["policy"] == {"digest": "0" * 64, "verdict": "allow", "rules_evaluated": 2}
    assert result["of"] == outcome.seq
    assert set(result["phases_us"]) == {"resolve", "policy", "wait", "lease", "commit", "dispatch", "verify"}
    assert all(type(us) is int for us in result["phases_us"].values())
    assert result["phases_us"]["dispatch"] == run.step_us
    assert run.world.delivered[0].number == outcome.seq


def test_the_next_intent_carries_the_commit_time_of_the_last_record() -> None:
    run, ref = simulated()
    first = run.act("click", ref)
    (ref,) = run.snapshot()
    run.act("click", ref, prev_commit_us=first.commit_us)
    assert run.of_kind("action.intent")[-1].data["prev_commit_us"] == first.commit_us == run.step_us


@pytest.mark.parametrize("enabled", [True, False])
def test_a_denial_needs_no_waiting(enabled: bool) -> None:
    run, ref = simulated(Element("n1", "account", name="De\u200blete account", enabled=enabled, visible=enabled))
    outcome = run.act("click", ref)
    assert said(run) == ["Look", "resolved", "action.denied"]
    assert (outcome.code, outcome.kind, outcome.recovery) == (Code.POLICY_DENIED, DetailKind.FORBIDDEN_NAME, None)
    assert outcome.details["retryable"] is False
    assert outcome.disposition.delivery is Delivery.NOT_DELIVERED
    denial = run.records[-1].data
    assert (denial["rule"], denial["detail_kind"], denial["reason"]) == ("no-delete", "forbidden_name", "irreversible")
    assert denial["source"] == {"via": "target", "field": "accessible", "form": "fold"}


def test_waits_outside_the_lease_every_100_ms_until_it_can_be_done() -> None:
    run, ref = simulated(Element("n1", "order-1", name="Approve", enabled=False))
    looks_left = iter([False, False, True])
    run.world.before_look = lambda world: world.change("n1", enabled=next(looks_left, True))
    outcome = run.act("click", ref)
    assert outcome.ok
    assert said(run)[:6] == ["Look", "resolved", "Sleep", "Look", "Sleep", "Look"]
    assert [s.ms for s in run.steps if isinstance(s, Sleep)] == [100, 100]
    looks = run.of_kind("action.intent")[0].data["actionability"]["looks"]
    assert [look["changed"].get("enabled") for look in looks] == ["fail", None, "pass", None]


def test_the_time_out_carries_the_last_report() -> None:
    run, ref = simulated(Element("n1", "order-1", name="Approve", covered_by="Cookies"))
    outcome = run.act("click", ref, timeout_ms=250)
    assert (outcome.code, outcome.kind) == (Code.TIMEOUT, DetailKind.ACTIONABILITY_TIMEOUT)
    assert outcome.details["last_report"]["checks"][-1]["occluder"] == {"role": "dialog", "name": "Cookies"}
    assert outcome.details["elapsed_ms"] >= 250
    assert [s.ms for s in run.steps if isinstance(s, Sleep)][:2] == [100, 100]
    assert outcome.disposition.delivery is Delivery.NOT_DELIVERED
    assert outcome.recovery is not None
    refused = run.records[-1].data
    assert (refused["phase"], refused["code"]) == ("actionability", "TIMEOUT")


def test_a_time_out_of_0_is_one_look_and_one_under_the_lease() -> None:
    run, ref = simulated(Element("n1", "order-1", name="Approve", enabled=False))
    assert run.act("click", ref, timeout_ms=0).code is Code.TIMEOUT
    assert said(run) == ["Look", "resolved", "action.refused"]
    run.steps.clear()
    run.world.change("n1", enabled=True)
    assert run.act("click", ref, timeout_ms=0).ok


def test_a_late_look_is_discarded_even_if_it_satisfies() -> None:
    run, ref = simulated()
    run.step_us = 400_000
    outcome = run.act("click", ref, timeout_ms=300)
    assert outcome.code is Code.TIMEOUT
    assert run.world.dispatches == []


def test_under_the_lease_everything_is_asked_again() -> None:
    for change, code in [
        ({"name": "Delete account"}, Code.STALE_REF),
        ({"enabled": False}, Code.TIMEOUT),
        ({"context": (("row", "Order 2"),)}, Code.STALE_REF),
    ]:
        run, ref = simulated()
        run.at[PipelinePoint.LEASED] = lambda world, change=change: world.change("n1", **change)  # type: ignore[misc]
        outcome = run.act("click", ref, timeout_ms=300)
        assert outcome.code is code
        assert run.world.dispatches == []
        assert not run.lease_held


def test_the_lease_is_given_back_while_waiting_goes_on() -> None:
    run, ref = simulated()
    run.at[PipelinePoint.LEASED] = lambda world: world.change("n1", enabled=False)
    run.act("click", ref, timeout_ms=300)
    assert said(run)[3:9] == ["TakeLease", "leased", "Look", "Release", "Look", "Sleep"]


def test_no_lease_in_time() -> None:
    run, ref = simulated()
    run.lease_free = False
    outcome = run.act("click", ref)
    assert (outcome.code, outcome.kind) == (Code.TIMEOUT, DetailKind.LEASE_TIMEOUT)
    assert run.records[-1].data["phase"] == "lease"


def test_no_acknowledgement_no_dispatch() -> None:
    run, ref = simulated()
    run.lose_ledger_at = len(run.records)
    outcome = run.act("click", ref)
    assert outcome.code is Code.LEDGER_UNAVAILABLE
    assert outcome.disposition.delivery is Delivery.NOT_DELIVERED
    assert run.world.dispatches == []
    assert not run.lease_held


def test_a_result_that_could_not_be_recorded_keeps_what_was_delivered() -> None:
    run, ref = simulated()
    run.lose_ledger_at = len(run.records) + 1
    outcome = run.act("click", ref)
    assert outcome.code is Code.LEDGER_UNAVAILABLE
    assert outcome.disposition.delivery is Delivery.DELIVERED_UNVERIFIED
    assert outcome.recovery is None


def test_changed_at_dispatch_is_recorded_and_looked_at_again() -> None:
    run, ref = simulated()
    run.world.before_dispatch = lambda world: world.change("n1", description="now with a hint")
    outcome = run.act("click", ref)
    assert outcome.ok
    first, second = run.of_kind("action.intent")
    assert run.of_kind("action.result")[0].data | {"phases_us": None} == run.of_kind("action.result")[0].data | {
        "phases_us": None,
        "of": first.seq,
        "ok": False,
        "code": "ACTION_FAILED",
        "detail_kind": "changed_at_dispatch",
        "delivery": "not_delivered",
        "retry": "safe",
    }
    assert second.data["earlier"] == [first.seq]
    assert outcome.data["details"]["earlier"] == [first.seq]
    assert outcome.seq == second.seq
    assert len(run.world.delivered) == 1


def test_what_was_replaced_at_dispatch_is_stale_on_the_next_look() -> None:
    run, ref = simulated()
    run.world.before_dispatch = lambda world: world.twin("n1")
    outcome = run.act("click", ref)
    assert (outcome.code, outcome.kind) == (Code.STALE_REF, DetailKind.RESOLUTION_COMPLETE_ABSENCE)
    assert outcome.details["earlier"] == [run.of_kind("action.intent")[0].seq]
    assert run.world.delivered == []


def test_without_time_the_changed_dispatch_is_the_answer() -> None:
    run, ref = simulated()
    run.world.before_dispatch = lambda world: world.change("n1", description="x")
    outcome = run.act("click", ref, timeout_ms=0)
    assert (outcome.code, outcome.kind) == (Code.ACTION_FAILED, DetailKind.CHANGED_AT_DISPATCH)
    assert len(run.of_kind("action.intent")) == 1


def test_a_page_that_never_holds_still_gets_a_bounded_number_of_intents() -> None:
    run, ref = simulated()

    def restless(world: World) -> None:
        world.change("n1", description=str(len(world.dispatches)))
        world.before_dispatch = restless

    run.world.before_dispatch = restless
    outcome = run.act("click", ref)
    assert outcome.kind is DetailKind.CHANGED_AT_DISPATCH
    assert len(run.world.dispatches) == 12
    assert run.world.delivered == []


@pytest.mark.parametrize(
    ("fault", "code", "kind", "delivery"),
    [
        (Fault.HANG_BEFORE, Code.TIMEOUT, DetailKind.DISPATCH_TIMEOUT, Delivery.DELIVERY_UNCERTAIN),
        (Fault.HANG_UNSEEN, Code.TIMEOUT, DetailKind.DISPATCH_TIMEOUT, Delivery.DELIVERY_UNCERTAIN),
        (Fault.HANG_AFTER, Code.TIMEOUT, DetailKind.DISPATCH_TIMEOUT, Delivery.DELIVERED_UNVERIFIED),
        (Fault.CHANGED_MIDWAY, Code.ACTION_FAILED, DetailKind.STOPPED_MIDWAY, Delivery.DELIVERED_UNVERIFIED),
        (Fault.DIALOG, None, DetailKind.PENDING_DIALOG, Delivery.DELIVERED_UNVERIFIED),
    ],
)
def test_ways_to_lose_an_answer(fault: Fault, code: Code | None, kind: DetailKind, delivery: Delivery) -> None:
    run, ref = simulated()
    run.world.fault = fault
    outcome = run.act("click", ref)
    assert (outcome.code, outcome.kind, outcome.disposition.delivery) == (code, kind, delivery)
    assert outcome.recovery is None
    if fault is Fault.DIALOG:
        assert outcome.data["details"]["pending_dialog"]["text"] == "Really?"


def test_set_value_is_verified_by_reading_back() -> None:
    run, ref = simulated(field())
    outcome = run.act("set-value", ref, value="b")
    assert outcome.disposition.delivery is Delivery.DELIVERED_VERIFIED
    assert outcome.data["verification"] == {
        "scope": "element_value",
        "satisfied": True,
        "claim": "value equals the asked one",
    }
    assert run.of_kind("action.intent")[0].data["args"]["value"] == {"hidden": True, "openable": True, "characters": 1}
    assert '"b"' not in repr([r.data for r in run.records])


def test_settling_ends_at_the_first_satisfied_look_or_after_400_ms() -> None:
    run, ref = simulated(field())
    run.world.fault = Fault.LATE_VALUE
    assert run.act("set-value", ref, value="b").disposition.delivery is Delivery.DELIVERED_VERIFIED
    assert [s.ms for s in run.steps if isinstance(s, Sleep)] == [50, 50]
    run, ref = simulated(field())
    run.world.fault = Fault.SWALLOWED
    outcome = run.act("set-value", ref, value="b")
    assert (outcome.code, outcome.kind) == (Code.ACTION_FAILED, DetailKind.POST_ACTION_VERIFICATION)
    assert outcome.disposition.delivery is Delivery.DELIVERED_UNVERIFIED
    assert 350 <= sum(s.ms for s in run.steps if isinstance(s, Sleep)) <= 450
    assert len(run.world.dispatches) == 1


def test_a_secure_field_leaves_no_opening_and_is_not_read_back() -> None:
    run, ref = simulated(field(secure=True))
    outcome = run.act("set-value", ref, value="hunter2")
    assert outcome.disposition.delivery is Delivery.DELIVERED_UNVERIFIED
    assert outcome.data["details"]["verification_reason"] == "secure_field"
    assert run.of_kind("action.intent")[0].data["args"]["value"]["openable"] is False
    assert not any(isinstance(s, Sleep) for s in run.steps)


def test_what_already_holds_is_skipped_and_recorded() -> None:
    run, ref = simulated(field(value="b"))
    outcome = run.act("set-value", ref, value="b")
    assert outcome.ok
    assert outcome.disposition.delivery is Delivery.NOT_DELIVERED
    assert outcome.data["steps"] == [{"label": "set-value", "outcome": "skipped"}]
    assert said(run) == ["Look", "resolved", "actionable", "action.intent", "action.result", "result_recorded"]
    assert run.world.dispatches == []
    again = run.act("set-value", ref, value="b")
    assert again.ok


def test_a_value_that_arrives_under_the_lease_is_not_set_again() -> None:
    run, ref = simulated(field())
    run.at[PipelinePoint.LEASED] = lambda world: world.change("n1", value="b")
    outcome = run.act("set-value", ref, value="b")
    assert outcome.disposition.delivery is Delivery.NOT_DELIVERED
    assert run.world.dispatches == []
    assert not run.lease_held


def test_time_out_reload_new_snapshot_submit_is_recognised() -> None:
    run, ref = simulated()
    run.world.fault = Fault.HANG_AFTER
    first = run.act("click", ref)
    run.world.reload()
    (fresh,) = run.snapshot()
    repeat = run.act("click", fresh)
    assert (repeat.code, repeat.kind) == (Code.POLICY_DENIED, DetailKind.UNSAFE_RETRY)
    assert repeat.details["original"] == {
        "seq": first.seq,
        "disposition": {"delivery": "delivered_unverified", "retry": "unsafe"},
    }
    assert repeat.recovery is None
    assert f"repeat_of {first.seq}" in repeat.suggestion
    denial = run.records[-1].data
    assert (denial["rule"], denial["detail_kind"]) == ("retry-gate", "unsafe_retry")
    assert denial["gate"]["previous"]["seq"] == first.seq
    named = run.act("click", fresh, repeat_of=first.seq)
    assert named.ok
    assert run.records[-2].data["repeat_of"] == first.seq


def test_an_unanswered_request_keeps_the_gate_shut() -> None:
    run, ref = simulated()
    first = run.act("click", ref)
    assert first.seq is not None
    run.world.pending.add(first.seq)
    (fresh,) = run.snapshot()
    assert run.act("click", fresh).kind is DetailKind.UNSAFE_RETRY
    run.world.answer_all()
    assert run.act("click", fresh).ok


def test_unreadable_is_never_absent() -> None:
    run, ref = simulated()
    run.world.readable = False
    outcome = run.act("click", ref, timeout_ms=200)
    assert (outcome.code, outcome.kind) == (Code.APP_UNRESPONSIVE, DetailKind.OBSERVATION_INCOMPLETE)


@pytest.mark.parametrize(
    ("step", "delivery", "kind"),
    [
        (Look, Delivery.NOT_DELIVERED, "action.refused"),
        (Perform, Delivery.DELIVERY_UNCERTAIN, "action.result"),
        (Release, Delivery.DELIVERED_UNVERIFIED, "action.result"),
    ],
)
def test_interrupted_anywhere_what_is_due_is_still_done(step: type, delivery: Delivery, kind: str) -> None:
    run, ref = simulated()
    run.interrupt_before = step
    outcome = run.act("click", ref)
    assert outcome.disposition.delivery is delivery
    assert run.records[-1].kind == kind
    assert not run.lease_held
    assert len(run.of_kind("action.intent")) == len(run.of_kind("action.result"))


def request() -> ActRequest:
    run, ref = simulated()
    seq, saved = run._snapshots[ref.snapshot]
    policy = compile_policy(POLICY, digest="0" * 64)
    return ActRequest(1, Action("click"), ref, saved[1], seq, seq, policy, GateState(), b"k", 0, lambda v, _: v)


@pytest.mark.parametrize(
    ("told", "reached", "delivery"),
    [
        ("not_delivered", False, Delivery.NOT_DELIVERED),
        ("unknown", False, Delivery.DELIVERY_UNCERTAIN),
        ("delivery_uncertain", False, Delivery.DELIVERY_UNCERTAIN),
        ("delivered_unverified", False, Delivery.DELIVERED_UNVERIFIED),
    ],
)
def test_an_adapter_error_at_the_dispatch_keeps_what_it_knows(told: str, reached: bool, delivery: Delivery) -> None:
    asked = request()
    run, _ = simulated()
    steps = act(ActRequest(**{f: getattr(asked, f) for f in asked.__slots__} | {"timeout_ms": 0}))
    step, done = next(steps), None
    while done is None:
        try:
            match step:
                case Perform():
                    step = steps.throw(AdapterError("the browser is gone", delivery=told))
                case Look(handle):
                    step = steps.send(Looked(run.world.probe(handle), 1))
                case TakeLease():
                    step = steps.send(Leased(True, 0, 1))
                case Record():
                    step = steps.send(Recorded(7, 1, 1))
                case Requests():
                    step = steps.send(run._carry_out(step))
                case _:
                    step = steps.send(Done(1))
        except StopIteration as stop:
            done = stop.value
    assert done.disposition.delivery is delivery


def test_interrupted_after_reached_is_delivered() -> None:
    asked = request()
    run, _ = simulated()
    steps = act(asked)
    step = next(steps)
    while not isinstance(step, Perform):
        step = steps.send(run._carry_out(step))
    step = steps.throw(Interrupted("cancelled", reached=True))
    done = None
    while done is None:
        try:
            step = steps.send(run._carry_out(step))
        except StopIteration as stop:
            done = stop.value
    assert done.disposition.delivery is Delivery.DELIVERED_UNVERIFIED
    assert done.code is Code.TIMEOUT


def test_saved_identity_is_compared_and_not_only_the_node() -> None:
    other = Element("n2", "order-2", name="Approve", context=(("row", "Order 2"),))
    run, ref = simulated(Element("n1", "order-1", name="Approve", context=(("row", "Order 1"),)), other)
    run.world.recycle("n1", "n2")
    outcome = run.act("click", ref)
    assert (outcome.code, outcome.kind) == (Code.STALE_REF, DetailKind.RESOLUTION_IDENTITY_CHANGED)
    assert outcome.details["changed"] == ["context"]
    assert outcome.recovery == {
        "strategy": "refresh_snapshot_then_retry_original",
        "retryable": True,
        "requires_fresh_snapshot": True,
    }


# --- navigate ---------------------------------------------------------------------------------------------------------


def test_the_whole_way_of_a_navigation() -> None:
    run, _ = simulated()
    outcome = run.navigate("http://app.test/payouts")
    assert said(run) == [
        *("TakeLease", "leased", "action.intent", "intent_recorded", "Navigate", "Release", "verified"),
        *("action.result", "result_recorded"),
    ]
    assert outcome.disposition.delivery is Delivery.DELIVERED_VERIFIED
    assert outcome.data["verification"]["observed"] == "http://app.test/payouts"
    assert run.of_kind("action.intent")[0].data["target"] == {"url": "http://app.test/payouts"}


def test_a_forbidden_address_is_denied_before_anything_is_sent() -> None:
    run, _ = simulated()
    outcome = run.navigate("http://app.test/admin?x=1")
    assert (outcome.code, outcome.kind) == (Code.POLICY_DENIED, DetailKind.FORBIDDEN_DESTINATION)
    assert said(run) == ["action.denied"]
    assert run.world.dispatches == []


@pytest.mark.parametrize(
    ("fault", "delivery"),
    [(Fault.REFUSED, Delivery.NOT_DELIVERED), (Fault.HANG_BEFORE, Delivery.DELIVERY_UNCERTAIN)],
)
def test_a_navigation_that_fails(fault: Fault, delivery: Delivery) -> None:
    run, _ = simulated()
    run.world.fault = fault
    assert run.navigate("http://app.test/x").disposition.delivery is delivery


def test_a_navigation_is_in_the_retry_gate_too() -> None:
    run, _ = simulated()
    assert run.navigate("http://app.test/x").ok
    assert run.navigate("http://app.test/x#part").kind is DetailKind.UNSAFE_RETRY
    assert run.navigate("http://app.test/y").ok
    run.snapshot()
    assert run.navigate("http://app.test/x").ok


@pytest.mark.parametrize(
    ("step", "delivery"), [(TakeLease, Delivery.NOT_DELIVERED), (Navigate, Delivery.DELIVERY_UNCERTAIN)]
)
def test_an_interrupted_navigation(step: type, delivery: Delivery) -> None:
    run, _ = simulated()
    run.interrupt_before = step
    assert run.navigate("http://app.test/x").disposition.delivery is delivery
    assert not run.lease_held


def test_a_navigation_without_ledger_or_lease() -> None:
    run, _ = simulated()
    run.lose_ledger_at = len(run.records)
    assert run.navigate("http://app.test/x").code is Code.LEDGER_UNAVAILABLE
    assert run.world.dispatches == []
    run, _ = simulated()
    run.lease_free = False
    assert run.navigate("http://app.test/x").kind is DetailKind.LEASE_TIMEOUT
