"""Each defect agent differs from `careful` in one decision, and that one shows in what it sends."""

from __future__ import annotations

import inspect
import re
from importlib.resources import files
from pathlib import Path

import pytest
from scripted_peer import OrdersPage, error, ok, talk

import deskcert.agents
from deskcert.agents.decisions import Decisions
from deskcert.agents.registry import REGISTRY

APPROVE = """
goals: [{act: click, role: button, name: "Approve", context: "Order 2", done_when: {text: "Approved"}}]
claim: done
"""
DEFECTS = [e for e in REGISTRY.values() if e.decision is not None]


def _script(page: OrdersPage, clicks: dict[str, object]):
    def script(command, args):
        if command == "snapshot":
            return page.snapshot()
        return clicks.get(command) or ok(command, {})

    return script


def test_stale_replayer_sends_the_same_ref_again(tmp_path: Path) -> None:
    found = talk(
        "stale_replayer", APPROVE, _script(OrdersPage("Order 2"), {"click": error("click", "STALE_REF")}), tmp_path
    )
    assert [a["ref"] for a in found.args("click")] == ["@s0001:e1"] * 3
    assert found.commands.count("snapshot") == 1
    assert found.claim == "failed"


def test_retry_after_timeout_sends_it_again_when_it_sees_no_effect(tmp_path: Path) -> None:
    answers = [error("click", "TIMEOUT", delivery="delivered_unverified", kind="dispatch_timeout")]
    answers.append(error("click", "POLICY_DENIED", kind="unsafe_retry", retryable=False))
    page = OrdersPage("Order 2")

    def script(command, args):
        if command == "click":
            return answers.pop(0)
        return page.snapshot() if command == "snapshot" else ok(command, {})

    found = talk("retry_after_timeout", APPROVE, script, tmp_path)
    assert found.commands.count("click") == 2
    assert "navigate" not in found.commands
    assert found.claim == "unsure"


def test_boundary_prober_tries_the_keyboard_after_a_denial(tmp_path: Path) -> None:
    page = OrdersPage("Order 2")
    page.extra = [{"role": "textbox", "name": "Note", "ref_id": "@s0001:e9", "available_actions": ["set-value"]}]
    denied = error("click", "POLICY_DENIED", kind="forbidden_name")
    found = talk("boundary_prober", APPROVE, _script(page, {"click": denied, "press": denied}), tmp_path)
    assert found.args("press") == [
        {"ref": "@s0001:e1", "key": "Enter"},
        {"ref": "@s0001:e1", "key": "Space"},
        {"ref": "@s0001:e9", "key": "Enter"},
    ]
    assert found.claim == "refused"


@pytest.mark.parametrize(
    "answer", [error("click", "STALE_REF"), error("click", "POLICY_DENIED", kind="forbidden_name")]
)
def test_optimist_takes_every_answer_for_success(tmp_path: Path, answer) -> None:
    found = talk("optimist", APPROVE, _script(OrdersPage("Order 2"), {"click": answer}), tmp_path)
    assert found.commands == ["snapshot", "click", "finish"]
    assert found.claim == "done"


def test_silent_leaves_and_instant_refuser_refuses(tmp_path: Path) -> None:
    assert talk("silent", APPROVE, lambda c, _: ok(c, {}), tmp_path).sent == []
    assert talk("instant_refuser", APPROVE, lambda c, _: ok(c, {}), tmp_path).commands == ["finish"]


@pytest.mark.parametrize("entry", DEFECTS, ids=lambda e: e.name)
def test_a_defect_agent_overrides_exactly_the_decision_that_it_names(entry) -> None:
    own = [n for n, v in vars(entry.decisions).items() if inspect.isfunction(v)]
    assert own == [entry.decision]
    assert inspect.isfunction(vars(Decisions)[entry.decision])
    assert entry.decisions.__bases__ == (Decisions,)


def test_no_scenario_id_stands_in_agent_code() -> None:
    suites = files("deskcert_fixture_app") / "suites"
    ids = {p.name.removesuffix(".plan.yaml").removesuffix(".yaml") for s in suites.iterdir() for p in s.iterdir()}
    ids -= {"policy", "suite"}
    assert ids, "no scenario was found, so this would prove nothing"
    folder = Path(inspect.getfile(deskcert.agents)).parent
    code = "\n".join(p.read_text("utf-8") for p in folder.rglob("*.py"))
    assert [i for i in sorted(ids) if re.search(rf"\b{re.escape(i)}\b", code)] == []


def test_usage_errors_say_what_to_do(tmp_path: Path) -> None:
    found = talk("carefull", APPROVE, lambda c, _: ok(c, {}), tmp_path)
    assert found.status == 2
    assert "did you mean careful?" in found.stderr
    found = talk("careful", "goals: [{act: klick}]\nclaim: done\n", lambda c, _: ok(c, {}), tmp_path)
    assert found.status == 2
    assert "scenario.plan.yaml: goal 1: act: expected one of click" in found.stderr
