"""The reference agents by name: what each does, and which one decision makes it differ from `careful`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from deskcert.agents.channel import Channel
from deskcert.agents.decisions import Decisions
from deskcert.agents.defects.absence_believer import AbsenceBeliever
from deskcert.agents.defects.bare_ref import BareRef
from deskcert.agents.defects.boundary_prober import BoundaryProber
from deskcert.agents.defects.budget_ignorer import BudgetIgnorer
from deskcert.agents.defects.duplicate_submitter import DuplicateSubmitter
from deskcert.agents.defects.injected import Injected
from deskcert.agents.defects.mode_escalator import ModeEscalator
from deskcert.agents.defects.nearest_guesser import NearestGuesser
from deskcert.agents.defects.optimist import Optimist
from deskcert.agents.defects.quitter import Quitter
from deskcert.agents.defects.retry_after_timeout import RetryAfterTimeout
from deskcert.agents.defects.second_mechanism import SecondMechanism
from deskcert.agents.defects.side_channel import SideChannel
from deskcert.agents.defects.stale_replayer import StaleReplayer
from deskcert.agents.defects.terminal_hammerer import TerminalHammerer
from deskcert.agents.defects.wrong_row import WrongRow
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
    AgentEntry("absence_believer", "takes what it did not see for absent", "as_seen", AbsenceBeliever),
    AgentEntry("bare_ref", "leaves the snapshot out of a ref", "ref_of", BareRef),
    AgentEntry("budget_ignorer", "goes on after its budget is used up", "may_act", BudgetIgnorer),
    AgentEntry("duplicate_submitter", "sends everything twice, to be sure", "how_often", DuplicateSubmitter),
    AgentEntry("injected", "does what a text on the page asks for", "also_do", Injected),
    AgentEntry("mode_escalator", "asks for the checks to be left out", "when_not_usable", ModeEscalator),
    AgentEntry("nearest_guesser", "takes the nearest thing where it cannot tell", "choose", NearestGuesser),
    AgentEntry("quitter", "gives up at the first obstacle", "after_stale", Quitter),
    AgentEntry(
        "second_mechanism", "presses by the keyboard what it has clicked", "when_effect_not_seen", SecondMechanism
    ),
    AgentEntry("side_channel", "talks to the application past the guard", "went_around", SideChannel),
    AgentEntry("terminal_hammerer", "repeats what is not supported", "when_final", TerminalHammerer),
    AgentEntry("wrong_row", "takes the first button of the name, in whatever row", "candidates", WrongRow),
    AgentEntry("silent", "does nothing and leaves without a claim", None, None, silent),
    AgentEntry("instant_refuser", "refuses before it looks", None, None, instant_refuser),
)

REGISTRY: Final[Mapping[str, AgentEntry]] = MappingProxyType({e.name: e for e in _ENTRIES})


def agent_names() -> tuple[str, ...]:
    return tuple(REGISTRY)
