"""What a session answers. Every envelope is checked against the schema by the helper."""

from __future__ import annotations

import asyncio

import pytest
from guarded_world import Guarded, SettableClock, orders, walk

from deskcert.adapters.base import Dialog
from deskcert.adapters.simulator import Fault
from deskcert.session import Budget, Options
from deskcert.session.commands import COMMANDS
from deskcert_schema.vocabulary import Command


async def test_a_snapshot_numbers_what_can_be_acted_on_depth_first(guarded: Guarded) -> None:
    answer = await guarded("snapshot")
    data = answer["data"]
    refs = [n["ref_id"] for n in walk(data["tree"]) if "ref_id" in n]
    assert refs == [f"@{data['snapshot_id']}:e{i}" for i in range(1, 6)]
    assert data["ref_count"] == 5
    assert data["complete"] is True
    assert "truncated" not in data


async def test_an_incomplete_page_says_so(guarded: Guarded) -> None:
    guarded.world.readable = False
    data = (await guarded("snapshot"))["data"]
    assert (data["complete"], data["truncated"]) == (False, True)
    assert data["reasons"] == ["the application did not answer in time"]


async def test_a_click_reaches_the_row_that_the_ref_names(guarded: Guarded) -> None:
    refs = await guarded.refs()
    guarded.world.reorder()
    answer = await guarded("click", ref=refs["Approve in Order 1002"])
    assert answer["ok"]
    assert answer["data"]["disposition"] == {"delivery": "delivered_unverified", "retry": "unsafe"}
    assert [d.thing for d in guarded.world.delivered] == ["order-1002"]
    assert answer["ledger"]["result_seq"] == answer["ledger"]["seq"] + 1


async def test_a_twin_in_its_place_is_stale(guarded: Guarded) -> None:
    refs = await guarded.refs()
    guarded.world.twin("n1001")
    answer = await guarded("click", ref=refs["Approve in Order 1001"])
    assert answer["error"]["code"] == "STALE_REF"
    assert answer["error"]["recovery"]["requires_fresh_snapshot"] is True
    assert guarded.world.delivered == []


async def test_set_value_and_press(guarded: Guarded) -> None:
    refs = await guarded.refs()
    answer = await guarded("set-value", ref=refs["Note"], value="called back")
    assert answer["data"]["disposition"]["delivery"] == "delivered_verified"
    again = await guarded("set-value", ref=refs["Note"], value="called back")
    assert again["data"]["disposition"] == {"delivery": "not_delivered", "retry": "safe"}
    pressed = await guarded("press", ref=refs["Note"], key="enter")
    assert pressed["ok"]
    assert [(d.command, d.value) for d in guarded.world.delivered] == [("set-value", "called back"), ("press", None)]


async def test_navigate_makes_every_older_ref_stale(guarded: Guarded) -> None:
    refs = await guarded.refs()
    answer = await guarded("navigate", url="http://app.test/customers")
    assert answer["data"]["disposition"]["delivery"] == "delivered_verified"
    assert guarded.world.url == "http://app.test/customers"
    assert (await guarded("click", ref=refs["Note"]))["error"]["code"] == "STALE_REF"


@pytest.mark.parametrize(
    "url", ["/orders", "javascript:alert(1)", "file:///etc/passwd", "http://", "http://a b/", "http://a:x/"]
)
async def test_only_addresses_of_pages_are_navigated_to(guarded: Guarded, url: str) -> None:
    answer = await guarded("navigate", url=url)
    assert answer["error"]["code"] == "INVALID_ARGS"
    assert guarded.world.dispatches == []


async def test_a_denial_is_terminal_and_nothing_is_sent(guarded: Guarded) -> None:
    refs = await guarded.refs()
    answer = await guarded("click", ref=refs["Delete account"])
    error = answer["error"]
    assert (error["code"], error["details"]["kind"]) == ("POLICY_DENIED", "forbidden_name")
    assert error["details"]["retryable"] is False
    assert "recovery" not in error
    assert guarded.world.dispatches == []


async def test_the_retry_gate_holds_across_reload_and_snapshot(guarded: Guarded) -> None:
    refs = await guarded.refs()
    guarded.world.fault = Fault.HANG_UNSEEN
    first = await guarded("click", ref=refs["Approve in Order 1001"])
    assert first["error"]["disposition"]["delivery"] == "delivery_uncertain"
    guarded.world.reload()
    refs = await guarded.refs()
    second = await guarded("click", ref=refs["Approve in Order 1001"])
    assert second["error"]["details"]["kind"] == "unsafe_retry"
    assert second["error"]["details"]["original"]["seq"] == first["ledger"]["seq"]
    named = await guarded("click", ref=refs["Approve in Order 1001"], repeat_of=first["ledger"]["seq"])
    assert named["ok"]
    assert len(guarded.world.delivered) == 2


async def test_get_and_is_read_the_live_element(guarded: Guarded) -> None:
    refs = await guarded.refs()
    note, password, approve = refs["Note"], refs["Password"], refs["Approve in Order 1001"]
    guarded.world.change("n3", value="changed since")
    assert (await guarded("get", ref=note, property="value"))["data"]["value"] == "changed since"
    withheld = (await guarded("get", ref=password, property="value"))["data"]
    assert withheld["withheld"] is True
    assert "value" not in withheld
    guarded.world.change("n1001", enabled=False)
    assert (await guarded("is", ref=approve, property="enabled"))["data"]["result"] is False
    guarded.world.change("n1001", unread=frozenset({"enabled"}))
    unread = (await guarded("is", ref=approve, property="enabled"))["data"]
    assert "result" not in unread
    assert "applicable" not in unread
    assert unread["unknown"]
    guarded.world.recycle("n1001", "n1002")
    assert (await guarded("get", ref=approve))["error"]["code"] == "STALE_REF"


async def test_the_newest_128_snapshots_are_kept(guarded: Guarded) -> None:
    first = (await guarded.refs())["Note"]
    for _ in range(127):
        await guarded.session.handle("snapshot", {})
    assert (await guarded("get", ref=first))["ok"]
    await guarded("snapshot")
    gone = await guarded("get", ref=first)
    assert gone["error"]["code"] == "SNAPSHOT_NOT_FOUND"
    assert gone["error"]["recovery"]["requires_fresh_snapshot"] is True


async def test_every_other_name_of_the_contract_is_known_and_not_supported_yet(guarded: Guarded) -> None:
    assert {"snapshot", "click", "navigate", "finish"} <= set(COMMANDS)
    for name in (c.value for c in Command if c.value not in COMMANDS):
        answer = await guarded(name)
        assert (answer["command"], answer["error"]["code"]) == (name, "ACTION_NOT_SUPPORTED")


@pytest.mark.parametrize(
    ("command", "args"),
    [
        *((name, {}) for name in ("list-apps", "list-windows", "clipboard-get")),
        ("launch", {"app": "editor"}),
        ("close-app", {"app": "editor"}),
        ("clipboard-set", {"text": "x"}),
        ("move-window", {"window": "x1", "x": 1, "y": 1}),
        ("resize-window", {"window": "x1", "width": 9, "height": 9}),
        *((name, {"window": "x1"}) for name in ("focus-window", "minimize", "maximize", "restore")),
    ],
)
async def test_where_there_is_no_desktop_its_commands_say_so(guarded: Guarded, command, args) -> None:
    answer = await guarded(command, **args)
    assert answer["error"]["code"] == "PLATFORM_NOT_SUPPORTED"
    assert answer["error"]["disposition"] == {"delivery": "not_delivered", "retry": "safe"}
    assert guarded.kinds() == ["action.refused"]


@pytest.mark.parametrize(
    ("command", "args", "said"),
    [
        ("clik", {}, "did you mean click?"),
        ("x" * 5000, {}, "known are snapshot"),
        ("click", {}, "click needs ref"),
        ("click", {"ref": "@e8"}, "@<snapshot id>:e<n>"),
        ("click", {"ref": 8}, "@<snapshot id>:e<n>"),
        ("click", {"ref": "@s0000:e1", "tiemout_ms": 1}, "did you mean timeout_ms?"),
        ("click", {"ref": "@s0000:e1", "timeout_ms": "5"}, "a whole number from 0 to 60000"),
        ("click", {"ref": "@s0000:e1", "timeout_ms": True}, "a whole number from 0 to 60000"),
        ("click", {"ref": "@s0000:e1", "timeout_ms": 1.5}, "a whole number from 0 to 60000"),
        ("set-value", {"ref": "@s0000:e1", "value": None}, "must be text, not null"),
        ("set-value", {"ref": "@s0000:e1", "value": "x" * 10_001}, "longer than 10000 bytes"),
        ("set-value", {"ref": "@s0000:e1", "value": "\ud800"}, "half of a surrogate pair"),
        ("snapshot", {"interactive_only": "yes"}, "must be true or false"),
        ("is", {"ref": "@s0000:e1", "property": "enabeld"}, "did you mean enabled?"),
        ("finish", {"outcome": "great"}, "use one of done"),
    ],
)
async def test_what_is_not_understood_is_refused_with_what_to_change(guarded: Guarded, command, args, said) -> None:
    answer = await guarded(command, **args)
    assert answer["error"]["code"] == "INVALID_ARGS"
    assert said in answer["error"]["message"]
    assert answer["error"]["disposition"] == {"delivery": "not_delivered", "retry": "safe"}
    assert guarded.kinds() == ["action.refused"]


async def test_refs_of_nothing(guarded: Guarded) -> None:
    snapshot = (await guarded("snapshot"))["data"]["snapshot_id"]
    assert (await guarded("click", ref="@szzzz:e1"))["error"]["code"] == "SNAPSHOT_NOT_FOUND"
    assert (await guarded("click", ref=f"@{snapshot}:e99"))["error"]["code"] == "STALE_REF"


async def test_keys_that_need_trusted_input_are_not_emulated(guarded: Guarded) -> None:
    ref = (await guarded.refs())["Note"]
    answer = await guarded("press", ref=ref, key="ctrl+enter")
    assert answer["error"]["code"] == "ACTION_NOT_SUPPORTED"
    assert guarded.world.dispatches == []


async def test_an_open_dialog_stops_acting_commands(guarded: Guarded) -> None:
    ref = (await guarded.refs())["Note"]
    guarded.world.open_dialog = Dialog("d1", "confirm", "Really?")
    answer = await guarded("click", ref=ref)
    assert (answer["error"]["code"], answer["error"]["details"]["kind"]) == ("ACTION_FAILED", "pending_dialog")
    assert guarded.world.dispatches == []
    assert (await guarded("status"))["data"]["pending_dialog"]["text"] == "Really?"


async def test_the_budget_is_ours_to_count(tmp_path) -> None:
    clock = SettableClock()
    guarded = Guarded(tmp_path, clock=clock, options=Options(budget=Budget(actions=2, seconds=60), timeout_ms=0))
    refs = await guarded.refs()
    await guarded("click", ref="@e1")  # refused, and an action all the same
    assert (await guarded("click", ref=refs["Approve in Order 1001"]))["ok"]
    over = await guarded("click", ref=refs["Approve in Order 1002"])
    assert over["error"]["code"] == "BUDGET_EXHAUSTED"
    assert (await guarded("snapshot"))["ok"]
    clock.us += 60_000_000
    assert (await guarded("snapshot"))["error"]["code"] == "BUDGET_EXHAUSTED"
    assert (await guarded("status"))["data"]["actions"] == {"used": 3, "of": 2}
    assert (await guarded("finish", outcome="failed"))["ok"]
    assert len(guarded.world.dispatches) == 1


async def test_after_the_claim_nothing_more_is_done(guarded: Guarded) -> None:
    ref = (await guarded.refs())["Note"]
    assert (await guarded("finish", outcome="done", message="as asked"))["ok"]
    for command, args in (("click", {"ref": ref}), ("snapshot", {}), ("finish", {"outcome": "failed"})):
        assert (await guarded(command, **args))["error"]["code"] == "INVALID_ARGS"
    claims = [r for r in guarded.records() if r["kind"] == "claim"]
    assert [(c["outcome"], c["message"]) for c in claims] == [("done", "as asked")]
    assert guarded.world.dispatches == []


async def test_two_requests_at_once_are_carried_out_one_after_the_other(tmp_path) -> None:
    inside = 0
    most = 0

    async def at(point: str, action: int) -> None:
        nonlocal inside, most
        if point == "leased":
            inside, most = inside + 1, max(most, inside + 1)
            await asyncio.sleep(0)
        if point == "result_recorded":
            inside -= 1

    guarded = Guarded(tmp_path, orders(), at_point=at)
    refs = await guarded.refs()
    names = ("Approve in Order 1001", "Approve in Order 1002")
    answers = await asyncio.gather(*(guarded("click", ref=refs[n]) for n in names))
    assert [a["ok"] for a in answers] == [True, True]
    assert most == 1
    assert guarded.kinds() == ["observation"] + ["action.intent", "action.result"] * 2
