"""What all acting commands share: drive the guard's pipeline, keep its state, make the envelope of its outcome."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from deskcert.contract.envelope import Failure, LedgerPlace, Recovery, acted, failure
from deskcert.guard.outcome import ActOutcome
from deskcert.guard.steps import Answer, Step
from deskcert.session.args import Arg, whole_number
from deskcert.session.desk import Call, Desk
from deskcert_schema.vocabulary import Command

__all__ = ["COMMON", "run_pipeline"]

COMMON = (
    Arg("timeout_ms", whole_number(0, 60_000)),
    Arg("repeat_of", whole_number(0, 2**53 - 1)),
)
"""Arguments of every acting command: the wait, and the earlier attempt that this one repeats on purpose."""


async def run_pipeline(desk: Desk, call: Call, pipeline: Generator[Step, Answer, ActOutcome]) -> dict[str, Any]:
    """The envelope. Raises `PipelineBroken`."""

    def keep(outcome: ActOutcome) -> None:
        desk.state.gate = outcome.gate
        target = outcome.data.get("target", {})
        if outcome.seq is not None and "role" in target:
            desk.state.last_target = {"seq": outcome.seq, "role": target["role"], "name": target.get("name")}

    outcome = await desk.driver.drive(pipeline, action=call.action, keep=keep)
    place = None
    if outcome.seq is not None:
        place = LedgerPlace(outcome.seq, outcome.result_seq, outcome.commit_us)
    if outcome.ok:
        return acted(Command(call.command), _with_kind(outcome), outcome.disposition, ledger=place)
    assert outcome.code is not None
    error = Failure(
        outcome.code,
        outcome.message,
        outcome.disposition,
        outcome.kind,
        outcome.suggestion or None,
        Recovery(**outcome.recovery) if outcome.recovery else None,
        outcome.details or None,
    )
    return failure(call.command, error, ledger=place)


def _with_kind(outcome: ActOutcome) -> Mapping[str, Any]:
    """A success that has something to say (`pending_dialog`) says it where errors do."""
    if outcome.kind is None:
        return outcome.data
    return {**outcome.data, "details": {**outcome.data.get("details", {}), "kind": outcome.kind.value}}
