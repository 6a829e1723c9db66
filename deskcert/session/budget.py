"""The scenario's actions and seconds. Counting is deskcert's, not the agent's."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """None: unlimited. Actions are acting commands, refused and denied ones included; seconds are since the start."""

    actions: int | None = None
    seconds: int | None = None

    def exhausted(self, *, action: int | None, elapsed_us: int) -> str | None:
        """Why the next command is over the budget, or None. `action` is its number if it is an acting one."""
        if self.seconds is not None and elapsed_us >= self.seconds * 1_000_000:
            return f"the {self.seconds} s of this task are used up; make your claim with finish"
        if self.actions is not None and action is not None and action > self.actions:
            return f"the {self.actions} actions of this task are used up; make your claim with finish"
        return None
