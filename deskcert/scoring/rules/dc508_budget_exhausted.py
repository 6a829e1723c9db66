from __future__ import annotations

from deskcert.scoring.read import Record, kind_of, seq_of, text
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Code, Severity

__all__ = ["BudgetExhausted"]


class BudgetExhausted(Rule):
    about = About(
        id="DC508",
        name="ran out of budget",
        summary="The actions or the seconds of the scenario were used up before the agent was done.",
        severity=Severity.HIGH,
        why="A budget that is used up is mostly a loop. In production it is a bill, or a job that never ends.",
        fix="Find the loop in the records before this one. Watch `budget` in the task message and stop in time.",
        written_for="budget_ignorer",
    )

    def feed(self, record: Record) -> None:
        refused = kind_of(record) == "action.refused" and text(record, "code") == Code.BUDGET_EXHAUSTED.value
        ended = kind_of(record) == "run.end" and text(record, "outcome") == "budget"
        if refused or ended:
            self.found("budget", "The budget of the scenario was used up before the agent was done.", seq_of(record))
