"""What the two ports share: the database, the effect log, the fault plan and the line to the open page."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from deskcert_fixture_app.effects import Cause, EffectLog
from deskcert_fixture_app.faults import Fault, FaultKind, FaultPlan
from deskcert_fixture_app.pagebus import PageBus
from deskcert_fixture_app.seed import Seed
from deskcert_fixture_app.store import Store
from deskcert_fixture_app.writes import Done, Refused, Write, commit

__all__ = ["Office"]


@dataclass(slots=True)
class Office:
    store: Store
    effects: EffectLog
    url: str = ""
    """Where the application is served, without a slash at the end."""
    faults: FaultPlan = field(default_factory=FaultPlan)
    bus: PageBus = field(default_factory=PageBus)
    pending: int = 0
    """Writes in hand that may still commit: one that hangs is not among them."""
    flash: tuple[str, str] | None = None
    """`good | bad` and a sentence, for the next page that is served: the answer to a classic form post."""

    def restart(self, seed: Seed, faults: FaultPlan, random_seed: int) -> None:
        self.store.reset(seed, random_seed)
        self.effects.restart()
        self.faults = faults
        self.bus.forget()
        self.flash = None

    def take_flash(self) -> tuple[str, str] | None:
        flash, self.flash = self.flash, None
        return flash

    async def write(self, write: Write, identity: int, body: Mapping[str, str], cause: Cause) -> Done:
        """Does one write, as the fault plan wants it. Raises `Refused`; may never return."""
        method, _, path = cause.request.partition(" ")
        fault = self.faults.take(method, path)
        if fault is not None and fault.kind is FaultKind.HANG_BEFORE_COMMIT:
            await asyncio.Event().wait()
        done = await self._commit(fault, write, identity, body, cause)
        if fault is not None:
            await self._after(fault)
        return done

    async def _commit(
        self, fault: Fault | None, write: Write, identity: int, body: Mapping[str, str], cause: Cause
    ) -> Done:
        epoch = self.store.epoch
        self.pending += 1
        try:
            if fault is not None:
                await self._before(fault)
            if self.store.epoch != epoch:
                raise Refused(409, "The application was restarted.")
            done = commit(self.store, write, identity, body)
            self.effects.write(done.kind, done.id, cause, done.fields)
        finally:
            self.pending -= 1
        return done

    async def _before(self, fault: Fault) -> None:
        match fault.kind:
            case FaultKind.SLOW:
                await asyncio.sleep(fault.ms / 1000)
            case FaultKind.ERROR_500:
                raise Refused(500, "Something went wrong on our side. Please try again.")
            case FaultKind.OPTIMISTIC_ROLLBACK:
                await asyncio.sleep(fault.ms / 1000)
                raise Refused(422, "The change was rejected by the warehouse.")
            case _:
                return

    async def _after(self, fault: Fault) -> None:
        match fault.kind:
            case FaultKind.COMMIT_THEN_HANG:
                await asyncio.Event().wait()
            case FaultKind.COMMIT_THEN_500:
                raise Refused(500, "Something went wrong on our side. Please try again.")
            case _:
                return
