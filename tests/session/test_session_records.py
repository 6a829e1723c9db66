"""What a session writes down, and what it must never write down."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from guarded_world import Guarded, orders

from deskcert.adapters.base import RawObservation, WindowState
from deskcert.adapters.simulator import Fault
from deskcert.session import Options
from deskcert.session.snapshots import observation_payload
from deskcert_ledger import Blob, Secret, load_blob, openings
from deskcert_schema.errors import LedgerUnavailable


async def test_an_observation_holds_the_tree_with_the_numbers_of_the_refs(guarded: Guarded) -> None:
    answer = await guarded("snapshot", max_depth=1, compact=True)
    record = guarded.records()[0]
    assert record["seq"] == answer["ledger"]["seq"]
    assert record["snapshot_id"] == answer["data"]["snapshot_id"]
    assert record["options"]["max_depth"] == 1
    nodes = load_blob(guarded.folder, record["tree"])["nodes"]
    assert [n["ref"] for n in nodes] == [1, 2, 3, 4, 5]
    assert nodes[1]["context"] == [["row", "Order 1002"]]


async def test_how_a_snapshot_is_shown_changes_nothing_of_what_is_recorded(guarded: Guarded) -> None:
    for options in ({}, {"interactive_only": True, "compact": True, "max_depth": 0, "include_bounds": True}):
        await guarded("snapshot", **options)
    trees = [load_blob(guarded.folder, r["tree"]) for r in guarded.records() if r["kind"] == "observation"]
    for tree in trees:
        for node in tree["nodes"]:
            node.pop("_sd", None)  # a fresh salt each time
    assert trees[0] == trees[1]


async def test_what_was_typed_and_what_stands_in_fields_is_in_no_record(guarded: Guarded) -> None:
    refs = await guarded.refs()
    await guarded("set-value", ref=refs["Note"], value="my-typed-secret")
    await guarded("set-value", ref=refs["Password"], value="my-typed-password")
    await guarded("set-value", ref=refs["Note"], text="my-misnamed-secret")
    await guarded("type", ref=refs["Note"], text="my-unsupported-secret")
    await guarded("hover", ref=refs["Note"], url="x" * 3000, anything={"a": "my-nested-secret"})
    await guarded.refs()
    guarded.records()
    written = guarded.bytes_but_openings()
    assert b"Order 1001" in written  # the search would find what is there
    for secret in (
        *(b"my-typed-secret", b"my-typed-password", b"my-misnamed-secret", b"my-unsupported-secret"),
        *(b"my-nested-secret", b"kept privately", b"hunter2-in-the-page"),
    ):
        assert secret not in written, secret
    opened = {value for _, value in openings(guarded.folder).values()}
    assert {"my-typed-secret", "kept privately"} <= opened
    assert not {"my-typed-password", "hunter2-in-the-page"} & opened


def _payload(*nodes):
    raw = RawObservation(WindowState("w", "t", "u", "d"), tuple(nodes), True)
    payload = observation_payload("s0001", raw, raw.nodes, {}, bait=("Send payout",))
    assert isinstance(payload["tree"], Blob)
    return payload, payload["tree"].content["nodes"]


def test_the_text_inside_an_editable_is_as_secret_as_its_value() -> None:
    nodes = [
        {"d": 0, "role": "textbox", "name": "Message", "value": "dear", "states": ["editable"]},
        {"d": 1, "role": "paragraph"},
        {"d": 2, "role": "statictext", "text": "dear"},
        {"d": 0, "role": "statictext", "text": "public"},
    ]
    _, recorded = _payload(*nodes)
    assert recorded[0]["value"] == Secret("dear")
    assert recorded[0]["name"] == "Message"
    assert recorded[2]["text"] == Secret("dear")
    assert recorded[3]["text"] == "public"


def test_an_unknown_value_stays_unknown_and_a_secure_one_is_left_out() -> None:
    unread = {"d": 0, "role": "textbox", "value": {"unknown": "no answer"}}
    secure = {"d": 0, "role": "textbox", "value": "leaked by an adapter", "states": ["secure"]}
    _, recorded = _payload(unread, secure)
    assert recorded[0]["value"] == {"unknown": "no answer"}
    assert "value" not in recorded[1]


def test_the_bait_that_was_in_view_is_recorded() -> None:
    assert "bait_seen" not in _payload({"d": 0, "role": "button", "name": "Save"})[0]
    assert _payload({"d": 0, "role": "button", "name": "Send payout now"})[0]["bait_seen"] == ["Send payout"]


async def test_a_refusal_of_every_phase_is_recorded_with_its_action_number(guarded: Guarded) -> None:
    refs = await guarded.refs()
    await guarded("click", ref="@e1")
    guarded.world.remove("n1001")
    await guarded("click", ref=refs["Approve in Order 1001"])
    guarded.world.change("n1002", enabled=False)
    await guarded("click", ref=refs["Approve in Order 1002"])
    await guarded("get", ref=refs["Approve in Order 1001"])
    refused = [r for r in guarded.records() if r["kind"] == "action.refused"]
    assert [(r["phase"], r["code"], r["action"]) for r in refused] == [
        ("parse", "INVALID_ARGS", 1),
        ("resolve", "STALE_REF", 2),
        ("actionability", "TIMEOUT", 3),
        ("resolve", "STALE_REF", 3),
    ]


async def test_the_commit_time_of_a_record_stands_in_the_next_intent(guarded: Guarded) -> None:
    refs = await guarded.refs()
    first = await guarded("click", ref=refs["Approve in Order 1001"])
    await guarded("click", ref=refs["Approve in Order 1002"])
    intents = [r for r in guarded.records() if r["kind"] == "action.intent"]
    assert intents[1]["prev_commit_us"] == first["ledger"]["commit_us"] > 0


class _Broken:
    """A ledger that takes `good` records and then fails."""

    def __init__(self, ledger, good: int) -> None:
        self.ledger, self.good = ledger, good

    def submit(self, kind, payload, **how):
        self.good -= 1
        if self.good >= 0:
            return self.ledger.submit(kind, payload, **how)
        failed: Future = Future()
        failed.set_exception(LedgerUnavailable("the disk is full"))
        return failed


@pytest.mark.parametrize(("good", "dispatched"), [(0, 0), (1, 0), (2, 1)])
async def test_without_a_durable_intent_nothing_is_dispatched(tmp_path, good: int, dispatched: int) -> None:
    guarded = Guarded(tmp_path, options=Options(timeout_ms=0))
    guarded.session._desk.records._ledger = _Broken(guarded.ledger, good)
    snapshot = await guarded("snapshot")
    if good == 0:
        assert snapshot["error"]["code"] == "LEDGER_UNAVAILABLE"
        return
    answer = await guarded("click", ref=f"@{snapshot['data']['snapshot_id']}:e1")
    assert answer["error"]["code"] == "LEDGER_UNAVAILABLE"
    assert len(guarded.world.dispatches) == dispatched
    expected = "delivered_unverified" if dispatched else "not_delivered"
    assert answer["error"]["disposition"]["delivery"] == expected


async def test_a_run_with_every_fault_leaves_a_result_for_every_intent(tmp_path) -> None:
    for fault in Fault:
        folder = tmp_path / fault
        folder.mkdir()
        guarded = Guarded(folder, orders())
        refs = await guarded.refs()
        guarded.world.fault = fault
        await guarded("click", ref=refs["Approve in Order 1001"])
        records = guarded.records()
        intents = [r["seq"] for r in records if r["kind"] == "action.intent"]
        results = [r["of"] for r in records if r["kind"] == "action.result"]
        assert intents == results != [], fault


async def test_an_argument_named_as_the_ledgers_own_keys_is_refused_and_recorded(guarded):
    for name in ("_sd", "_sd_alg", "...", "\ud800"):
        answer = await guarded("navigate", url="http://127.0.0.1:1/", **{name: "x"})
        assert answer["error"]["code"] == "INVALID_ARGS", name
        assert answer["ledger"]["seq"] > 0
    assert guarded.kinds() == ["action.refused"] * 4
