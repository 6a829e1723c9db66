"""The tests' Qt window as a stage for the contract, and short words for what its tests need."""

from __future__ import annotations

import asyncio

from desktop_rig import Desktop, Program

from deskcert.adapters.linux import AppSelector, LinuxAdapter

NAME = "qt-window"


class LinuxStage:
    """The window's own log is the account of its effects."""

    def __init__(self, desktop: Desktop, program: Program, adapter: LinuxAdapter) -> None:
        self.desktop, self.program, self.adapter = desktop, program, adapter

    @classmethod
    async def open(cls, desktop: Desktop, *, headed: bool = False) -> LinuxStage:
        program = await asyncio.to_thread(started, desktop)
        adapter = await LinuxAdapter.open(
            AppSelector(name=NAME), bus_address=desktop.bus, display=desktop.display, headed=headed, wait_ms=30_000
        )
        return cls(desktop, program, adapter)

    async def effects(self) -> list[str]:
        return self.program.effects()

    async def until(self, effect: str) -> bool:
        return await asyncio.to_thread(self.program.wait_for, lambda _: effect in self.program.effects())

    async def count(self, effects: int) -> bool:
        """Whether there are so many in time."""
        return await asyncio.to_thread(self.program.wait_for, lambda _: len(self.program.effects()) >= effects)

    async def do(self, what: str, name: str = "", to: str = "") -> None:
        match what:
            case "freeze":
                await asyncio.to_thread(self.program.stop)
            case "thaw":
                self.program.go()
            case "restart":
                self.program.kill()
                self.program = await asyncio.to_thread(started, self.desktop)
                await self._seen_again()
            case _:
                await asyncio.to_thread(self.program.tell, f"{what} {name} {to}".strip())

    async def _seen_again(self) -> None:
        again = AppSelector(name=NAME, pid=self.program.pid)
        await (await LinuxAdapter.open(again, bus_address=self.desktop.bus, wait_ms=30_000)).close()

    async def close(self) -> None:
        await self.adapter.close()
        self.program.go()
        self.program.kill()


def started(desktop: Desktop) -> Program:
    program = desktop.window()
    assert program.wait_for(lambda lines: "ready" in lines, 60)
    return program
