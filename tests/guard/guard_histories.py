"""Histories of single actions, and what was answered, recorded and asked for in each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from guard_grid import POLICY, TO_TRANSFERS, denying
from guard_singles import desktops, pages, secret
from spelled_before import plain

from deskcert.adapters.base import (
    Action,
    Handle,
)
from deskcert.contract.refs import Ref
from deskcert.guard.outcome import ActOutcome, ActRequest, Interrupted
from deskcert.guard.pipeline import act
from deskcert.guard.retry_gate import GateState
from deskcert.guard.steps import (
    Announce,
    Look,
    Perform,
    Record,
    Release,
    Requests,
    Sleep,
    TakeLease,
)
from deskcert.testing import Element, Fault, SimulatedRun, World
from deskcert_schema.vocabulary import PipelinePoint


def _run(*elements: Element, **how: Any) -> SimulatedRun:
    run = SimulatedRun(World(list(elements) or [Element("n1", "order-1", name="Approve")]), POLICY, **how)
    run._policy = denying()
    run.snapshot()
    return run


def _field(**what: Any) -> Element:
    return Element("n1", "note", role="textbox", name="Note", editable=True, **{"value": "a"} | what)


def _acted(*elements: Element, fault: Fault = Fault.NONE, command: str = "click", **how: Any) -> list[Any]:
    run = _run(*elements)
    run.world.fault = fault
    (ref, *_) = run.snapshot()
    return _told(run, run.act(command, ref, **how))


def _told(run: SimulatedRun, *outcomes: ActOutcome) -> list[Any]:
    records = [{"seq": r.seq, "kind": r.kind, **dict(r.data)} for r in run.records if r.kind.startswith("action.")]
    steps = [type(s).__name__ if not isinstance(s, Sleep) else s.ms for s in run.steps]
    waits = [s.budget_ms for s in run.steps if isinstance(s, TakeLease | Perform | Look)]
    return [plain(outcomes), plain(records), " ".join(map(str, steps)), waits]


def _changed(*, times: int, timeout_ms: int = 5_000) -> list[Any]:
    run = _run(Element("n1", "order-1", name="Approve", context=(("row", "Order 1"),)))
    boxes = iter(range(times))

    def shuffle(world: World) -> None:
        if next(boxes, None) is not None:
            world.change("n1", description=f"changed {world.elements[0].description}")

    run.world.before_dispatch = shuffle
    (ref, *_) = run.snapshot()
    return _told(run, run.act("click", ref, timeout_ms=timeout_ms))


def _at(
    point: PipelinePoint, change: Callable[[World], None], *elements: Element, command: str = "click", **how: Any
) -> list[Any]:
    run = _run(*elements)
    run.at[point] = change
    (ref, *_) = run.snapshot()
    return _told(run, run.act(command, ref, **how))


def _interrupted(step: type, **how: Any) -> list[Any]:
    run = _run(_field())
    (ref, *_) = run.snapshot()
    run.interrupt_before = step
    return _told(run, run.act("set-value", ref, value="b", **how))


def _without_ledger(after: int) -> list[Any]:
    run = _run()
    (ref, *_) = run.snapshot()
    run.lose_ledger_at = len(run.records) + after
    return _told(run, run.act("click", ref))


def _repeated(fault: Fault, *, look: bool, name_it: bool) -> list[Any]:
    run = _run()
    run.world.fault = fault
    (ref, *_) = run.snapshot()
    first = run.act("click", ref)
    run.world.fault = Fault.NONE
    if look:
        (ref, *_) = run.snapshot()
    return _told(run, first, run.act("click", ref, repeat_of=first.seq if name_it else None))


def _holds_without_ledger(after: int) -> list[Any]:
    run = _run(_field(value="b"))
    (ref, *_) = run.snapshot()
    run.lose_ledger_at = len(run.records) + after
    return _told(run, run.act("set-value", ref, value="b"))


def _set_again(look: bool) -> list[Any]:
    run = _run(_field())
    run.world.fault = Fault.SWALLOWED
    (ref, *_) = run.snapshot()
    first = run.act("set-value", ref, value="\ud800b")
    if look:
        (ref, *_) = run.snapshot()
    return _told(run, first, run.act("set-value", ref, value="\ud800b"))


def _late(step_us: int, timeout_ms: int, *elements: Element, command: str = "click", **how: Any) -> list[Any]:
    """An application, and a disk, that take their time."""
    run = _run(*elements, step_us=step_us)
    run.world.fault = Fault.SWALLOWED
    (ref, *_) = run.snapshot()
    return _told(run, run.act(command, ref, timeout_ms=timeout_ms, **how))


def _unread_until(looks: int, timeout_ms: int) -> list[Any]:
    run = _run()
    (ref, *_) = run.snapshot()
    left = iter(range(looks))
    run.world.before_look = lambda world: setattr(world, "readable", next(left, None) is None)
    return _told(run, run.act("click", ref, timeout_ms=timeout_ms))


def _request(run: SimulatedRun, ref: Ref, action: Action, **how: Any) -> ActRequest:
    seq, saved = run._snapshots[ref.snapshot]
    return ActRequest(
        action_no=1,
        action=action,
        ref=ref,
        saved=saved[ref.n],
        snapshot_seq=seq,
        newest_snapshot_seq=seq,
        policy=run.policy,
        gate=GateState(),
        run_key=b"k",
        now_us=0,
        secret=secret,
        **how,
    )


def _with_another(action: Action, **how: Any) -> list[Any]:
    """Actions that say more than a value or a key: a direction, or the other end of a drag."""
    place = Element("n2", "basket", role="listitem", name="Basket", context=(("group", "Bin"),))
    run = _run(Element("n1", "order-1", name="Approve"), place)
    ref, other, *_ = run.snapshot()
    saved = run._snapshots[other.snapshot][1][other.n]
    to = {"to": (other, saved)} if action.to is not None else {}
    return _told(run, run._drive(act(_request(run, ref, action, **to, **how))))


def _thrown(at: type, *, reached: bool, after: int = 0) -> list[Any]:
    """As `_interrupted`, after so many steps of this kind, with the adapter's word that the target was reached."""
    run = _run(_field())
    (ref, *_) = run.snapshot()
    request = _request(run, ref, Action("set-value", value="b"))
    steps, outcome = act(request), None
    try:
        step = next(steps)
        while True:
            if isinstance(step, at):
                after -= 1
                if after == -1:
                    step = steps.throw(Interrupted("the run was stopped", reached=reached))
                    continue
            step = steps.send(run._carry_out(step))
    except StopIteration as done:
        outcome = done.value
    return _told(run, outcome)


def _change(**what: Any) -> Callable[[World], None]:
    return lambda world: world.change("n1", **what)


def _histories() -> Iterator[tuple[str, Callable[[], list[Any]]]]:
    for fault in Fault:
        yield f"click, {fault}", lambda fault=fault: _acted(fault=fault)
        yield f"set, {fault}", lambda fault=fault: _acted(_field(), fault=fault, command="set-value", value="b")
        yield f"again, {fault}", lambda fault=fault: _repeated(fault, look=False, name_it=False)
        yield f"again after a look, {fault}", lambda fault=fault: _repeated(fault, look=True, name_it=False)
        yield f"named again, {fault}", lambda fault=fault: _repeated(fault, look=True, name_it=True)
    yield "already holds", lambda: _acted(_field(value="b"), command="set-value", value="b")
    yield "secure", lambda: _acted(_field(secure=True, value="x"), command="set-value", value="b")
    yield "enter", lambda: _acted(command="press", key="Enter")
    yield "escape", lambda: _acted(command="press", key="Escape")
    yield "typed", lambda: _acted(_field(), command="set-value", value="my secret word")
    yield "not editable", lambda: _acted(command="set-value", value="b")
    yield "forbidden", lambda: _acted(Element("n1", "account", name="Delete account"))
    yield "to be confirmed", lambda: _acted(Element("n1", "pay", name="Pay now"))
    yield "transfer", lambda: _acted(Element("n1", "pay", name="Send", destination=TO_TRANSFERS.value))
    yield "name unread", lambda: _acted(Element("n1", "order-1", name="OK", unread=frozenset({"name"})))
    for what in ("visible", "enabled", "destination", "hit_test"):
        unread = frozenset({what})
        yield f"{what} unread", lambda u=unread: _acted(Element("n1", "o", name="OK", unread=u), timeout_ms=300)
    for why, how in (
        ("disabled", {"enabled": False}),
        ("hidden", {"visible": False}),
        ("covered", {"covered_by": "Cookies"}),
    ):
        yield why, lambda how=how: _acted(Element("n1", "o", name="OK", **how), timeout_ms=250)
        yield f"{why}, one look", lambda how=how: _acted(Element("n1", "o", name="OK", **how), timeout_ms=0)
    yield "out of view", lambda: _acted(Element("n1", "o", name="OK", offscreen=True))
    for times in (1, 3, 40):
        yield f"changed {times} times", lambda times=times: _changed(times=times)
    yield "changed, one look", lambda: _changed(times=1, timeout_ms=0)
    for point in PipelinePoint:
        yield f"disabled at {point}", lambda p=point: _at(p, _change(enabled=False), timeout_ms=300)
        yield f"renamed at {point}", lambda p=point: _at(p, _change(name="Delete account"))
        yield f"led elsewhere at {point}", lambda p=point: _at(p, _change(destination=TO_TRANSFERS.value))
        yield f"gone at {point}", lambda p=point: _at(p, lambda w: w.remove("n1"))
        yield f"reloaded at {point}", lambda p=point: _at(p, lambda w: w.reload())
        yield f"unreadable at {point}", lambda p=point: _at(p, lambda w: setattr(w, "readable", False), timeout_ms=300)
        yield f"done at {point}", lambda p=point: _at(p, _change(value="b"), _field(), command="set-value", value="b")
        yield (
            f"done at {point}, one look",
            lambda p=point: _at(p, _change(value="b"), _field(), command="set-value", value="b", timeout_ms=0),
        )
    for step in (TakeLease, Perform, Release, Sleep, Requests, Record, Announce):
        yield f"interrupted before {step.__name__}", lambda s=step: _interrupted(s)
    for after in (0, 1):
        yield f"no ledger after {after}", lambda after=after: _without_ledger(after)
        yield f"holds, no ledger after {after}", lambda after=after: _holds_without_ledger(after)
    yield "no lease", _no_lease
    yield "dragged", lambda: _with_another(Action("drag", to=Handle("doc1", "n2")))
    yield "dragged, one look", lambda: _with_another(Action("drag", to=Handle("doc1", "n2")), timeout_ms=0)
    yield "scrolled", lambda: _with_another(Action("scroll", direction="down", amount=3))
    yield "scrolled to", lambda: _with_another(Action("scroll-to"))
    yield "hovered, named", lambda: _with_another(Action("hover"), repeat_of=1)
    for look in (False, True):
        yield f"set again, look {look}", lambda look=look: _set_again(look)
    for step in (Look, TakeLease, Announce, Record, Perform, Release):
        for reached in (False, True):
            for n in range(6 if step is Announce else 2):
                yield (
                    f"stopped before {n} {step.__name__}, {reached}",
                    lambda s=step, r=reached, n=n: _thrown(s, reached=r, after=n),
                )
    for step_us in (1_000, 30_000, 100_000, 149_000, 150_000, 150_001, 299_000, 300_000, 300_001, 400_000):
        for timeout_ms in (0, 150, 300, 1_000, 9_000):
            yield f"{step_us} us a step, {timeout_ms} ms", lambda s=step_us, t=timeout_ms: _late(s, t)
            yield (
                f"{step_us} us a step, {timeout_ms} ms, swallowed",
                lambda s=step_us, t=timeout_ms: _late(s, t, _field(), command="set-value", value="b"),
            )
    for looks in (1, 2, 3, 50):
        for timeout_ms in (0, 150, 300):
            yield f"{looks} unread looks, {timeout_ms} ms", lambda n=looks, t=timeout_ms: _unread_until(n, t)
    yield from pages()
    yield from desktops()


def _no_lease() -> list[Any]:
    run = _run(lease_free=False)
    (ref, *_) = run.snapshot()
    return _told(run, run.act("click", ref, timeout_ms=300), run.act("click", ref, timeout_ms=0))


HISTORIES = dict(_histories())


def told(name: str) -> dict[str, Any]:
    """The answers of a history in a few words, and a digest of everything that was answered, recorded and asked for."""
    everything = HISTORIES[name]()
    shown = [_answer(outcome) for outcome in _outcomes(everything)]
    text = json.dumps(everything, sort_keys=True)
    return {"history": name, "answers": shown, "all": hashlib.sha256(text.encode()).hexdigest()[:16]}


def _outcomes(found: Any) -> Iterator[Mapping[str, Any]]:
    for one in found if isinstance(found, list) else found.values() if isinstance(found, dict) else ():
        if isinstance(one, dict) and "ActOutcome" in one:
            yield one["ActOutcome"]
        else:
            yield from _outcomes(one)


def _answer(outcome: Mapping[str, Any]) -> str:
    words = ("code", "kind")
    delivered = outcome["disposition"]["Disposition"]["delivery"]
    return " ".join([*(str(outcome[w]) for w in words if outcome.get(w)), delivered])
