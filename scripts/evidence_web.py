"""Random actions on pages that change under them, counted by the application's own log of effects.

- `actions`: 20,000 guarded actions on rows of orders and payouts, most with a perturbation at a random pipeline point,
  or in the middle of the event sequence. A failure is an effect of another kind or on another row than was meant, a
  second effect, any effect of an action that has none, any effect where the row was recycled, a twin put in or the page
  left before the dispatch, an effect that the answer calls not delivered, and a defect of ours.

A task is one browser with one application, and 250 actions.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.adapters.web.browser import WebBrowser
from deskcert.certify.fixture import Application
from deskcert.guard.policy import compile_policy
from deskcert.session.budget import Budget
from deskcert.session.desk import Options
from deskcert.session.session import Session
from deskcert_ledger import ProjectKey, RunLedger, SystemClock
from deskcert_schema.errors import HarnessError
from deskcert_schema.vocabulary import Code, PipelinePoint
from scripts.evidence_parts import Outcome, Part

__all__ = ["GOAL", "NEVER_ACTED_ON", "PARTS", "Try", "actions", "judge"]

GOAL: Final = 20_000
_TASK: Final = 250
_DISK: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Commits are no matter here: nothing is killed."""
_TIMEOUT_MS: Final = 250
_POLICY: Final = {"version": 1, "default": "allow", "deny": [{"id": "no-delete-account", "name": "Delete account"}]}
_KINDS: Final = {
    "Approve": ("approve", "order.approved"),
    "Ship": ("ship", "order.shipped"),
    "Approve payout": ("approve", "payout.approved"),
    "Send payout": ("send", "payout.sent"),
}
"""Name of a button to its `data-act` and to its effect."""
_PAGES: Final = (("/orders", {"orders": 20, "twins": True}), ("/payouts", {"payouts": 20, "orders": 1}))
_FEW: Final = 3
"""Buttons on a page from which on the data are set up anew."""

BEFORE: Final = (
    PipelinePoint.OBSERVED,
    PipelinePoint.RESOLVED,
    PipelinePoint.ACTIONABLE,
    PipelinePoint.LEASED,
    PipelinePoint.INTENT_RECORDED,
)
AFTER: Final = (
    PipelinePoint.DISPATCHED,
    PipelinePoint.REACHED,
    PipelinePoint.VERIFIED,
    PipelinePoint.RESULT_RECORDED,
)
_EVENTS: Final = ("pointerdown", "mousedown", "pointerup", "mouseup")
"""What every click sends before the click itself."""
NEVER_ACTED_ON: Final = frozenset({"recycle_row", "replace_by_twin", "remove", "rerender", "navigate"})
"""After these the ref means something else, or nothing."""
_CHANGES: Final = (
    *("recycle_row", "recycle_row", "replace_by_twin", "replace_by_twin", "lookalike", "rename", "remove", "disable"),
    *("rerender", "reorder_rows", "insert_before", "cover", "nothing", "nothing"),
)
_RARE: Final = {19: "navigate", 39: "cover"}
_COMMANDS: Final = ("click",) * 8 + ("press Enter", "press Enter", "press Space", "hover", "focus", "scroll-to")
_WITHOUT_EFFECT: Final = frozenset({"hover", "focus", "scroll-to"})
_SPOILS: Final = frozenset({"replace_by_twin", "lookalike", "rename", "disable"})
"""After these the row no longer says what its buttons do, so that nothing could be judged by it."""


@dataclass(frozen=True, slots=True)
class Try:
    """One random action: what with which button of which row, and what happens meanwhile."""

    row: int
    name: str
    command: str
    do: str
    args: Mapping[str, Any]
    at: PipelinePoint
    event: str | None = None
    """The change is made by the page itself, in the middle of the sequence, before this event is handled."""

    @property
    def kind(self) -> str:
        return _KINDS[self.name][1]

    @property
    def too_late(self) -> bool:
        """The change may come after the effect."""
        return self.at in AFTER

    @property
    def words(self) -> str:
        when = f"before {self.event}" if self.event else f"at {self.at}"
        return f"{self.command} {self.name!r} of {self.row}, {self.do} {dict(self.args)} {when}"


def random_try(rng: random.Random, number: int, buttons: Mapping[tuple[int, str], str]) -> Try:
    row, name = rng.choice(sorted(buttons))
    others = sorted({r for r, n in buttons if r != row and n == name} or {r for r, _ in buttons if r != row})
    command = rng.choice(_COMMANDS)
    do = _RARE.get(number % 40) or rng.choice(_CHANGES)
    args: dict[str, Any] = {}
    control = _KINDS[name][0]
    match do:
        case "recycle_row":
            args = {"row": row, "with": rng.choice(others)}
        case "replace_by_twin":
            args = {"row": row, "with": rng.choice(others), "control": control}
        case "lookalike":
            args = {"row": row, "with": rng.choice(others), "control": control}
        case "rename":
            args = {"row": row, "control": control, "name": rng.choice(("Refund", f"{name} all", "Аpprove", "Delete"))}
        case "disable" | "cover":
            args = {"row": row, "control": control}
        case "remove":
            args = {"row": row} | ({"control": control} if rng.random() < 0.5 else {})
        case "insert_before":
            args = {"row": row, "name": "New"}
        case "navigate":
            args = {"url": rng.choice(("/notes", "/orders", "/payouts"))}
    in_the_act = command == "click" and do != "nothing" and rng.random() < 0.25
    event = rng.choice(_EVENTS) if in_the_act and do != "navigate" else None
    # While a task runs the page answers nothing, and before it the change is only laid out.
    at = rng.choice(BEFORE) if event else rng.choice((*BEFORE, *AFTER))
    return Try(row, name, command, do, args | ({"on": event} if event else {}), at, event)


def judge(wanted: Try, applied: bool | None, answer: Mapping[str, Any], effects: list[Mapping[str, Any]]) -> str | None:
    """What is wrong with it, if anything."""
    told = [(e["kind"], e["id"]) for e in effects]
    code = answer.get("error", {}).get("code")
    if any(pair != (wanted.kind, wanted.row) for pair in told):
        return f"wrong target: {told}"
    if len(told) > 1:
        return f"more than one effect: {told}"
    if told and wanted.command in _WITHOUT_EFFECT:
        return f"{wanted.command} had an effect"
    if told and applied and wanted.do in NEVER_ACTED_ON and not wanted.too_late:
        return f"acted on after {wanted.do}"
    if code == Code.INTERNAL:
        return f"a defect: {answer['error']['message']}"
    if told and disposition(answer) == "not_delivered":
        return "an effect of what is called not delivered"
    return None


def disposition(answer: Mapping[str, Any]) -> str:
    return str((answer.get("data") or answer["error"])["disposition"]["delivery"])


@dataclass(slots=True)
class _Bench:
    """One page, one session, one application."""

    application: Application
    adapter: WebAdapter
    now: Try | None = None
    applied: bool | None = None
    url: str = ""
    read: int = 0
    repeats: dict[tuple[int, str], int] = field(default_factory=dict)
    """Row and name to the attempt that an agent has to name when it acts there once more."""
    session: Session = field(init=False)

    async def at(self, point: PipelinePoint, _: int) -> None:
        now = self.now
        if now is None or self.applied is not None or point is not now.at or now.do == "nothing":
            return
        self.applied = await self._perturb(now.do, now.args)

    async def _perturb(self, do: str, args: Mapping[str, Any]) -> bool:
        try:
            return (await self.application.perturb(do, args)).applied
        except HarnessError:
            return False

    async def set_up(self, rng: random.Random) -> None:
        """Data anew, and the page on which they stand."""
        page, seed = rng.choice(_PAGES)
        self.url = await self.application.prepare({"page": page, "seed": seed}, seed=rng.randrange(1000))
        self.read = 0
        await self.open()

    async def open(self) -> None:
        for _ in range(5):  # where the page is about to go elsewhere by itself, that may come first
            found = await self.adapter.navigate(self.url, number=0, budget_ms=20_000, at=_nowhere)
            if found.committed is not None and found.committed.url == self.url:
                return
        raise HarnessError(f"the page did not open: {found.error}")

    async def buttons(self) -> dict[tuple[int, str], str]:
        """Row and name to the ref, of those that stand there once."""
        told = await self.session.handle("snapshot", {})
        if not told["ok"]:
            return {}
        found: dict[tuple[int, str], list[str]] = {}
        for row, name, ref in _targets(told["data"]["tree"]):
            found.setdefault((row, name), []).append(ref)
        return {key: refs[0] for key, refs in found.items() if len(refs) == 1}

    async def act(self, wanted: Try, ref: str) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
        """The answer, and what the application's log says after it."""
        command, _, key = wanted.command.partition(" ")
        args = {"ref": ref, "timeout_ms": _TIMEOUT_MS} | ({"key": key} if key else {})
        button = (wanted.row, wanted.name)
        if button in self.repeats:
            args["repeat_of"] = self.repeats.pop(button)
        answer = await self.session.handle(command, args)
        if "original" in (details := answer.get("error", {}).get("details", {})):
            self.repeats[button] = details["original"]["seq"]
        self.now = None
        await self.settle()
        return answer, self.effects()

    async def settle(self) -> None:
        """By the answer to this no request of the page is still on its way: there is no such row, and nothing is
        changed."""
        await self._perturb("remove", {"row": 0})
        await self.application.quiet(5)

    def effects(self) -> list[Mapping[str, Any]]:
        lines = self.application.effects.read_text().splitlines()
        new, self.read = lines[self.read :], len(lines)
        return [json.loads(line) for line in new]


async def _nowhere(point: str) -> None:
    del point


def _targets(tree: Any) -> Iterator[tuple[int, str, str]]:
    for node in tree if isinstance(tree, list) else [tree]:
        if node.get("name") in _KINDS and "ref_id" in node:
            rows = [label for kind, label in node.get("context", ()) if kind == "row"]
            number = rows[-1].rpartition(" ")[2] if rows else ""
            if number.isdecimal():
                yield int(number), node["name"], str(node["ref_id"])
        yield from _targets(node.get("children", ()))


@asynccontextmanager
async def bench(**options: Any) -> Any:
    """Everything that one task needs, and its end."""
    with tempfile.TemporaryDirectory(prefix="deskcert-evidence-", dir=_DISK) as name:
        folder = Path(name)
        (folder / "app").mkdir()
        application = await Application.start(folder / "app", token=secrets.token_hex(8))
        browser = await WebBrowser.launch()
        ledger = RunLedger.create(
            folder / "run",
            origin="deskcert/evidence/web",
            start={},
            project_key=ProjectKey.load_or_create(folder / "key"),
            clock=SystemClock(),
            rng=os.urandom,
        )
        try:
            adapter = await browser.open()
            found = _Bench(application, adapter)
            found.session = Session(
                adapter,
                ledger,
                compile_policy(_POLICY, digest="0" * 64),
                clock=SystemClock(),
                rng=os.urandom,
                options=Options(budget=Budget(None, None), **options),
                at_point=found.at,
            )
            yield found
            await adapter.close()
        finally:
            await browser.close()
            await application.close()
            ledger.seal()


async def _actions(seed: str, units: int) -> Outcome:
    outcome, rng = Outcome(0), random.Random(seed)
    async with bench() as found:
        await found.set_up(rng)
        spoiled: set[int] = set()
        while outcome.done < units:
            number = outcome.done
            found.now, found.applied = None, None
            seen = {key: ref for key, ref in (await found.buttons()).items() if key[0] not in spoiled}
            if len(seen) < _FEW or len({row for row, _ in seen}) < _FEW:
                spoiled.clear()
                await found.set_up(rng)
                continue
            wanted = random_try(rng, number, seen)
            if wanted.at is PipelinePoint.OBSERVED:  # of the snapshot from which the ref comes
                found.now = wanted
                again = await found.buttons()
                ref = again.get((wanted.row, wanted.name))
            else:
                found.now, ref = wanted, seen[wanted.row, wanted.name]
            if ref is None:
                await found.open()
                continue
            answer, effects = await found.act(wanted, ref)
            _count(outcome, wanted, found.applied, answer, effects, f"{seed}#{number}")
            if found.applied and wanted.do in _SPOILS:
                spoiled.add(wanted.row)
                await found._perturb("remove", {"row": wanted.row})
            laid_out = wanted.event and disposition(answer) == "not_delivered"  # it would meet the next action
            if found.applied and (laid_out or wanted.do in ("cover", "navigate")):
                await found.open()
    return outcome


def _count(
    outcome: Outcome,
    wanted: Try,
    applied: bool | None,
    answer: Mapping[str, Any],
    effects: list[Mapping[str, Any]],
    where: str,
) -> None:
    outcome.done += 1
    what = wanted.do if applied else "unperturbed"
    word = "done" if answer["ok"] else str(answer["error"]["code"])
    names = [f"{what}: {word}", f"{disposition(answer)}", "effects" if effects else "without_effect"]
    if applied:
        names += ["perturbed", f"perturbed {'before an event' if wanted.event else f'at {wanted.at}'}"]
    if answer["ok"] and not effects and not applied and wanted.command not in _WITHOUT_EFFECT:
        names.append("unperturbed and done without effect: the application itself refused, or it was a decoy")
    for name in names:
        outcome.counts[name] = outcome.counts.get(name, 0) + 1
    wrong = judge(wanted, applied, answer, effects)
    if wrong is not None:
        outcome.counts["wrong"] = outcome.counts.get("wrong", 0) + 1
        outcome.failures.append(f"{where}: {wanted.words}: {word}: {wrong}")


def actions(seed: str, units: int) -> Outcome:
    return asyncio.run(_actions(seed, units))


PARTS = (
    Part("actions", GOAL, _TASK, actions, workers=1),  # a browser, its renderer and the application keep two cores busy
)
