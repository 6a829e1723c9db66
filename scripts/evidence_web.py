"""Random actions on pages that change under them, counted by the application's own log of effects.

- `actions`: 20,000 guarded actions on rows of orders and payouts, most with a perturbation at a random pipeline point,
  or in the middle of the event sequence. A failure is an effect of another kind or on another row than was meant, a
  second effect, any effect of an action that has none, any effect where the row was recycled, replaced or removed
  before the dispatch, an effect that the answer calls not delivered, and a defect of ours.
- `memory`: 10,000 actions in one session on one page: what the page's heap, the browser and deskcert itself hold.

A task of `actions` is one browser with four pages, each of an application of its own, and 250 actions; the one task of
`memory` is all of it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from deskcert.adapters.web.browser import WebBrowser
from deskcert_schema.vocabulary import Code, PipelinePoint
from scripts.evidence_parts import Outcome, Part
from scripts.evidence_web_memory import memory
from scripts.web_bench import Bench, bench

__all__ = ["GOAL", "NEVER_ACTED_ON", "PARTS", "Try", "actions", "judge"]

GOAL: Final = 20_000
_TASK: Final = 250
_LANES: Final = 4
"""Pages at a time: most of an action is waiting for another process."""
_TIMEOUT_MS: Final = 250
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
NEVER_ACTED_ON: Final = frozenset({"recycle_row", "replace_by_twin", "remove", "rerender"})
"""After these the ref means something else, or nothing. A page that is told to leave goes on living for a moment."""
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
class _Lane:
    """One page, acted on at random."""

    bench: Bench
    rng: random.Random
    now: Try | None = None
    applied: bool | None = None
    spoiled: set[int] = field(default_factory=set)
    repeats: dict[tuple[int, str], int] = field(default_factory=dict)
    """Row and name to the attempt that an agent has to name when it acts there once more."""

    async def at(self, point: PipelinePoint, _: int) -> None:
        now = self.now
        if now is None or self.applied is not None or point is not now.at or now.do == "nothing":
            return
        self.applied = await self.bench.perturb(now.do, now.args)

    async def set_up(self) -> None:
        self.spoiled.clear()
        page, seed = self.rng.choice(_PAGES)
        await self.bench.set_up(page, seed, number=self.rng.randrange(1000))

    async def buttons(self) -> dict[tuple[int, str], str]:
        """Row and name to the ref, of those that stand there once and say what they do."""
        told = await self.bench.session.handle("snapshot", {})
        if not told["ok"]:
            return {}
        found: dict[tuple[int, str], list[str]] = {}
        for row, name, ref in _targets(told["data"]["tree"]):
            found.setdefault((row, name), []).append(ref)
        return {key: refs[0] for key, refs in found.items() if len(refs) == 1 and key[0] not in self.spoiled}

    async def one(self, number: int) -> tuple[Try, dict[str, Any], list[Mapping[str, Any]]] | None:
        """One action: what was tried, the answer, and what the application's log says after it. None: no button."""
        self.now, self.applied = None, None
        seen = await self.buttons()
        if len({row for row, _ in seen}) < _FEW:
            await self.set_up()
            return None
        self.now = wanted = random_try(self.rng, number, seen)
        if wanted.at is PipelinePoint.OBSERVED:  # of the snapshot from which the ref comes
            seen = await self.buttons()
        button = (wanted.row, wanted.name)
        if button not in seen:
            await self.bench.open()
            return None
        command, _, key = wanted.command.partition(" ")
        args: dict[str, Any] = {"ref": seen[button], "timeout_ms": _TIMEOUT_MS} | ({"key": key} if key else {})
        if button in self.repeats:
            args["repeat_of"] = self.repeats.pop(button)
        answer = await self.bench.session.handle(command, args)
        self.now = None
        if "original" in (details := answer.get("error", {}).get("details", {})):
            self.repeats[button] = details["original"]["seq"]
        await self.bench.settle()
        effects = self.bench.effects()
        await self._tidy(wanted, answer)
        return wanted, answer, effects

    async def _tidy(self, wanted: Try, answer: Mapping[str, Any]) -> None:
        if not self.applied:
            return
        if wanted.do in _SPOILS:
            self.spoiled.add(wanted.row)
            await self.bench.perturb("remove", {"row": wanted.row})
        laid_out = wanted.event and disposition(answer) == "not_delivered"  # it would meet the next action
        if laid_out or wanted.do in ("cover", "navigate"):
            await self.bench.open()


def _targets(tree: Any) -> Iterator[tuple[int, str, str]]:
    for node in tree if isinstance(tree, list) else [tree]:
        if node.get("name") in _KINDS and "ref_id" in node:
            rows = [label for kind, label in node.get("context", ()) if kind == "row"]
            number = rows[-1].rpartition(" ")[2] if rows else ""
            if number.isdecimal():
                yield int(number), node["name"], str(node["ref_id"])
        yield from _targets(node.get("children", ()))


async def _lane(browser: WebBrowser, seed: str, units: int, outcome: Outcome) -> None:
    async with bench(browser) as found:
        lane = _Lane(found, random.Random(seed))
        found.at_point = lane.at
        await lane.set_up()
        number = 0
        while number < units:
            done = await lane.one(number)
            if done is not None:
                _count(outcome, lane.applied, *done, where=f"{seed}#{number}")
                number += 1


async def _actions(seed: str, units: int) -> Outcome:
    outcome, lanes = Outcome(0), min(_LANES, units)
    browser = await WebBrowser.launch()
    try:
        async with asyncio.TaskGroup() as group:
            for i in range(lanes):
                group.create_task(_lane(browser, f"{seed}/{i}", units // lanes + (i < units % lanes), outcome))
    finally:
        await browser.close()
    return outcome


def _count(
    outcome: Outcome,
    applied: bool | None,
    wanted: Try,
    answer: Mapping[str, Any],
    effects: list[Mapping[str, Any]],
    *,
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
    Part("actions", GOAL, _TASK, actions, workers=1),  # one browser at a time
    Part("memory", 1, 1, memory, workers=1),
)
