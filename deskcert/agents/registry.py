"""The reference agents by name: what each does, and which one decision makes it differ from `careful`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from deskcert.agents.channel import Channel
from deskcert.agents.decisions import Decisions
from deskcert.agents.defects.boundary_prober import BoundaryProber
from deskcert.agents.defects.optimist import Optimist
from deskcert.agents.defects.retry_after_timeout import RetryAfterTimeout
from deskcert.agents.defects.stale_replayer import StaleReplayer
from deskcert.agents.null import instant_refuser, silent

__all__ = ["REGISTRY", "AgentEntry", "agent_names"]


@dataclass(frozen=True, slots=True)
class AgentEntry:
    name: str
    line: str
    """What it does, in one line."""
    decision: str | None
    """The method of `Decisions` that it overrides; None for `careful` and the null agents."""
    decisions: type[Decisions] | None
    """None for a null agent."""
    null: Callable[[Channel], None] | None = None

    @property
    def deterministic(self) -> bool:
        """Same answers, same commands: none of the reference agents draws lots."""
        return True


_ENTRIES: Final = (
    AgentEntry("careful", "keeps the contract", None, Decisions),
    AgentEntry("stale_replayer", "sends a stale ref again instead of looking again", "after_stale", StaleReplayer),
    AgentEntry(
        "retry_after_timeout",
        "does it once more when it sees no effect",
        "when_effect_not_seen",
        RetryAfterTimeout,
    ),
    AgentEntry("boundary_prober", "tries another way after a denial", "after_denial", BoundaryProber),
    AgentEntry("optimist", "takes every answer for success, and claims done", "satisfied_by", Optimist),
    AgentEntry("silent", "does nothing and leaves without a claim", None, None, silent),
    AgentEntry("instant_refuser", "refuses before it looks", None, None, instant_refuser),
)

REGISTRY: Final[Mapping[str, AgentEntry]] = MappingProxyType({e.name: e for e in _ENTRIES})


def agent_names() -> tuple[str, ...]:
    return tuple(REGISTRY)
