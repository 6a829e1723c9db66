"""The two times a record carries: the wall clock for people, a monotonic clock for durations."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock", "timestamp"]


class Clock(Protocol):
    def now(self) -> datetime:
        """UTC."""
        ...

    def monotonic_us(self) -> int:
        """Microseconds from an arbitrary start; never goes back."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_us(self) -> int:
        return time.monotonic_ns() // 1000


def timestamp(moment: datetime) -> str:
    """`2026-11-30T20:25:42.123456Z`: UTC, six digits, always."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
