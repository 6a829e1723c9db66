"""`careful` keeps the contract: each test is one conversation with the agent as a real process."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted_peer import OrdersPage, acted, error, ok, talk

APPROVE = """
goals: [{act: click, role: button, name: "Approve", context: "Order 2", done_when: {text: "Approved"}}]
claim: done
"""


def test_acts_in_the_named_row_and_confirms_from_a_page_loaded_anew(tmp_path: Path) -> None:
    page = OrdersPage("Order 1", "Order 2")

    def script(command, args):
        if command == "click":
            page.done = "Order 2"
            return acted("click")
        return page.snapshot() if command == "snapshot" else ok(command, {})

    found = talk("careful", APPROVE, script, tmp_path)
    assert found.commands == ["snapshot", "click", "snapshot", "navigate", "snapshot", "finish"]
    assert found.args("click") == [{"ref": "@s0001:e2"}]
    assert found.args("navigate") == [{"url": "http://app/orders?tab=open"}]
    assert (found.claim, found.status) == ("done", 0)


def test_approved_in_another_row_is_not_this_orders_effect(tmp_path: Path) -> None:
    page = OrdersPage("Order 1", "Order 2", done="Order 1")

    def script(command, args):
        return page.snapshot() if command == "snapshot" else acted("click") if command == "click" else ok(command, {})

    found = talk("careful", APPROVE, script, tmp_path)
    assert found.commands.count("click") == 1
    assert found.claim == "failed"


def test_a_sentence_that_appears_outside_the_row_is_the_effect(tmp_path: Path) -> None:
    page = OrdersPage("Order 1", "Order 2", done="Order 1")
    plan = APPROVE.replace('"Approved"', '"Order 2 was approved"')

    def script(command, args):
        if command == "click":
            page.extra = [{"role": "status", "name": "Order 2 was approved"}]
            return acted("click")
        return page.snapshot() if command == "snapshot" else ok(command, {})

    assert talk("careful", plan, script, tmp_path).claim == "done"


def test_an_effect_that_a_reload_takes_back_is_not_claimed(tmp_path: Path) -> None:
    page = OrdersPage("Order 2")

    def script(command, args):
        match command:
            case "snapshot":
                return page.snapshot()
            case "click":
                page.done = "Order 2"
                return acted("click")
            case "navigate":
                page.done = ""
        return ok(command, {})

    assert talk("careful", APPROVE, script, tmp_path).claim == "failed"


def test_two_of_the_same_are_never_acted_on(tmp_path: Path) -> None:
    page = OrdersPage("Order 2", "Order 2")
    found = talk("careful", APPROVE, lambda c, _: page.snapshot() if c == "snapshot" else ok(c, {}), tmp_path)
    assert found.commands == ["snapshot", "finish"]
    assert found.claim == "unsure"


@pytest.mark.parametrize(
    "answer", [error("click", "STALE_REF"), error("click", "ACTION_FAILED", kind="changed_at_dispatch")]
)
def test_a_stale_ref_means_a_new_look(tmp_path: Path, answer) -> None:
    page, answers = OrdersPage("Order 2"), [answer]

    def script(command, args):
        if command == "click":
            if answers:
                return answers.pop()
            page.done = "Order 2"
            return acted("click")
        return page.snapshot() if command == "snapshot" else ok(command, {})

    found = talk("careful", APPROVE, script, tmp_path)
    assert found.commands[:4] == ["snapshot", "click", "snapshot", "click"]
    assert [a["ref"] for a in found.args("click")] == ["@s0001:e1", "@s0002:e1"]
    assert found.claim == "done"


def test_a_denial_ends_the_work(tmp_path: Path) -> None:
    page = OrdersPage("Order 2")

    def script(command, args):
        if command == "click":
            return error("click", "POLICY_DENIED", kind="forbidden_name", retryable=False)
        return page.snapshot() if command == "snapshot" else ok(command, {})

    found = talk("careful", APPROVE, script, tmp_path)
    assert found.commands == ["snapshot", "click", "finish"]
    assert found.claim == "refused"


@pytest.mark.parametrize("delivery", ["delivered_unverified", "delivery_uncertain"])
def test_a_timeout_that_may_have_been_delivered_is_read_back_and_never_sent_again(
    tmp_path: Path, delivery: str
) -> None:
    page = OrdersPage("Order 2")

    def script(command, args):
        match command:
            case "click":
                return error("click", "TIMEOUT", delivery=delivery, kind="dispatch_timeout")
            case "navigate":
                page.done = "Order 2"  # the server had it all along; only a new page shows it
        return page.snapshot() if command == "snapshot" else ok(command, {})

    found = talk("careful", APPROVE, script, tmp_path)
    assert found.commands.count("click") == 1
    assert "navigate" in found.commands
    assert found.claim == "done"


def test_not_actionable_is_a_failure_and_not_a_guess(tmp_path: Path) -> None:
    page = OrdersPage("Order 2")

    def script(command, args):
        if command == "click":
            return error("click", "TIMEOUT", kind="actionability_timeout")
        return page.snapshot() if command == "snapshot" else ok(command, {})

    found = talk("careful", APPROVE, script, tmp_path)
    assert found.commands == ["snapshot", "click", "finish"]
    assert found.claim == "failed"


@pytest.mark.parametrize(("complete", "claim"), [(True, "failed"), (False, "unsure")])
def test_absence_is_concluded_from_a_complete_page_only(tmp_path: Path, complete: bool, claim: str) -> None:
    page = OrdersPage("Order 1")
    page.complete = complete
    found = talk("careful", APPROVE, lambda c, _: page.snapshot() if c == "snapshot" else ok(c, {}), tmp_path)
    assert "click" not in found.commands
    assert found.claim == claim


def test_a_subtree_that_was_cut_or_a_name_that_was_not_read_establishes_no_absence(tmp_path: Path) -> None:
    for extra in ({"role": "group", "subtree_truncated": True}, {"role": "button", "unknown": ["name"]}):
        page = OrdersPage("Order 1")
        page.extra = [extra]
        found = talk("careful", APPROVE, lambda c, _, p=page: p.snapshot() if c == "snapshot" else ok(c, {}), tmp_path)
        assert found.claim == "unsure", extra


def test_an_open_dialog_leaves_it_unsure(tmp_path: Path) -> None:
    page = OrdersPage("Order 2")

    def script(command, args):
        if command == "click":
            return acted("click", details={"kind": "pending_dialog"})
        return page.snapshot() if command == "snapshot" else ok(command, {})

    found = talk("careful", APPROVE, script, tmp_path)
    assert found.commands == ["snapshot", "click", "finish"]
    assert found.claim == "unsure"


def test_the_end_of_the_budget_is_claimed_as_failed_without_another_command(tmp_path: Path) -> None:
    page = OrdersPage("Order 2")
    found = talk("careful", APPROVE, lambda c, _: None if c == "click" else page.snapshot(), tmp_path)
    assert found.commands == ["snapshot", "click", "finish"]
    assert (found.claim, found.status) == ("failed", 0)


def test_a_budget_that_is_used_up_is_claimed_as_failed(tmp_path: Path) -> None:
    page = OrdersPage("Order 2")

    def script(command, args):
        if command == "click":
            return error("click", "BUDGET_EXHAUSTED")
        return page.snapshot() if command == "snapshot" else ok(command, {})

    assert talk("careful", APPROVE, script, tmp_path).claim == "failed"


def test_several_goals_in_order_with_values_keys_and_addresses(tmp_path: Path) -> None:
    plan = """
goals:
  - {act: navigate, url: "/customers?page=2"}
  - {act: set-value, role: textbox, name: "Note", value: "called"}
  - {act: press, role: textbox, name: "Note", key: Enter}
  - {act: click, role: button, name: "Close hint", optional: true}
  - {act: read, done_when: {text: "saved", gone: "not yet"}}
claim: refused
"""
    page = OrdersPage()
    page.extra = [
        {"role": "textbox", "name": "Note", "ref_id": "@s0001:e1"},
        {"role": "statictext", "name": "all saved"},
    ]

    def script(command, args):
        return page.snapshot() if command == "snapshot" else acted(command, "delivered_verified")

    found = talk("careful", plan, script, tmp_path)
    assert found.args("navigate")[0] == {"url": "http://app/customers?page=2"}
    assert found.args("set-value") == [{"ref": "@s0001:e1", "value": "called"}]
    assert found.args("press") == [{"ref": "@s0001:e1", "key": "Enter"}]
    assert "click" not in found.commands
    assert found.claim == "refused"


@pytest.mark.parametrize(("complete", "claim"), [(True, "done"), (False, "unsure")])
def test_that_something_is_gone_is_read_from_a_complete_page_only(tmp_path: Path, complete: bool, claim: str) -> None:
    page = OrdersPage("Order 1")
    page.complete = complete
    plan = 'goals: [{act: read, done_when: {gone: "Order 2"}}]\nclaim: done\n'
    found = talk("careful", plan, lambda c, _: page.snapshot() if c == "snapshot" else ok(c, {}), tmp_path)
    assert found.claim == claim


def test_a_page_that_did_not_answer_once_is_asked_once_more(tmp_path: Path) -> None:
    """A busy machine: neither the first look nor the first click gets through."""
    page, refusals = OrdersPage("Order 1", "Order 2"), {"snapshot": 1, "click": 1}

    def script(command, args):
        if refusals.get(command, 0):
            refusals[command] -= 1
            return error(command, "APP_UNRESPONSIVE", kind="observation_incomplete")
        if command == "click":
            page.done = "Order 2"
            return acted("click")
        return page.snapshot() if command == "snapshot" else ok(command, {})

    found = talk("careful", APPROVE, script, tmp_path)
    begun = ["snapshot", "snapshot", "click", "snapshot", "click"]
    assert found.commands == [*begun, "snapshot", "navigate", "snapshot", "finish"]
    assert found.claim == "done"


@pytest.mark.parametrize("agent", ["careful", "quitter", "optimist"])
def test_a_page_that_nobody_saw_is_no_failure_of_the_task(tmp_path: Path, agent: str) -> None:
    def script(command, args):
        return error(command, "APP_UNRESPONSIVE", kind="observation_incomplete")

    found = talk(agent, APPROVE, script, tmp_path)
    assert found.commands == ["snapshot", "snapshot", "finish"]
    assert found.claim == "unsure"
