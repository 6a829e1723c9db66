"""(5) The input lease: one per browser or desktop, shared by every session on it. It covers dispatch, never a wait."""

from __future__ import annotations

import asyncio

__all__ = ["Lease"]


class Lease:
    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._waiting = 0

    async def take(self, budget_ms: int) -> tuple[bool, int]:
        """Whether it is held now, and how many others held it or waited for it before."""
        before = self._waiting + self._lock.locked()
        self._waiting += 1
        try:
            async with asyncio.timeout(budget_ms / 1000):
                await self._lock.acquire()
        except TimeoutError:
            return False, before
        finally:
            self._waiting -= 1
        return True, before

    def release(self) -> None:
        self._lock.release()
