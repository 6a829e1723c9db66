"""A recorded run driven again on a fresh application: same scenario, seed, faults and perturbations, same moves.

A delivered action is unsafe to repeat, and a replay is a repeat: so only deskcert's own application is ever a target,
started fresh for the purpose.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from deskcert.audit.story import Group, Step, read_whole, story
from deskcert.replay.script import Script, script_of
from deskcert_ledger import Record, load_blob, openings
from deskcert_schema.errors import HarnessError, LedgerError, UsageError

__all__ = ["Outcome", "Unlike", "Until", "compare", "drive", "nodes_of"]


@dataclass(frozen=True, slots=True)
class Unlike:
    """One thing that came out otherwise."""

    seq: int
    """Of the recorded run; -1 where it has no such step."""
    what: str
    recorded: str
    now: str
    why: str

    def as_json(self) -> dict[str, Any]:
        return {"seq": self.seq, "what": self.what, "recorded": self.recorded, "now": self.now, "why": self.why}


@dataclass(frozen=True, slots=True)
class Outcome:
    recorded: Path
    again: Path
    differences: tuple[Unlike, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Until:
    """Where to stop, to look."""

    seq: int
    """The last record that is driven again."""
    headed: bool
    """In a browser that can be seen."""
    picture: Path
    """What the window shows there."""
    tree: Path
    """What an agent sees there, as text."""
    release: Path | None
    """The window stays as it is until this file is there; None: not at all."""


_HELD_S: Final = 24 * 3600


def drive(
    folder: Path,
    out: Path,
    *,
    suite: str | None = None,
    allowed: Sequence[str] = (),
    until: Until | None = None,
    policy: Path | None = None,
) -> Outcome:
    """`allowed`: addresses of applications of the user's own that may be driven again. With `until` nothing is
    compared. `policy`: under another one than the suite's. Raises `UsageError` for a target that is no fixture,
    `HarnessError` when no run came about."""
    records = list(read_whole(folder))
    start = records[0].data
    name = suite or str(start.get("suite", {}).get("name") or "no suite")
    if suite is None and not all(part.startswith("builtin:") for part in name.split("+")):
        raise UsageError(
            f"{folder.name} was no run of a built-in suite on deskcert's own application ({name}). A replay repeats"
            " what was delivered, so it is refused elsewhere. Of a suite of yours on the fixture, name its folder"
            " with --suite."
        )
    if until is not None and until.seq >= len(records):
        raise UsageError(f"{folder.name} has no record {until.seq}: it has {len(records)}, the first is 0.")
    driven = records if until is None else records[: until.seq + 1]
    script = script_of(driven, openings(folder), lambda seen: nodes_of(folder, seen))
    if until is not None:  # after a claim there is nothing more to be seen
        script.moves = [move for move in script.moves if move["command"] != "finish"]
    again = _run_again(start, script, out, name.split("+"), allowed=allowed, until=until, policy=policy)
    differences = compare(records, list(read_whole(again))) if until is None else []
    return Outcome(folder, again, tuple(differences), tuple(script.notes))


def nodes_of(folder: Path, seen: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    try:
        tree: Any = load_blob(folder, seen.get("tree"))
    except LedgerError:
        return ()
    return tree.get("nodes", ()) if isinstance(tree, dict) else ()


def _run_again(
    start: dict[str, Any],
    script: Script,
    out: Path,
    suites: Sequence[str],
    *,
    allowed: Sequence[str],
    until: Until | None,
    policy: Path | None,
) -> Path:
    from deskcert.certify.campaign import only_one, run_campaign
    from deskcert.certify.config import Overrides, load_settings
    from deskcert.certify.log import log_to
    from deskcert.certify.progress import LivePlan, make_progress
    from deskcert.certify.suite import load_suites, select, with_mode
    from deskcert_ledger import ProjectKey, default_key_path

    with only_one(out):
        path = (out / "script.json").resolve()
        path.write_text(json.dumps(script.as_json() | _looking(until)), encoding="utf-8")
        given = Overrides(
            command=(sys.executable, "-m", "deskcert.replay.player", str(path)),
            suites=tuple(suites),
            trials=1,
            seed=int(start["seed"]),
            workers=1,
            ignore_file=True,
            headed=until is not None and until.headed,
        )
        settings = load_settings(given, cwd=Path.cwd())
        loaded = with_mode(load_suites(settings.suites, base=settings.base, policy=policy), start.get("mode"))
        if loaded.app is not None and loaded.app.url not in allowed:
            raise UsageError(
                f"{loaded.name} is about an application of your own ({loaded.app.url}). A replay repeats what was"
                " delivered, which only deskcert's own application, started fresh, is safe from; so it is refused."
                " Replay the decisions instead: deskcert replay RUN. Where it may be repeated there, say so with"
                f" --allow-target {loaded.app.url}"
            )
        chosen = select(loaded, _literally(str(start["scenario"]["id"])))
        if until is not None:
            chosen = replace(chosen, scenarios=tuple(replace(s, seconds=_HELD_S) for s in chosen.scenarios))
        (scenario,) = chosen.scenarios
        if scenario.digest != start["scenario"]["digest"]:
            script.notes.append(f"the scenario {scenario.id} has changed since the run was recorded")
        key = ProjectKey.load_or_create(default_key_path(settings.base))
        with log_to(out / "run.log"), make_progress(LivePlan(1, 1)) as progress:
            done = asyncio.run(run_campaign(settings, chosen, out=out, key=key, pause=None, progress=progress))
    if not done.reports:
        raise HarnessError("the run could not be driven again: see run.log")
    return done.reports[0].folder


def _looking(until: Until | None) -> dict[str, Any]:
    """What the player does when its moves are made."""
    if until is None:
        return {}
    release = None if until.release is None else str(until.release)
    return {"look": {"picture": str(until.picture), "tree": str(until.tree), "release": release}}


def _literally(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


_ACTING = frozenset({Group.ACTION, Group.DENIAL, Group.REFUSAL})


def compare(recorded: Sequence[Record], again: Sequence[Record]) -> list[Unlike]:
    """Dispositions and denials action by action, then the oracle. Passes of one action count by the last."""
    old, new = story(recorded), story(again)
    found: list[Unlike] = []
    mine, theirs = _finals(old), _finals(new)
    for n in range(max(len(mine), len(theirs))):
        a = mine[n] if n < len(mine) else None
        b = theirs[n] if n < len(theirs) else None
        if a is None or b is None or _came_out(a) != _came_out(b):
            found.append(_unlike(a, b, old, new))
    oracles = [[(s.target, s.outcome, s.seq) for s in steps if s.group is Group.ORACLE] for steps in (old, new)]
    for a_told, b_told in zip(*oracles, strict=False):
        if a_told[:2] != b_told[:2]:
            found.append(Unlike(a_told[2], f"oracle: {a_told[0]}", a_told[1], b_told[1], "the effects differ"))
    if len(oracles[0]) != len(oracles[1]):
        found.append(Unlike(-1, "oracle", f"{len(oracles[0])} answers", f"{len(oracles[1])} answers", ""))
    return found


def _finals(steps: Sequence[Step]) -> list[Step]:
    last: dict[int, Step] = {}
    for step in steps:
        if step.group in _ACTING:
            last[step.action or -step.seq] = step
    return sorted(last.values(), key=lambda s: s.seq)


def _came_out(step: Step) -> tuple[str, ...]:
    return (step.what, step.group.value, step.outcome, step.code, step.rule)


def _unlike(a: Step | None, b: Step | None, old: Sequence[Step], new: Sequence[Step]) -> Unlike:
    one = a or b
    assert one is not None
    return Unlike(a.seq if a else -1, f"{one.what} {one.target}", _words(a), _words(b), _why(a, b, old, new))


def _words(step: Step | None) -> str:
    return "not done" if step is None else " · ".join(x for x in (step.outcome, step.code, step.rule) if x)


def _why(a: Step | None, b: Step | None, old: Sequence[Step], new: Sequence[Step]) -> str:
    if a is None or b is None:
        return "the run before it went another way, or its budget ended"
    before, after = _look_before(a, old), _look_before(b, new)
    if before is not None and after is not None and (before.outcome, before.target) != (after.outcome, after.target):
        return f"the page was another: {before.target}, {before.outcome}; now {after.target}, {after.outcome}"
    if a.target != b.target:
        return f"another element stood there: {b.target}"
    return f"the page looked the same; the guard waited {a.waited_ms} ms then, {b.waited_ms} ms now: a matter of time"


def _look_before(step: Step, steps: Sequence[Step]) -> Step | None:
    return next((s for s in reversed(steps) if s.group is Group.LOOK and s.seq < step.seq), None)
