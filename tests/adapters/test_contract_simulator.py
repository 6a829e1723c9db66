"""The adapter contract on the simulated application."""

from __future__ import annotations

from dataclasses import replace

import pytest
from contract import AdapterContract

from deskcert.adapters.simulator import Element, Fault, Simulator, World


class SimulatedStage:
    """The world's own list of deliveries is the account of its effects."""

    def __init__(self) -> None:
        rows = [
            Element(f"n{4 + i}", f"order-{i}", "button", "Approve", (("row", f"Order 100{1 + i}"),)) for i in (0, 1)
        ]
        self.world = World(
            [
                Element("n1", "buy", "button", "Buy"),
                Element("n2", "hang", "button", "Hang"),
                Element("n3", "closed", "button", "Closed", enabled=False),
                *rows,
                Element("n6", "note", "textbox", "Note", editable=True),
                Element("n7", "password", "textbox", "Password", editable=True, secure=True, value="hunter2"),
            ]
        )
        self.adapter = Simulator(self.world)

    async def effects(self) -> list[str]:
        return [_word(d.thing, d.value) for d in self.world.delivered]

    async def until(self, effect: str) -> bool:
        return effect in await self.effects()

    async def do(self, what: str, name: str = "", to: str = "") -> None:
        node = next((e.node for e in self.world.elements if e.name == name), "")
        match what:
            case "rename":
                self.world.change(node, name=to)
            case "enable" | "disable":
                self.world.change(node, enabled=what == "enable")
            case "remove":
                self.world.remove(node)
            case "recycle":
                twins = [e for e in self.world.elements if e.name == "Approve"]
                for a, b in zip(twins, reversed(twins), strict=True):
                    self.world.elements = [
                        replace(b, node=a.node) if e.node == a.node else e for e in self.world.elements
                    ]
            case "restart":
                self.world.restart()
            case "freeze" | "thaw":
                self.world.readable = what == "thaw"


def _word(thing: str, value: str | None) -> str:
    if thing.startswith("order-"):
        return f"approve 100{1 + int(thing.removeprefix('order-'))}"
    return thing if value is None else f"{thing} {value}"


class TestSimulator(AdapterContract):
    @pytest.fixture
    def stage(self, request: pytest.FixtureRequest) -> SimulatedStage:
        made = SimulatedStage()
        if "hangs" in request.node.name:
            made.world.fault = Fault.HANG_AFTER
        return made
