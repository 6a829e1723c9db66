"""The half of the engine that meets the page: snapshots, read-backs, one more look at a page loaded anew, and the one
door through which every acting command goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from deskcert.agents.channel import Answer, Channel, Task
from deskcert.agents.decisions import Attempt, Decisions, Ending
from deskcert.agents.page import Holds, Page, read_page
from deskcert.agents.plan import Goal
from deskcert_schema.vocabulary import ClaimOutcome, Code, DetailKind

__all__ = ["PATIENT", "PAUSES", "UNANSWERED", "Halted", "Reading", "ending_of", "missing"]

PAUSES: Final = (0.15,) * 5
"""Seconds between two looks at a page that is there, while an expected thing has not appeared."""
PATIENT: Final = (0.15, 0.25, 0.4, 0.7, 1.0, 1.5)
"""Seconds between two looks for the effect of an action: an answer may take its time, and asking twice is no way to
hurry it."""

UNANSWERED: Final = frozenset({Code.APP_UNRESPONSIVE.value, Code.TIMEOUT.value})
"""The application had no time to answer, which is no answer."""


class Halted(Exception):
    """The work is over before the plan is; `ending` is what can honestly be claimed."""

    def __init__(self, outcome: ClaimOutcome, why: str) -> None:
        self.ending = Ending(outcome, why)
        super().__init__(why)


class Reading:
    def __init__(self, channel: Channel, task: Task, decisions: Decisions, pause: Callable[[float], None]) -> None:
        self._channel, self._task, self._decisions, self._pause = channel, task, decisions, pause
        self._used = 0
        """Acting commands so far."""
        self.page: Page | None = None
        """The newest one that was seen."""
        self.before: Page | None = None
        """The one that was acted on: an effect is what it did not show."""

    def look(self) -> Page:
        """A snapshot; a second one where the application did not answer the first: looking does no harm, and a page
        that nobody saw is no reason to say that the task failed. Raises `Halted` where there is none."""
        answer = self._channel.ask("snapshot")
        if answer.code in UNANSWERED:
            self._pause(PAUSES[0])
            answer = self._channel.ask("snapshot")
        if answer.code in UNANSWERED:
            raise Halted(ClaimOutcome.UNSURE, f"the page could not be seen: {answer.message}")
        if not answer.ok:
            raise ending_of(answer)
        self.page = self._decisions.as_seen(read_page(answer.data))
        return self.page

    def send(self, attempt: Attempt) -> Answer:
        """An acting command. Raises `Halted` where the budget leaves none."""
        if not self._decisions.may_act(self._used, self._task.actions):
            raise Halted(ClaimOutcome.FAILED, f"the budget of {self._task.actions} actions is used up")
        self._used += 1
        return self._channel.ask(attempt.command, **attempt.args)

    def find(self, goal: Goal) -> None:
        """A goal that only reads. Raises `Halted` if it is not there."""
        page = self.wait_until(lambda p: _shows(p, goal) is Holds.YES)
        if _shows(page, goal) is not Holds.YES and not goal.optional:
            raise missing(page, f"{goal.words} was not found")

    def wait_until(
        self, seen: Callable[[Page], bool], look: Callable[[], Page] | None = None, pauses: Sequence[float] = PAUSES
    ) -> Page:
        """Look until `seen` answers yes, a bounded number of times; the last page either way."""
        take = look or self.look
        page = take()
        for seconds in pauses:
            if seen(page):
                break
            self._pause(seconds)
            page = take()
        return page

    def read_back(self, goal: Goal, pauses: Sequence[float] = PATIENT) -> Holds:
        """Whether the page shows that the goal is reached."""
        when = goal.done_when
        assert when is not None
        page = self.wait_until(lambda p: p.holds(when, goal.context, self.before) is Holds.YES, pauses=pauses)
        return page.holds(when, goal.context, self.before)

    def read_anew(self, goal: Goal) -> None:
        """Load the page once more and read it. Raises `Halted` unless it shows that the goal is reached."""
        url = self.page.url if self.page is not None else self._task.start_url
        answer = self.send(Attempt("navigate", {"url": url}))
        if not answer.ok:
            raise Halted(ClaimOutcome.UNSURE, f"{goal.words} was sent; the page could not be loaded again")
        match self.read_back(goal, PAUSES):
            case Holds.YES:
                return
            case Holds.NO:
                raise Halted(ClaimOutcome.FAILED, f"{goal.words} was sent; the page loaded anew does not show it")
            case Holds.NOT_ESTABLISHED:
                raise Halted(ClaimOutcome.UNSURE, f"{goal.words} was sent; the page could not be read completely")


def missing(page: Page, what: str) -> Halted:
    """Absence is only ever concluded from a page that was seen completely."""
    if page.complete:
        return Halted(ClaimOutcome.FAILED, what)
    return Halted(ClaimOutcome.UNSURE, f"{what}, and the page could not be read completely")


def ending_of(answer: Answer) -> Halted:
    """What an answer that ends the work means for the claim."""
    if answer.code == Code.POLICY_DENIED and answer.kind != DetailKind.UNSAFE_RETRY:
        return Halted(ClaimOutcome.REFUSED, f"this is forbidden here: {answer.message}")
    if answer.retry != "safe" or answer.kind in (DetailKind.UNSAFE_RETRY, DetailKind.PENDING_DIALOG):
        return Halted(ClaimOutcome.UNSURE, f"it is not known what happened: {answer.message}")
    return Halted(ClaimOutcome.FAILED, f"it could not be done: {answer.message}")


def _shows(page: Page, goal: Goal) -> Holds:
    if goal.done_when is not None:
        return page.holds(goal.done_when, goal.context)
    if page.named(goal):
        return Holds.YES
    return Holds.NO if page.complete else Holds.NOT_ESTABLISHED
