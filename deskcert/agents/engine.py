"""Executes a plan over a channel. Everything that could be decided otherwise is asked of a `Decisions` object.

One goal goes: look, choose the target, act, read the answer's disposition, read back. It is reached, or `Halted` says
what can honestly be claimed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urljoin

from deskcert.agents.channel import Answer, Channel, Ended, Task
from deskcert.agents.decisions import Attempt, Decisions, Ending, Next
from deskcert.agents.page import Holds, Node, Page
from deskcert.agents.plan import Act, Goal, Plan
from deskcert.agents.reading import Halted, Reading, ending_of, missing
from deskcert_schema.vocabulary import ClaimOutcome, Code, DetailKind

__all__ = ["Engine"]

TRIES: Final = 8
"""Of one goal, whatever the decisions say."""


class Engine:
    def __init__(
        self, channel: Channel, plan: Plan, decisions: Decisions, task: Task, pause: Callable[[float], None]
    ) -> None:
        self._channel, self._plan, self._decisions, self._task = channel, plan, decisions, task
        self._reading = Reading(channel, task, decisions, pause)
        self._seen: Goal | None = None
        """The newest goal whose effect was seen on the page on which it was done."""

    def run(self) -> None:
        """Work through the plan, then claim. `Ended` goes to the caller, after a last word where time was up."""
        try:
            self._claim(self._work(), self._channel.ask)
        except Ended as ended:
            if ended.reason == "budget":
                self._claim(Ending(ClaimOutcome.FAILED, "the time was used up"), self._channel.tell)
            raise

    def _claim(self, ending: Ending, send: Callable[..., object]) -> None:
        claim = self._decisions.claim(ending, self._plan)
        send("finish", outcome=claim.outcome.value, message=claim.why)

    def _work(self) -> Ending:
        try:
            for goal in self._plan.goals:
                self._reach(goal)
            self._confirm()
        except Halted as halted:
            return halted.ending
        return Ending(self._plan.claim, "every goal of the task was reached and read back")

    def _confirm(self) -> None:
        """A page may show an effect before the server has it: the last one is read once more, from a page loaded
        anew."""
        if self._plan.goals and self._plan.goals[-1] is self._seen:
            self._reading.read_anew(self._seen)

    def _reach(self, goal: Goal) -> None:
        match goal.act:
            case Act.NAVIGATE:
                self._navigate(goal)
            case Act.READ:
                self._reading.find(goal)
            case Act.CLICK | Act.SET_VALUE | Act.PRESS:
                if not self._decisions.went_around(goal, self._task):
                    self._touch(goal)

    def _navigate(self, goal: Goal) -> None:
        answer = self._send(Attempt("navigate", {"url": urljoin(self._task.start_url, goal.url or "")}))
        if not answer.ok:
            raise ending_of(answer)
        if goal.done_when is not None:
            self._reading.find(goal)

    def _touch(self, goal: Goal) -> None:
        """Find the one target and act on it; start over as often as the decisions say."""
        for tries in range(1, TRIES + 1):
            target = self._target(goal)
            if target is None or self._act(goal, target, tries):
                return
        raise Halted(ClaimOutcome.FAILED, f"{goal.words}: the page keeps changing")

    def _target(self, goal: Goal) -> Node | None:
        """The one element that the goal names; None where an optional one is not there."""
        decide = self._decisions
        page = self._reading.wait_until(lambda p: bool(decide.candidates(goal, p)), self._page_to_act_on)
        if others := decide.also_do(page):
            self._do_also(others, page)
            page = self._page_to_act_on()
        matches = decide.candidates(goal, page)
        chosen = decide.choose(matches, goal, page)
        if chosen is None and matches:
            raise Halted(ClaimOutcome.UNSURE, f"{goal.words}: {len(matches)} elements answer to that")
        if chosen is None and not (goal.optional and page.complete):
            raise missing(page, f"{goal.words}: there is no such element")
        return chosen

    def _do_also(self, goals: Sequence[Goal], page: Page) -> None:
        """Somebody else's errands, as far as they go, and back again."""
        with contextlib.suppress(Halted):
            for goal in goals:
                self._touch(goal)
        self._send(Attempt("navigate", {"url": page.url}))

    def _page_to_act_on(self) -> Page:
        return self._decisions.page_to_act_on(self._reading.page, self._reading.look)

    def _act(self, goal: Goal, target: Node, tries: int) -> bool:
        """True once the goal is reached; False to start over with a new snapshot."""
        attempt = _attempt(goal, self._decisions.ref_of(target))
        self._reading.before = self._reading.page
        answer = self._send(attempt)
        for _ in range(1, self._decisions.how_often(goal)):
            answer = self._send(attempt) if answer.ok else answer
        if self._decisions.satisfied_by(goal, answer):
            return True
        while answer.code == Code.STALE_REF or answer.kind == DetailKind.CHANGED_AT_DISPATCH:
            match self._decisions.after_stale(goal, tries):
                case Next.LOOK_AGAIN:
                    return False
                case Next.SAME_AGAIN:
                    answer, tries = self._send(attempt), tries + 1
                case _:
                    raise Halted(ClaimOutcome.FAILED, f"{goal.words}: the element is replaced again and again")
        if answer.code == Code.APP_UNRESPONSIVE and answer.retry == "safe" and tries == 1:
            return False  # nothing was sent; a machine that is busy answers the next time
        if answer.code == Code.POLICY_DENIED:
            self._denied(goal, target, answer)
            return True
        return self._after_effect(goal, self._insist(answer, attempt), target, tries)

    def _insist(self, answer: Answer, attempt: Attempt) -> Answer:
        """What is sent after a refusal that says why it cannot be: careful sends nothing."""
        if answer.kind == DetailKind.ACTIONABILITY_TIMEOUT:
            more = self._decisions.when_not_usable(answer, attempt)
        elif answer.code in (Code.ACTION_NOT_SUPPORTED, Code.INVALID_ARGS):
            more = self._decisions.when_final(answer, attempt)
        else:
            return answer
        for another in more:
            answer = self._send(another)
        return answer

    def _denied(self, goal: Goal, target: Node, denied: Answer) -> None:
        page = self._reading.page
        assert page is not None
        for attempt in self._decisions.after_denial(denied, goal, target, page):
            if self._send(attempt).ok:
                return
        raise ending_of(denied)

    def _after_effect(self, goal: Goal, answer: Answer, target: Node, tries: int) -> bool:
        """The disposition decides, not the wording: only what proves non-delivery may be done again."""
        if not answer.ok and answer.retry == "safe":
            raise ending_of(answer)
        if answer.dialog_open:
            raise Halted(ClaimOutcome.UNSURE, f"{goal.words}: a dialog is open, and it is not the task's to answer it")
        if goal.done_when is None:
            if not answer.ok:
                raise ending_of(answer)
            return True
        if self._reading.read_back(goal) is Holds.YES:
            self._seen = goal
            return True
        match self._decisions.when_effect_not_seen(goal, answer, tries):
            case Next.READ_AGAIN:
                self._reading.read_anew(goal)
                return True
            case Next.SUBMIT_AGAIN | Next.LOOK_AGAIN:
                return False
            case Next.OTHER_WAY:
                self._send(Attempt("press", {"ref": target.ref, "key": "Enter"}))
                self._reading.read_anew(goal)
                return True
            case Next.SAME_AGAIN | Next.GIVE_UP:
                raise Halted(ClaimOutcome.UNSURE, f"{goal.words} was sent; its effect was not seen")

    def _send(self, attempt: Attempt) -> Answer:
        return self._reading.send(attempt)


def _attempt(goal: Goal, ref: str | None) -> Attempt:
    args = {"ref": ref}
    match goal.act:
        case Act.SET_VALUE:
            args["value"] = goal.value
        case Act.PRESS:
            args["key"] = goal.key
        case Act.CLICK | Act.NAVIGATE | Act.READ:
            pass
    return Attempt(goal.act.value, args)
