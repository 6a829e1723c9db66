"""A desktop application's tree against a plain sequential walk, and a guarded click against the bare D-Bus calls.

Both walks must come to equal trees, read by read; the calls of the bare chain are those that the guarded click itself
makes, sent again without guard, session and ledger, to the other of two buttons, and the window counts the clicks.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.pairs import alternate, show
from deskcert.adapters.base import ObserveOptions
from deskcert.adapters.linux import AppSelector, LinuxAdapter, words
from deskcert.adapters.linux.bus import AccessBus, Deadline, ObjectRef
from deskcert.adapters.linux.reading import box_of, refs_of, state_bits
from deskcert.adapters.linux.walk import Branch, Walk
from deskcert.contract.evidence import Field, Known
from deskcert.guard.policy import compile_policy
from deskcert.session.budget import Budget
from deskcert.session.desk import Options
from deskcert.session.session import Session
from deskcert_ledger import ProjectKey, RunLedger, SystemClock

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "adapters"))
from desktop_rig import Desktop, missing

NODES = 2_000
CLICKS = 30

POLICY = {"version": 1, "deny": [{"id": "no-delete", "name": "Delete account", "reason": "irreversible"}]}


class Plain:
    """One call after the other, the way a first version would: the same facts of every object."""

    def __init__(self, bus: AccessBus, deadline: Deadline) -> None:
        self._bus, self._deadline = bus, deadline
        self.calls = 0

    async def walk(self, ref: ObjectRef, depth: int) -> list[tuple[Any, ...]]:
        name = await self._get(ref, "Name")
        role = await self._ask(ref, words.ACCESSIBLE, "GetRole")
        states = state_bits((await self._ask(ref, words.ACCESSIBLE, "GetState")).value)
        word = words.role_word(role.value)
        box: Field[Any] = Known(None)
        if word in words.INTERACTIVE or word == "statictext" or word in words.WINDOWS:
            found = await self._ask(ref, words.COMPONENT, "GetExtents", signature="u", body=[0])
            box = box_of(found)
        actions: list[tuple[str, str]] = []
        if word in words.INTERACTIVE:
            actions = [(a, b) for a, _, b in (await self._ask(ref, words.ACTION, "GetActions")).value]
            await self._get(ref, "Description")
        out = [(depth, word, name.value, states, box.value if isinstance(box, Known) else None, tuple(actions))]
        for child in refs_of((await self._ask(ref, words.ACCESSIBLE, "GetChildren")).value):
            out += await self.walk(child, depth + 1)
        return out

    async def _get(self, ref: ObjectRef, name: str) -> Any:
        self.calls += 1
        return await self._bus.get(ref, words.ACCESSIBLE, name, self._deadline)

    async def _ask(self, ref: ObjectRef, interface: str, member: str, **more: Any) -> Any:
        self.calls += 1
        return await self._bus.ask(ref, interface, member, self._deadline, **more)


def told(branch: Branch, depth: int = 0) -> Iterator[tuple[Any, ...]]:
    """The same of our walk."""
    f = branch.facts
    box = f.box.value if isinstance(f.box, Known) else None
    actions = f.actions.value if isinstance(f.actions, Known) else ()
    assert isinstance(f.name, Known)
    assert isinstance(f.states, Known)
    yield (depth, f.word, f.name.value, f.states.value, box, actions)
    for child in branch.children:
        yield from told(child, depth + 1)


async def trees(desktop: Desktop, pairs: int) -> float:
    program = desktop.window()
    assert program.wait_for(lambda lines: "ready" in lines, 60)
    program.tell(f"many {NODES}")
    adapter = await LinuxAdapter.open(AppSelector(pid=program.pid), bus_address=desktop.bus, wait_ms=30_000)
    app, bus = adapter._app, adapter._bus
    found: dict[str, list[tuple[Any, ...]]] = {}

    async def ours(_: int) -> None:
        walk = Walk(bus, app, ObserveOptions(), Deadline(60_000))
        root = await walk.run()
        assert walk.reasons == (), walk.reasons
        found["ours"] = list(told(root))

    async def theirs(_: int) -> None:
        found["theirs"] = await Plain(bus, Deadline(120_000)).walk(app.root, 0)

    # A long list settles its layout once; after that both see the same.
    pair = await alternate(ours, theirs, pairs=pairs, warm=1)
    ours_without, theirs_without = ([n for n in found[k] if n[1] != "textbox"] for k in ("ours", "theirs"))
    assert len(found["ours"]) >= NODES
    assert ours_without == theirs_without, _first_difference(ours_without, theirs_without)
    await adapter.close()
    program.kill()
    show(
        f"a tree of {len(found['ours'])} objects (Qt, which has no cache and answers one property a call); equal trees",
        ("deskcert: many calls in flight", "plain: one call after the other"),
        pair,
        aim="<= 0.333 (3 x faster)",
    )
    return pair.ratio


def _first_difference(ours: list[Any], theirs: list[Any]) -> Any:
    return next(((a, b) for a, b in zip(ours, theirs, strict=False) if a != b), (len(ours), len(theirs)))


async def clicks(desktop: Desktop, folder: Path, pairs: int) -> float:
    """Own cost of a guarded click in milliseconds, over the bare calls. Two looks, the act's own look, two commits."""
    program = desktop.window()
    assert program.wait_for(lambda lines: "ready" in lines, 60)
    adapter = await LinuxAdapter.open(AppSelector(pid=program.pid), bus_address=desktop.bus, wait_ms=30_000)
    key = ProjectKey.load_or_create(folder / "key")
    ledger = RunLedger.create(
        folder / "run",
        origin="deskcert/bench/1",
        start={"run": "bench"},
        project_key=key,
        clock=SystemClock(),
        rng=secrets.token_bytes,
    )
    session = Session(
        adapter,
        ledger,
        compile_policy(POLICY, digest="0" * 64),
        clock=SystemClock(),
        rng=secrets.token_bytes,
        options=Options(budget=Budget(100_000, 10_000)),
    )
    chain: list[list[tuple[Any, dict[str, Any]]]] = []
    send = adapter._bus.send
    refs = await _buy(session)

    async def noted(*args: Any, **more: Any) -> Any:
        chain[-1].append((args, more))
        return await send(*args, **more)

    spent: dict[str, list[float]] = {"guarded": [], "bare": []}

    async def guarded(_: int) -> None:
        chain.append([])
        began = time.process_time()
        # The calls of one click are noted on their way, to be sent again without the guard.
        adapter._bus.send = noted  # type: ignore[method-assign]
        answer = await session.handle("click", {"ref": refs[-1]})
        adapter._bus.send = send  # type: ignore[method-assign]
        spent["guarded"].append(time.process_time() - began)
        assert answer["ok"], answer

    async def bare(_: int) -> None:
        """Reads together, the action alone, the pause that Qt needs, and the question whether it still answers."""
        calls, began = (chain[-1] if chain else []), time.process_time()
        act = next((i for i, (args, _) in enumerate(calls) if args[2] == "DoAction"), len(calls))
        deadline = Deadline(30_000)
        await asyncio.gather(*(send(*a[:3], deadline, **m) for a, m in calls[:act]))
        for args, more in calls[act:]:
            await send(*args[:3], deadline, **more)
            if args[2] == "DoAction":
                await asyncio.sleep(adapter._app.toolkit.effect_after_ms / 1000)
        spent["bare"].append(time.process_time() - began)

    await guarded(-1)
    taken: list[tuple[int, int]] = []
    expected = 1
    for _ in range(pairs):
        refs[:] = await _buy(session)  # the retry gate asks for a new look before the same click
        pair = await alternate(guarded, bare, pairs=1, warm=0)
        taken.append((pair.ours_us[0], pair.theirs_us[0]))
        expected += 2
    assert program.wait_for(lambda _: Counter(program.effects())["buy"] == expected), (expected, len(program.effects()))
    ledger.seal()
    await adapter.close()
    program.kill()
    ours, theirs = (statistics.median(side) / 1000 for side in zip(*taken, strict=True))
    own = statistics.median([(a - b) / 1000 for a, b in taken])
    print(f"\none click, {len(taken)} pairs, {len(chain[-1])} D-Bus calls each (with Qt's pause of "
          f"{adapter._app.toolkit.effect_after_ms} ms on both sides; ledger on {folder})")  # fmt: skip
    print(f"  guarded, with two durable commits            median {ours:9.2f} ms")
    print(f"  the same D-Bus calls, bare                   median {theirs:9.2f} ms")
    print(f"  own cost                                     median {own:9.2f} ms   (aim: <= 30 ms)")
    cpu = {side: statistics.median(values) * 1000 for side, values in spent.items()}
    print(f"  processor time of this process               guarded {cpu['guarded']:.2f} ms, bare {cpu['bare']:.2f} ms")
    return own


async def _buy(session: Session) -> list[str]:
    seen = await session.handle("snapshot", {})
    todo, found = [seen["data"]["tree"]], list[str]()
    while todo:
        node = todo.pop()
        if node.get("name") == "Buy" and "ref_id" in node:
            found.append(node["ref_id"])
        todo += node.get("children", [])
    assert len(found) == 1, found
    return found


async def main(folder: Path, *, quick: bool) -> int:
    if lacking := missing():
        print(f"the desktop is left out: it needs {', '.join(lacking)}")
        return 0
    with Desktop() as desktop:
        ratio = await trees(desktop, 1 if quick else 3)
        await clicks(desktop, folder, 5 if quick else CLICKS)
    # Only the ratio gates, and with room for a loaded machine: a miss of an aim is printed, not hidden.
    return 0 if ratio <= 0.6 else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the ledger goes: a real file system (default: the checkout)")
    parser.add_argument("--quick", action="store_true", help="one pair of trees, five of clicks")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder or Path(__file__).parent, prefix=".bench-") as temporary:
        sys.exit(asyncio.run(main(Path(temporary), quick=chosen.quick)))
