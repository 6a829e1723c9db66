"""What every adapter must do, whatever it is an adapter of. A test module subclasses `AdapterContract` and gives it a
`stage`: an adapter on an application with known parts, whose effects are counted by the application itself.

The parts: buttons `Buy` and `Closed` (disabled), a button `Hang` whose handler acts and then hangs, `Approve` in the
rows *Order 1001* and *Order 1002*, a text box `Note`, and a secure one, `Password`, that holds `hunter2`.
"""

from __future__ import annotations

import asyncio
import json
from typing import Protocol

from deskcert.adapters.base import (
    Action,
    Adapter,
    Dispatch,
    DispatchEnd,
    Gone,
    Handle,
    Live,
    ObserveOptions,
    RawNode,
    RawObservation,
    Unreadable,
)
from deskcert.contract.evidence import Evidence, Known
from deskcert.guard.delivery import judge_dispatch
from deskcert.guard.identity import Same, compare
from deskcert.guard.verification import NO_CLAIM
from deskcert_schema.disposition import Delivery
from deskcert_schema.errors import AdapterError

CLICK = Action("click")
BUDGET_MS = 2_000
SECRET = "hunter2"


class Stage(Protocol):
    adapter: Adapter

    async def effects(self) -> list[str]:
        """In order, by the application's own account: `buy`, `hang`, `approve 1001`, `note <text>`."""
        ...

    async def until(self, effect: str) -> bool:
        """The effect has come, or did not in a good while."""
        ...

    async def do(self, what: str, name: str = "", to: str = "") -> None:
        """`rename | enable | disable | remove` a part, `recycle` the rows, `restart`, `freeze`, `thaw`."""
        ...


def find(seen: RawObservation, name: str, row: str | None = None) -> tuple[RawNode, Handle]:
    nodes = [
        n
        for n in seen.nodes
        if n.get("name") == name
        and n["role"] not in ("label", "statictext")
        and (row is None or [row] == [v for _, v in n["context"]])
    ]
    assert len(nodes) == 1, (name, row, nodes)
    return nodes[0], Handle(nodes[0].get("document", seen.window.document), nodes[0]["node"])


async def observe(stage: Stage) -> RawObservation:
    return await stage.adapter.observe(ObserveOptions(budget_ms=10_000))


async def look(stage: Stage, handle: Handle, action: Action = CLICK) -> Evidence:
    probed = await stage.adapter.probe(handle, action, budget_ms=BUDGET_MS)
    assert isinstance(probed, Live), probed
    return probed.evidence


async def perform(
    stage: Stage, handle: Handle, expected: Evidence, action: Action = CLICK
) -> tuple[Dispatch, list[str]]:
    points: list[str] = []

    async def at(point: str) -> None:
        points.append(point)

    found = await stage.adapter.perform(handle, action, expected, number=7, budget_ms=BUDGET_MS, at=at)
    return found, points


class AdapterContract:
    """Every test gets a fresh `stage`."""

    async def test_an_observation_is_complete_and_says_the_same_twice(self, stage: Stage) -> None:
        first, second = await observe(stage), await observe(stage)
        assert first.complete
        assert first.reasons == ()
        for name, role in (("Buy", "button"), ("Note", "textbox"), ("Password", "textbox")):
            node, handle = find(first, name)
            assert node["role"] == role
            assert find(second, name)[1] == handle
        assert first.window.document == second.window.document
        assert (await stage.adapter.window()).document == first.window.document

    async def test_every_element_that_can_be_acted_on_is_found_again_as_the_same(self, stage: Stage) -> None:
        seen = await observe(stage)
        acting = [n for n in seen.nodes if n.get("actions") and "hidden" not in n.get("states", ())]
        assert len(acting) >= 7
        for node in acting:
            handle = Handle(node.get("document", seen.window.document), node["node"])
            assert compare(node, handle, await look(stage, handle)) == Same(), node

    async def test_evidence_survives_being_written_down(self, stage: Stage) -> None:
        _, handle = find(await observe(stage), "Buy")
        first, second = await look(stage, handle), await look(stage, handle)
        assert (first.digest, first.compared) == (second.digest, second.compared)
        read = Evidence.from_json(json.loads(json.dumps(first.as_json())))
        assert read.as_json() == first.as_json()

    async def test_a_click_has_its_effect_once_and_says_when_it_went_out(self, stage: Stage) -> None:
        _, handle = find(await observe(stage), "Buy")
        dispatch, points = await perform(stage, handle, await look(stage, handle))
        assert dispatch.end is DispatchEnd.COMPLETED
        assert points[0] == "dispatched"
        assert await stage.until("buy")
        assert await stage.effects() == ["buy"]

    async def test_twins_are_told_apart_by_their_row_and_the_right_one_is_acted_on(self, stage: Stage) -> None:
        seen = await observe(stage)
        _, handle = find(seen, "Approve", "Order 1002")
        evidence = await look(stage, handle)
        assert any(label == "Order 1002" for _, label in evidence.context)
        dispatch, _ = await perform(stage, handle, evidence)
        assert dispatch.end is DispatchEnd.COMPLETED
        assert await stage.until("approve 1002")
        assert await stage.effects() == ["approve 1002"]

    async def test_a_row_that_shows_something_else_now_is_not_the_same(self, stage: Stage) -> None:
        node, handle = find(await observe(stage), "Approve", "Order 1001")
        expected = await look(stage, handle)
        await stage.do("recycle")
        probed = await stage.adapter.probe(handle, CLICK, budget_ms=BUDGET_MS)
        assert isinstance(probed, Gone) or (
            isinstance(probed, Live) and compare(node, handle, probed.evidence) != Same()
        )
        dispatch, _ = await perform(stage, handle, expected)
        assert dispatch.end in (DispatchEnd.CHANGED, DispatchEnd.NOT_SENT)
        assert await stage.effects() == []

    async def test_what_differs_in_the_act_is_not_acted_on(self, stage: Stage) -> None:
        _, handle = find(await observe(stage), "Buy")
        expected = await look(stage, handle)
        await stage.do("rename", "Buy", "Delete everything")
        dispatch, _ = await perform(stage, handle, expected)
        assert dispatch.end is DispatchEnd.CHANGED
        assert dispatch.differences
        assert dispatch.live is not None
        assert dispatch.live.names.accessible == Known("Delete everything")
        assert judge_dispatch(dispatch, NO_CLAIM).delivery is Delivery.NOT_DELIVERED
        assert await stage.effects() == []

    async def test_what_is_gone_is_gone_and_nothing_is_sent(self, stage: Stage) -> None:
        _, handle = find(await observe(stage), "Buy")
        expected = await look(stage, handle)
        await stage.do("remove", "Buy")
        probed = await stage.adapter.probe(handle, CLICK, budget_ms=BUDGET_MS)
        assert isinstance(probed, Gone)
        assert probed.reason == "removed"
        dispatch, _ = await perform(stage, handle, expected)
        assert dispatch.end is DispatchEnd.NOT_SENT
        assert await stage.effects() == []

    async def test_after_a_restart_no_old_handle_means_anything(self, stage: Stage) -> None:
        before = await observe(stage)
        _, handle = find(before, "Buy")
        expected = await look(stage, handle)
        await stage.do("restart")
        after = await observe(stage)
        assert after.window.document != before.window.document
        assert isinstance(await stage.adapter.probe(handle, CLICK, budget_ms=BUDGET_MS), Gone)
        dispatch, _ = await perform(stage, handle, expected)
        assert dispatch.end is DispatchEnd.NOT_SENT
        find(after, "Buy")
        assert await stage.effects() == []

    async def test_a_value_that_is_set_is_read_back(self, stage: Stage) -> None:
        _, handle = find(await observe(stage), "Note")
        action = Action("set-value", "Jürgen 漢字")
        evidence = await look(stage, handle, action)
        assert evidence.states["editable"] == Known(True)
        dispatch, _ = await perform(stage, handle, evidence, action)
        assert dispatch.end is DispatchEnd.COMPLETED
        assert await stage.until("note Jürgen 漢字")
        assert (await look(stage, handle, action)).value == Known("Jürgen 漢字")

    async def test_a_secure_value_is_never_read(self, stage: Stage) -> None:
        seen = await observe(stage)
        node, handle = find(seen, "Password")
        assert "secure" in node["states"]
        evidence = await look(stage, handle)
        assert evidence.states["secure"] == Known(True)
        assert SECRET not in repr(seen)
        assert SECRET not in repr(evidence)
        assert SECRET not in evidence.compared

    async def test_a_disabled_control_says_so_and_what_it_would_take(self, stage: Stage) -> None:
        node, handle = find(await observe(stage), "Closed")
        assert "disabled" in node["states"]
        evidence = await look(stage, handle)
        assert evidence.states["enabled"] == Known(False)
        assert "click" in evidence.actions
        await stage.do("enable", "Closed")
        assert (await look(stage, handle)).states["enabled"] == Known(True)

    async def test_an_application_that_does_not_answer_is_unreadable_and_never_absent(self, stage: Stage) -> None:
        _, handle = find(await observe(stage), "Buy")
        expected = await look(stage, handle)
        await stage.do("freeze")
        async with asyncio.timeout(20):
            probed = await stage.adapter.probe(handle, CLICK, budget_ms=300)
            assert isinstance(probed, Unreadable)
            try:
                seen = await stage.adapter.observe(ObserveOptions(budget_ms=300))
            except AdapterError:
                pass
            else:
                assert not seen.complete
                assert seen.reasons
        await stage.do("thaw")
        assert isinstance(await stage.adapter.probe(handle, CLICK, budget_ms=10_000), Live)
        assert expected.digest == (await look(stage, handle)).digest
        assert await stage.effects() == []

    async def test_a_handler_that_acts_and_then_hangs_is_never_said_to_have_done_nothing(self, stage: Stage) -> None:
        _, handle = find(await observe(stage), "Hang")
        dispatch, _ = await perform(stage, handle, await look(stage, handle))
        assert dispatch.end is DispatchEnd.NO_ANSWER
        delivery = judge_dispatch(dispatch, NO_CLAIM).delivery
        assert delivery is (Delivery.DELIVERED_UNVERIFIED if dispatch.reached else Delivery.DELIVERY_UNCERTAIN)
        assert await stage.until("hang")
        assert await stage.effects() == ["hang"]

    async def test_no_element_is_found_in_another_ones_name(self, stage: Stage) -> None:
        seen = await observe(stage)
        unknown = Handle(seen.window.document, "no-such-element")
        assert not isinstance(await stage.adapter.probe(unknown, CLICK, budget_ms=BUDGET_MS), Live)

    async def test_closing_twice_is_no_error(self, stage: Stage) -> None:
        await stage.adapter.close()
        await stage.adapter.close()
