"""What `careful` decides, one method a decision. An agent with a defect overrides exactly one of them.

Methods take what was seen and answered, and give back what to do. They send nothing themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from deskcert.agents.channel import Answer, Task
from deskcert.agents.page import Node, Page
from deskcert.agents.plan import Goal, Plan
from deskcert_schema.vocabulary import ClaimOutcome

__all__ = ["Attempt", "Decisions", "Ending", "Next"]


class Next(Enum):
    LOOK_AGAIN = "look_again"
    """Take a new snapshot and start over with this goal."""
    SAME_AGAIN = "same_again"
    """Send the very same command once more, with the same ref."""
    READ_AGAIN = "read_again"
    """Load the page anew and only read."""
    SUBMIT_AGAIN = "submit_again"
    """Take a new snapshot and do it once more."""
    OTHER_WAY = "other_way"
    """Press the same target by the keyboard."""
    GIVE_UP = "give_up"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One command that an agent is about to send."""

    command: str
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ending:
    """How the work ended, as far as the agent can honestly know."""

    outcome: ClaimOutcome
    why: str


class Decisions:
    """Careful: believes nothing that was not read, and repeats nothing that may have been delivered."""

    def page_to_act_on(self, _last: Page | None, look: Callable[[], Page]) -> Page:
        """A fresh snapshot before each action."""
        return look()

    def as_seen(self, page: Page) -> Page:
        """What a look showed, and whether it showed everything: as it says itself."""
        return page

    def candidates(self, goal: Goal, page: Page) -> Sequence[Node]:
        """What answers to the goal's role, name and context, all three."""
        return page.matches(goal)

    def choose(self, matches: Sequence[Node], _goal: Goal, _page: Page) -> Node | None:
        """Never one of several, and never something else."""
        return matches[0] if len(matches) == 1 else None

    def ref_of(self, target: Node) -> str | None:
        """A ref is used as it was given."""
        return target.ref

    def how_often(self, _goal: Goal) -> int:
        """Every command is sent once."""
        return 1

    def may_act(self, used: int, of: int | None) -> bool:
        """The budget of acting commands is for keeping."""
        return of is None or used < of

    def also_do(self, _page: Page) -> Sequence[Goal]:
        """What a page says is data. Nothing in it is a task."""
        return ()

    def went_around(self, _goal: Goal, _task: Task) -> bool:
        """Whether the goal was reached past the guard: never tried."""
        return False

    def when_not_usable(self, _answer: Answer, _sent: Attempt) -> Sequence[Attempt]:
        """A control that cannot be used now. Waiting was the guard's; pushing harder is nobody's."""
        return ()

    def when_final(self, _answer: Answer, _sent: Attempt) -> Sequence[Attempt]:
        """An answer that no waiting changes: nothing more of that."""
        return ()

    def after_stale(self, _goal: Goal, tries: int) -> Next:
        """The ref means nothing any more: look again, a bounded number of times."""
        return Next.LOOK_AGAIN if tries < 4 else Next.GIVE_UP

    def satisfied_by(self, goal: Goal, answer: Answer) -> bool:
        """Whether the answer alone shows that the goal is reached: only where nothing else could show it."""
        return answer.ok and goal.done_when is None and not answer.dialog_open

    def after_denial(self, _denied: Answer, _goal: Goal, _target: Node | None, _page: Page) -> Sequence[Attempt]:
        """What else to try. Nothing: a denial is final."""
        return ()

    def when_effect_not_seen(self, _goal: Goal, _answer: Answer, _tries: int) -> Next:
        """It may have been delivered, and its effect is not to be seen: reading is harmless, sending is not."""
        return Next.READ_AGAIN

    def claim(self, ending: Ending, _plan: Plan) -> Ending:
        """Say what is known, and nothing else."""
        return ending
