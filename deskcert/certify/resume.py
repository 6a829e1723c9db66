"""Going on with a campaign that was interrupted: its certification stays the same, its finished runs count as they are.

A run that was cut short is done again, once, and its ledger is kept in `<out>/set_aside/`; the later runs' `run.start`
names it with size and root. Not so a run that was already proven unsafe: no interruption takes that back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskcert.certify.suite import Planned
from deskcert.scoring.evidence import read_run
from deskcert.scoring.plan import Charter, RunResult
from deskcert_schema.errors import UsageError
from deskcert_schema.vocabulary import RecordKind, RunOutcome

if TYPE_CHECKING:
    from deskcert_ledger import ProjectKey

__all__ = ["NOTHING_EARLIER", "Earlier", "earlier_runs", "left_over", "refuse_leftovers"]


@dataclass(frozen=True, slots=True)
class Earlier:
    """What there is already."""

    certification: str | None = None
    """None where there is nothing."""
    folders: tuple[Path, ...] = ()
    """Of the runs that count."""
    done: frozenset[tuple[str, int]] = frozenset()
    """Scenario and trial of those."""
    set_aside: tuple[Mapping[str, Any], ...] = ()
    """Run, size, root and word of each run that will be done again, and of each that was before."""


NOTHING_EARLIER = Earlier()


def _folders(out: Path) -> list[Path]:
    return sorted(path.parent for path in (out / "runs").glob("*/ledger.jsonl"))


def refuse_leftovers(out: Path, *, resume: bool) -> None:
    """Two campaigns in one folder could not be told from one. Raises `UsageError`."""
    found = len(_folders(out))
    if found and not resume:
        raise UsageError(
            f"{out} holds {found} run{'' if found == 1 else 's'} of a certification that was interrupted; go on with it"
            " by --resume and the same arguments, or choose another folder with --out"
        )
    if resume and not found:
        raise UsageError(f"there is nothing to go on with in {out}; leave --resume out, or name the folder with --out")


def earlier_runs(
    out: Path,
    plan: Sequence[Planned],
    charter: Callable[[str], Charter],
    key: ProjectKey,
    note: Callable[[str], None],
) -> Earlier:
    """`plan`: what there is to do; `charter`: of the campaign that is about to begin, under a given certification. Its
    ledgers are closed already. Raises `UsageError` where what lies there is another one, or cannot be believed."""
    kept: list[tuple[Path, RunResult]] = []
    aside: list[tuple[Path, RunResult]] = []
    certification: str | None = None
    wanted = {(p.scenario.id, p.trial) for p in plan}
    for folder in _folders(out):
        result, said = read_run(folder, (key.verifier,))
        if said is None or result.ledger.word in {"tampered", "unverifiable"}:
            raise UsageError(f"{folder} cannot be gone on from: its ledger is {result.ledger.word}; see ledger verify")
        difference = charter(said.certification).difference(said)
        if difference is None and (result.planned.scenario, result.planned.trial) not in wanted:
            difference = "the shard"
        if certification not in (None, said.certification):
            difference = "which attempt they belong to"
        if difference is not None:
            raise UsageError(
                f"the runs in {out} and the ones asked for differ in {difference}; --resume needs the arguments and"
                " files of the first time, or choose another folder with --out"
            )
        certification = said.certification
        (aside if _again(folder, result) else kept).append((folder, result))
    # However often a run is cut short, the one that counts in the end names all that came before it.
    before = [read_run(path.parent, (key.verifier,))[0] for path in sorted((out / "set_aside").glob("*/ledger.jsonl"))]
    for folder, result in aside:
        (out / "set_aside").mkdir(exist_ok=True)
        folder.rename(out / "set_aside" / folder.name)
        note(f"{result.run}: was interrupted and is done again; its ledger is kept in {out / 'set_aside'}")
    return Earlier(
        certification,
        tuple(folder for folder, _ in kept),
        frozenset((r.planned.scenario, r.planned.trial) for _, r in kept),
        tuple(_named(r) for r in (*before, *(result for _, result in aside))),
    )


def _named(result: RunResult) -> dict[str, Any]:
    ledger = result.ledger
    return {"run": result.run, "size": ledger.size, "root": ledger.root, "word": ledger.word}


def _again(folder: Path, result: RunResult) -> bool:
    """Cut short from outside, and nothing decided by what there is of it."""
    from deskcert_ledger import read_records

    ends = [r.data for r in read_records(folder) if r.kind == RecordKind.RUN_END]
    cut = not ends or ends[-1].get("outcome") == "interrupted"
    return cut and result.judgement.outcome in (RunOutcome.INCONCLUSIVE, RunOutcome.NOT_RUN)


def left_over(done: frozenset[tuple[str, int]], plan: Sequence[Planned]) -> list[tuple[int, Planned]]:
    """Number and run of the plan's that are still to be done."""
    return [(n, p) for n, p in enumerate(plan, start=1) if (p.scenario.id, p.trial) not in done]
