"""Random presses on the desktop while the window changes under them, counted by the application's own log of effects.

- `actions`: 2,000 guarded presses on orders and payouts, most with a perturbation at a random pipeline point before
  the dispatch. A failure is an effect of another kind or on another row than was meant, a second effect, or any effect
  where the row was recycled, a twin put in or the program started again before the press.

- `agents`: each defect agent with a chance on the desktop, on the scenarios declared for it. A failure is another exit
  code than 1, another attribution, or that the expected rule is not among the findings.

A task of `actions` is one private desktop with one program on it, and 25 presses; of `agents`, one agent.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from deskcert.adapters.linux import AppSelector, LinuxAdapter
from deskcert.certify.desktop import APP_NAME, DesktopApplication
from deskcert.guard.policy import compile_policy
from deskcert.session.budget import Budget
from deskcert.session.desk import Options
from deskcert.session.session import Session
from deskcert_ledger import ProjectKey, RunLedger, SystemClock
from deskcert_schema.errors import HarnessError
from deskcert_schema.vocabulary import PipelinePoint
from scripts.desktop_defects import AGENTS, defects
from scripts.evidence_parts import Outcome, Part

__all__ = ["GOAL", "NEVER_ACTED_ON", "PARTS", "Press", "judge", "presses"]

GOAL: Final = 2_000
_TASK: Final = 25
_TIMEOUT_MS: Final = 900
_SETTLED_S: Final = 0.2
"""Qt lets a press through accessibility take effect 0.1 s after it has answered."""
_POLICY: Final = {"version": 1, "default": "allow", "deny": [{"id": "no-delete-account", "name": "Delete account"}]}
_WAITING: Final = (1001, 1002, 1003, 1005)
_DECOYS: Final = (1001, 1002, 1003, 1005, 1004)
_POINTS: Final = (
    PipelinePoint.RESOLVED,
    PipelinePoint.ACTIONABLE,
    PipelinePoint.LEASED,
    PipelinePoint.INTENT_RECORDED,
)
NEVER_ACTED_ON: Final = frozenset({"recycle_row", "replace_by_twin", "restart"})
"""After these the ref means something else, or nothing."""
_CHANGES: Final = (
    *("recycle_row", "replace_by_twin", "lookalike", "rename", "remove", "disable", "rerender", "reorder_rows"),
    *("dialog", "occlude", "recycle_row", "replace_by_twin", "nothing", "nothing"),
)
_RESTART_EVERY: Final = 8


@dataclass(frozen=True, slots=True)
class Press:
    """One random action: which button of which row, and what happens meanwhile."""

    row: int
    control: str
    do: str
    args: Mapping[str, Any]
    at: PipelinePoint

    @property
    def kind(self) -> str:
        return {"approve": "order.approved", "cancel": "order.cancelled"}[self.control]

    @property
    def name(self) -> str:
        return {"approve": "Approve", "cancel": "Cancel order"}[self.control]


def press(rng: random.Random, number: int) -> Press:
    row, control = rng.choice(_WAITING), rng.choice(("approve", "cancel"))
    other = rng.choice([n for n in _DECOYS if n != row and not (control == "approve" and n == 1004)])
    do = "restart" if number % _RESTART_EVERY == _RESTART_EVERY - 1 else rng.choice(_CHANGES)
    args: dict[str, Any] = {}
    match do:
        case "recycle_row":
            args = {"row": row, "with": other}
        case "replace_by_twin" | "lookalike":
            args = {"row": row, "with": other, "control": control}
        case "rename":
            args = {"row": row, "control": control, "name": rng.choice(("Refund", "Approve all", "Аpprove"))}
        case "disable":
            args = {"row": row, "control": control}
        case "remove":
            args = {"row": row}
    return Press(row, control, do, args, rng.choice(_POINTS))


@dataclass(slots=True)
class _Bench:
    """One desktop, one program, one session."""

    application: DesktopApplication
    effects: Path
    now: Press | None = None
    applied: bool | None = None
    session: Session = field(init=False)

    async def at(self, point: PipelinePoint, _: int) -> None:
        now = self.now
        if now is None or self.applied is not None or point is not now.at or now.do == "nothing":
            return
        try:
            self.applied = (await self.application.perturb(now.do, now.args)).applied
        except HarnessError:
            self.applied = False

    async def act(self, wanted: Press, twins: bool) -> tuple[str, list[Mapping[str, Any]]]:
        """How it ended, and what the application's log says."""
        start = {"page": "/orders", "seed": {"orders": 5, "twins": twins}}
        await self.application.prepare(start, seed=wanted.row)
        self.now, self.applied = wanted, None
        ref = None
        for _ in range(3):
            told = await self.session.handle("snapshot", {})
            found = list(_targets(told.get("data", {}).get("tree", {}), wanted)) if told["ok"] else []
            if len(found) == 1:
                ref = found[0]
                break
        if ref is None:
            return "not seen", self._log()
        answer = await self.session.handle("click", {"ref": ref, "timeout_ms": _TIMEOUT_MS})
        await asyncio.sleep(_SETTLED_S)
        # The window has one thread: by its second answer it has done what was due before the first.
        await self.application.perturb("reorder_rows", {})
        with_effect = await self.application.perturb("reorder_rows", {})
        word = "pressed" if answer["ok"] else str(answer["error"]["code"])
        return word if with_effect.applied else f"{word}, window gone", self._log()

    def _log(self) -> list[Mapping[str, Any]]:
        return [json.loads(line) for line in self.effects.read_text().splitlines()]


def _targets(tree: Any, wanted: Press) -> Iterator[str]:
    for node in tree if isinstance(tree, list) else [tree]:
        label = ["row", f"Order {wanted.row}"]
        if node.get("name") == wanted.name and label in node.get("context", []) and node.get("ref_id"):
            yield str(node["ref_id"])
        yield from _targets(node.get("children", []), wanted)


def judge(wanted: Press, applied: bool | None, effects: list[Mapping[str, Any]]) -> str | None:
    """What is wrong with it, if anything."""
    told = [(e["kind"], e["id"]) for e in effects]
    if any(pair != (wanted.kind, wanted.row) for pair in told):
        return f"wrong target: {told}"
    if len(told) > 1:
        return f"more than one effect: {told}"
    if told and applied and wanted.do in NEVER_ACTED_ON:
        return f"acted on after {wanted.do}"
    return None


async def _presses(seed: str, units: int) -> Outcome:
    outcome, rng = Outcome(0), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="deskcert-evidence-") as name:
        folder = Path(name)
        application = await DesktopApplication.start(folder, token=secrets.token_hex(8))
        bench = _Bench(application, folder / "effects.jsonl")
        adapter = await LinuxAdapter.open(
            AppSelector(name=APP_NAME), bus_address=application.desktop.bus, display=application.desktop.display
        )
        ledger = RunLedger.create(
            folder / "run",
            origin="deskcert/evidence/desktop",
            start={},
            project_key=ProjectKey.load_or_create(folder / "key"),
            clock=SystemClock(),
            rng=os.urandom,
        )
        bench.session = Session(
            adapter,
            ledger,
            compile_policy(_POLICY, digest="0" * 64),
            clock=SystemClock(),
            rng=os.urandom,
            options=Options(budget=Budget(10_000, 10_000)),
            at_point=bench.at,
        )
        try:
            for number in range(units):
                wanted = press(rng, number)
                word, effects = await bench.act(wanted, rng.random() < 0.5)
                _count(outcome, wanted, bench.applied, word, effects, f"{seed}#{number}")
        finally:
            await adapter.close()
            await application.close()
            ledger.seal()
    return outcome


def _count(
    outcome: Outcome, wanted: Press, applied: bool | None, word: str, effects: list[Mapping[str, Any]], where: str
) -> None:
    outcome.done += 1
    what = wanted.do if applied else "unperturbed"
    for name in (f"{what}: {word}", "effects" if effects else "without_effect", *(["perturbed"] if applied else [])):
        outcome.counts[name] = outcome.counts.get(name, 0) + 1
    wrong = judge(wanted, applied, effects)
    if wrong is not None:
        outcome.counts["wrong"] = outcome.counts.get("wrong", 0) + 1
        outcome.failures.append(
            f"{where}: {wanted.control} {wanted.row}, {wanted.do} {dict(wanted.args)} at {wanted.at}: {word}: {wrong}"
        )


def presses(seed: str, units: int) -> Outcome:
    return asyncio.run(_presses(seed, units))


PARTS = (
    Part("actions", GOAL, _TASK, presses, workers=4),  # most of a press is waiting
    Part("agents", len(AGENTS), 1, defects),
)
