"""The simulated world behind the real interface. Nothing waits: a hang is a dispatch that says it had no answer."""

from __future__ import annotations

from deskcert.adapters.base import (
    Action,
    Dialog,
    Dispatch,
    Handle,
    Navigation,
    ObserveOptions,
    PointHook,
    Probed,
    RawObservation,
    RequestSeen,
    WindowState,
)
from deskcert.adapters.simulator.world import World
from deskcert.contract.evidence import Evidence

__all__ = ["Simulator"]


class Simulator:
    """An `Adapter` over a `World`."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def observe(self, options: ObserveOptions) -> RawObservation:  # noqa: ARG002
        return self.world.observe()

    async def probe(self, handle: Handle, action: Action, *, budget_ms: int) -> Probed:  # noqa: ARG002
        return self.world.probe(handle)

    async def perform(
        self,
        handle: Handle,
        action: Action,
        expected: Evidence,
        *,
        number: int,
        budget_ms: int,  # noqa: ARG002
        at: PointHook,
    ) -> Dispatch:
        await at("dispatched")
        dispatch = self.world.perform(handle, action, expected, number)
        if dispatch.reached:
            await at("reached")
        return dispatch

    async def navigate(self, url: str, *, number: int, budget_ms: int, at: PointHook) -> Navigation:  # noqa: ARG002
        await at("dispatched")
        return self.world.navigate(url, number)

    async def window(self) -> WindowState:
        return self.world.window()

    def dialog(self) -> Dialog | None:
        return self.world.open_dialog

    def requests(self, number: int) -> tuple[RequestSeen, ...]:
        return self.world.requests(number)

    async def close(self) -> None:
        self.world.alive = False
