"""What the guard decides for a grid of situations, and what it writes down in a family of histories.

`python tests/guard/decided_before.py` writes `decided.json`, `spelled.json` and `told.jsonl` anew, after a change that
was meant. Look at the difference: old ledgers are decided again by the new guard, and every line that differs is one
that a replay would report. With names of histories it prints them instead, whole.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from spelled_before import SPELLED, plain

from deskcert.adapters.base import (
    Action,
    Dialog,
    Dispatch,
    DispatchEnd,
    Handle,
    Live,
    Navigation,
    RequestSeen,
    WindowState,
)
from deskcert.adapters.desktop import DesktopApp, DesktopWindow, Operated, Operation, ReadBack
from deskcert.contract.evidence import (
    ABSENT,
    ActivationPath,
    Destination,
    Evidence,
    Hit,
    HitTest,
    Known,
    NameSources,
    Unknown,
)
from deskcert.guard import actionability, delivery, identity, policy, retry_gate, verification
from deskcert.guard.desktop import DesktopRequest, operate
from deskcert.guard.desktop_subject import (
    app_target,
    clipboard_target,
    desktop_fingerprint,
    desktop_subject,
    program_target,
    window_target,
)
from deskcert.guard.outcome import ActOutcome, ActRequest, Interrupted, NavigateRequest
from deskcert.guard.page import navigate
from deskcert.guard.pipeline import act, dispatch_budget
from deskcert.guard.retry_gate import GateState
from deskcert.guard.steps import (
    Announce,
    Done,
    Leased,
    Look,
    Navigate,
    Navigated,
    Operate,
    OperationDone,
    Perform,
    Record,
    Recorded,
    Release,
    Requests,
    RequestsSeen,
    Sleep,
    TakeLease,
)
from deskcert.testing import Element, Fault, SimulatedRun, World
from deskcert_schema.vocabulary import Mode, PipelinePoint

HERE = Path(__file__).parent
UNREAD = Unknown("no answer")
WINDOW = WindowState("w1", "Orders - Shop", "http://h/orders?page=2", "d1")

POLICY: dict[str, Any] = {
    "version": 1,
    "deny": [
        {"id": "delete", "name": "Delete account", "reason": "irreversible"},
        {"id": "glob", "name": {"glob": "*refund*"}, "role": ["button", "link"]},
        {"id": "regex", "name": {"regex": "pay(out)? now"}, "effect": "require_confirmation"},
        {"id": "post", "destination": {"method": "POST", "url": "**/transfers"}, "action": ["click", "press"]},
        {"id": "any-delete", "destination": {"method": "DELETE"}},
        {"id": "link", "destination": {"url": "**/logout"}},
        {"id": "value", "value": {"glob": "*secret*"}},
        {"id": "upload", "upload": {"glob": "*/private/*"}},
        {"id": "keys", "key": ["F5", "Control+W"]},
        {"id": "where", "url": "**/admin/**"},
        {"id": "title", "window": {"glob": "*bank*"}, "action": "set-value"},
        {"id": "slider", "role": "slider"},
        {"id": "checks", "action": "check", "role": "switch"},
        {"id": "noted", "name": "Approve", "effect": "record_only"},
    ],
}
ALLOWING: dict[str, Any] = {
    "version": 1,
    "default": "deny",
    "allow": [
        {"id": "approve", "name": {"glob": "Approve*"}, "action": ["click", "press"]},
        {"id": "fields", "role": "textbox", "action": ["set-value", "type", "clear"]},
        {"id": "forms", "destination": {"method": "POST", "url": "http://h/orders"}},
        {"id": "small", "value": {"glob": "small*"}, "action": "set-value"},
        {"id": "files", "upload": {"glob": "*/public/*"}, "action": "upload"},
        {"id": "esc", "key": "Escape", "action": "press"},
        {"id": "shop", "window": {"glob": "*Pharmacy"}},
        {"id": "there", "url": "http://h/free/**"},
    ],
}
LIVE = Evidence(
    document="d1",
    node="n1",
    role="button",
    names=NameSources(accessible=Known("Approve")),
    context=(("row", "Order 1001"),),
    url="http://h/orders?page=2#top",
    destination=ABSENT,
    paths=(),
    states={"visible": Known(True), "enabled": Known(True), "editable": Known(False)},
    actions=("click", "press", "set-value", "toggle", "check", "focus", "expand", "select", "upload", "type"),
    box=(0, 0, 10, 10),
    hit_test=HitTest("pass"),
    value=Known("a"),
    digest="00",
)


def live(**what: Any) -> Evidence:
    states = {**LIVE.states, **what.pop("states", {})}
    return replace(LIVE, states=states, **what)


def named(text: Any, **more: Any) -> Evidence:
    known = text if isinstance(text, Unknown) or text is ABSENT else Known(text)
    return live(names=NameSources(accessible=known), **more)


def path(why: str, text: Any = "Delete account", role: str = "button", **more: Any) -> ActivationPath:
    known = text if isinstance(text, Unknown) else Known(text)
    return ActivationPath(why, role, NameSources(accessible=known), **more)


TO_TRANSFERS = Known(Destination(form_action="http://h/transfers", form_method="post"))
TO_ORDERS = Known(Destination(form_action="http://h/orders", form_method="POST"))
SITUATIONS: dict[str, Evidence] = {
    "as it was": LIVE,
    "hidden": live(states={"visible": Known(False)}),
    "unseen": live(states={"visible": UNREAD}),
    "disabled": live(states={"enabled": Known(False)}),
    "enabled unread": live(states={"enabled": UNREAD}),
    "enabled untold": live(states={"enabled": ABSENT}),
    "field": live(role="textbox", states={"editable": Known(True)}),
    "field holds b": live(role="textbox", states={"editable": Known(True)}, value=Known("b")),
    "field with submitter": live(
        role="textbox",
        states={"editable": Known(True)},
        paths=(path("default_submitter", "Pay", destination=TO_TRANSFERS),),
    ),
    "read-only": live(role="textbox", states={"editable": Known(True), "readonly": Known(True)}),
    "not read-only": live(role="textbox", states={"editable": Known(True), "readonly": Known(False)}),
    "editable unread": live(states={"editable": UNREAD}),
    "secure": live(role="textbox", states={"editable": Known(True), "secure": Known(True)}, value=ABSENT),
    "empty": live(role="textbox", states={"editable": Known(True)}, value=Known("")),
    "value unread": live(value=UNREAD),
    "value absent": live(value=ABSENT),
    "checked": live(role="checkbox", states={"checked": Known(True)}),
    "unchecked": live(role="checkbox", states={"checked": Known(False)}),
    "mixed": live(role="checkbox", states={"checked": Known(False), "indeterminate": Known(True)}),
    "checked unread": live(role="checkbox", states={"checked": UNREAD}),
    "pressed": live(states={"pressed": Known(True)}),
    "switch": live(role="switch", states={"checked": Known(True)}),
    "radio": live(role="radio", states={"checked": Known(False)}),
    "expanded": live(states={"expanded": Known(True)}),
    "collapsed": live(states={"expanded": Known(False)}),
    "focused": live(states={"focused": Known(True)}),
    "no box": live(box=None),
    "no width": live(box=(0, 0, 0, 9)),
    "no height": live(box=(0, 0, 9, 0)),
    "a thousandth wide": live(box=(0, 0, 1, 1)),
    "moved": live(box=(0, 7, 10, 10)),
    "covered": live(hit_test=HitTest("fail", "dialog", "Cookies")),
    "covered by something": live(hit_test=HitTest("fail")),
    "covered by a nameless dialog": live(hit_test=HitTest("fail", "dialog")),
    "hit unknown": live(hit_test=HitTest("unknown")),
    "out of view": live(hit_test=HitTest("deferred")),
    "steady": live(steady=True),
    "moving": live(steady=False),
    "only presses": live(actions=("press",)),
    "only focus": live(actions=("focus",)),
    "no actions": live(actions=()),
    "only toggles": live(actions=("toggle",)),
    "only checks": live(actions=("check",)),
    "only expands": live(actions=("expand",)),
    "only sets": live(actions=("set-value",), states={"editable": Known(True)}),
    "slider": live(role="slider"),
    "another role": live(role="link"),
    "another name": named("Reject"),
    "no name": named(ABSENT),
    "name unread": named(UNREAD),
    "same name with a space": named(" Approve\n"),
    "another row": live(context=(("row", "Order 1002"),)),
    "no row": live(context=()),
    "another document": live(document="d2"),
    "another node": live(node="n2"),
    "forbidden": named("Delete account"),
    "forbidden look-alike": named("D\u0435lete\u200b account"),
    "forbidden title": live(names=NameSources(accessible=Known("OK"), title=Known("delete  ACCOUNT"))),
    "title unread": live(names=NameSources(accessible=Known("OK"), title=UNREAD)),
    "refund": named("Full refund please"),
    "refund text": named("Full refund please", role="statictext"),
    "pay now": named("Pay now"),
    "payout now": named("Payout now, today"),
    "submits a transfer": named("Send", destination=TO_TRANSFERS),
    "submits orders": named("Send", destination=TO_ORDERS),
    "submits by get": named("Find", destination=Known(Destination(form_action="http://h/transfers"))),
    "submits deletion": named("Send", destination=Known(Destination(form_action="http://h/x", form_method="delete"))),
    "logs out": named("Bye", role="link", destination=Known(Destination(link="http://h/logout"))),
    "destination unread": named("Send", destination=UNREAD),
    "label of forbidden": named("yes", role="label", paths=(path("label_control"),)),
    "inside forbidden": named("icon", role="img", paths=(path("ancestor"),)),
    "around forbidden": named("row", role="row", paths=(path("descendant"),)),
    "submits forbidden": named(
        "Note", role="textbox", states={"editable": Known(True)}, paths=(path("default_submitter"),)
    ),
    "focus on forbidden": named("page", role="document", paths=(path("focused"),)),
    "access key": named("yes", paths=(path("access_key"),)),
    "label unread": named("yes", paths=(path("label", UNREAD),)),
    "passed on to approve": named(
        "icon", role="img", context=(), paths=(path("ancestor", "Approve", context=LIVE.context),)
    ),
    "two ways to submit": named(
        "Note",
        role="textbox",
        states={"editable": Known(True)},
        paths=(path("descendant", "icon"), path("default_submitter", "Pay", context=LIVE.context)),
    ),
    "inside approve, beside a link": named(
        "icon",
        role="img",
        context=(),
        paths=(path("ancestor", "x", "region"), path("ancestor", "Approve", context=LIVE.context)),
    ),
    "label beside an ancestor": named(
        "icon",
        role="img",
        context=(),
        paths=(path("label_control", "Approve", "checkbox"), path("ancestor", "Approve")),
    ),
    "label of a region": named(
        "Name", role="label", context=(), paths=(path("label_control", "Approve", "region", context=LIVE.context),)
    ),
    "labelled": named("Approve", paths=(path("label", "Something else"),)),
    "focus on approve": named("page", role="document", paths=(path("focused", "Approve"),)),
    "not ASCII": live(context=(("row", "Auftrag für Größe"),)),
    "form of no address, a part first": named("Go", destination=Known(Destination(form_action="http://[h/a#b?c#d"))),
    "form of no address, two queries": named("Go", destination=Known(Destination(form_action="http://[h/a?b?c#d"))),
    "blank name, known text": live(names=NameSources(accessible=Known(" "), text=Known("Approve"))),
    "link to a part": named("Go", role="link", destination=Known(Destination(link="http://h/a#b#c"))),
    "form with a query": named(
        "Go", destination=Known(Destination(form_action="http://h:8/a?b=1#c", form_method="POST"))
    ),
    "form of no address": named(
        "Go", destination=Known(Destination(form_action="http://[h/a?b#c", form_method="POST"))
    ),
    "on the admin page": live(url="http://h/admin/users"),
    "on another page": live(url="http://h/payouts"),
    "on a free page": live(url="http://h/free/page"),
    "two options": live(role="listbox", options=(1, 1), value=Known("Red, Blue")),
    "one option": live(role="combobox", options=(1,), value=Known("Red"), paths=(path("descendant", "Red", "option"),)),
    "no such option": live(role="combobox", options=(0,)),
    "twin options": live(role="combobox", options=(2,)),
    "options unread": live(role="combobox", options=None),
    "dropped on forbidden": live(other=named("Delete account", node="n9", context=())),
    "dropped on hidden": live(other=live(node="n9", states={"visible": Known(False)})),
    "dropped on covered": live(other=live(node="n9", hit_test=HitTest("fail", "dialog", "Cookies"))),
    "dropped on approve": live(other=live(node="n9", context=())),
}
FILES = json.dumps([{"path": "/srv/private/a.pdf", "bytes": 3}, {"path": "/srv/public/b.pdf", "bytes": 4}])
ACTIONS: dict[str, Action] = {
    **{
        name: Action(name)
        for name in (
            *("click", "double-click", "triple-click", "right-click", "hover", "focus", "clear", "check", "uncheck"),
            *("toggle", "expand", "collapse", "scroll-to"),
        )
    },
    "scroll": Action("scroll", direction="down", amount=3),
    "drag": Action("drag", to=Handle("d1", "n9")),
    "set b": Action("set-value", value="b"),
    "set nothing": Action("set-value", value=""),
    "set a secret": Action("set-value", value="my secret word"),
    "set small": Action("set-value", value="small change"),
    "type b": Action("type", value="b"),
    "select red": Action("select", value="Red"),
    "upload": Action("upload", value=FILES),
    "upload a public file": Action("upload", value=json.dumps([{"path": "/srv/public/b.pdf", "bytes": 4}])),
    "physical click": Action("click", physical=True),
    **{f"press {k}": Action("press", key=k) for k in ("Enter", "Space", "Escape", "F5", "Control+w", "a")},
    **{f"press Arrow{k}": Action("press", key=f"Arrow{k}") for k in ("Left", "Right", "Up", "Down")},
}
NODE: dict[str, Any] = {"role": "button", "name": "Approve", "context": [["row", "Order 1001"]], "node": "n1"}
NODES: dict[str, dict[str, Any]] = {
    "as it was": NODE,
    "nameless": {k: v for k, v in NODE.items() if k != "name"},
    "name unread": NODE | {"name": {"unknown": "no answer"}},
    "without context": NODE | {"context": []},
    "field": {
        "role": "textbox",
        "name": "a",
        "value": "a",
        "description": "Amount",
        "context": [["row", "Order 1001"]],
    },
    "described": NODE | {"description": "Order"},
}


def _short(value: Any) -> str:
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()[:4]


def _questions() -> dict[str, Callable[[Action, Evidence], Any]]:
    deny = policy.compile_policy(POLICY, digest="0" * 64)
    allow = policy.compile_policy(ALLOWING, digest="1" * 64)
    bank = replace(WINDOW, title="My bank")

    def asked(rules: policy.Policy, window: WindowState) -> Callable[[Action, Evidence], Any]:
        def answer(action: Action, evidence: Evidence) -> Any:
            facts = policy.value_facts(rules, action.value, action.command)
            verdict = policy.decide(rules, policy.subject_of(action, evidence, window, facts))
            return (
                verdict,
                facts,
                verdict.as_json("x") if isinstance(verdict, policy.Allow) else verdict.source.as_json(),
            )

        return answer

    def possible(mode: Mode) -> Callable[[Action, Evidence], Any]:
        def answer(action: Action, evidence: Evidence) -> Any:
            report = actionability.judge(action, evidence, mode)
            return report.as_json(), actionability.verdict_of(report), actionability.facts(report, evidence)

        return answer

    def read(before: Evidence | None) -> Callable[[Action, Evidence], Any]:
        def answer(action: Action, evidence: Evidence) -> Any:
            found = verification.read_back(action, Live(evidence), before)
            return found.as_json(), found.settled, verification.has_claim(action)

        return answer

    return {
        "policy": asked(deny, WINDOW),
        "policy at the bank": asked(deny, bank),
        "allow list": asked(allow, WINDOW),
        "allow list at the pharmacy": asked(allow, replace(WINDOW, title="Old Pharmacy")),
        "possible headless": possible(Mode.HEADLESS),
        "possible headed": possible(Mode.HEADED),
        "read back": read(LIVE),
        "read back of nothing": read(None),
        "read back of a field": read(SITUATIONS["field"]),
        "read back of a box": read(SITUATIONS["unchecked"]),
        "holds already": lambda a, e: (verification.holds_already(a, e), verification.held_already(a).as_json()),
        "fingerprint": lambda a, e: retry_gate.fingerprint(a, e, None if a.value is None else a.value),
        "budget": lambda a, _: dispatch_budget(a),
    }


QUESTIONS = (*_questions(), "identity")


def decided(question: str) -> dict[str, str]:
    """Of one question: action → what was answered in each situation, in their order, four digits each."""
    if question == "identity":
        handle = Handle("d1", "n1")
        rows = {n: [identity.compare(node, handle, e) for e in SITUATIONS.values()] for n, node in NODES.items()}
    else:
        answer = _questions()[question]
        rows = {name: [answer(action, e) for e in SITUATIONS.values()] for name, action in ACTIONS.items()}
    return {name: "".join(map(_short, row)) for name, row in rows.items()}


# --- histories --------------------------------------------------------------------------------------------------------


def _run(*elements: Element, **how: Any) -> SimulatedRun:
    run = SimulatedRun(World(list(elements) or [Element("n1", "order-1", name="Approve")]), POLICY, **how)
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
    (ref, *_) = run.snapshot()
    return _told(run, run.act(command, ref, timeout_ms=timeout_ms, **how))


def _unread_until(looks: int, timeout_ms: int) -> list[Any]:
    run = _run()
    (ref, *_) = run.snapshot()
    left = iter(range(looks))
    run.world.before_look = lambda world: setattr(world, "readable", next(left, None) is None)
    return _told(run, run.act("click", ref, timeout_ms=timeout_ms))


def _thrown(at: type, *, reached: bool, after: int = 0) -> list[Any]:
    """As `_interrupted`, after so many steps of this kind, with the adapter's word that the target was reached."""
    run = _run(_field())
    (ref, *_) = run.snapshot()
    seq, saved = run._snapshots[ref.snapshot]
    request = ActRequest(
        action_no=1,
        action=Action("set-value", value="b"),
        ref=ref,
        saved=saved[ref.n],
        snapshot_seq=seq,
        newest_snapshot_seq=seq,
        policy=run.policy,
        gate=GateState(),
        run_key=b"k",
        now_us=0,
        secret=_secret,
    )
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
    yield from _pages()
    yield from _desktops()


def _no_lease() -> list[Any]:
    run = _run(lease_free=False)
    (ref, *_) = run.snapshot()
    return _told(run, run.act("click", ref, timeout_ms=300), run.act("click", ref, timeout_ms=0))


# --- commands without an element --------------------------------------------------------------------------------------


def _driven(
    steps: Any, came: Any, *, stop: type | None = None, ledger: bool = True, lease: bool = True, requests: Any = ()
) -> list[Any]:
    """The whole conversation of one pipeline, and its outcome. `stop` is a step before which it is interrupted."""
    said: list[Any] = []
    now, answer = 1_000, None
    try:
        step = next(steps)
        while True:
            if stop is not None and isinstance(step, stop):
                stop = None
                step = steps.throw(Interrupted("the run was stopped", reached=True))
                continue
            now += 100
            match step:
                case TakeLease(budget):
                    said.append(f"lease {budget}")
                    answer = Leased(lease, 2, now)
                case Record(kind, payload):
                    said.append({"record": kind.value, **plain(payload)})
                    answer = Recorded(40 + len(said), 7, now) if ledger else Recorded(None, 0, now, "the disk is full")
                case Announce(point):
                    said.append(point.value)
                    answer = Done(now)
                case Navigate(url, seq, budget, action):
                    said.append([url, seq, budget, plain(action)])
                    answer = Navigated(came, now)
                case Operate(operation, seq, budget):
                    said.append([plain(operation), seq, budget])
                    answer = OperationDone(came, now)
                case Requests(number):
                    said.append(f"requests {number}")
                    answer = RequestsSeen(requests, now)
                case _:
                    said.append(type(step).__name__)
                    answer = Done(now)
            step = steps.send(answer)
    except StopIteration as done:
        return [plain([done.value]), said]


NEW = WindowState("w1", "t", "http://h/new", "d2")
DIALOG = Dialog("d7", "confirm", "Really?")
CAME: dict[str, Navigation] = {
    "committed": Navigation(DispatchEnd.COMPLETED, NEW, 200),
    "failed page": Navigation(DispatchEnd.COMPLETED, NEW, 500),
    "same document": Navigation(DispatchEnd.COMPLETED, replace(WINDOW, url="http://h/new")),
    "stayed": Navigation(DispatchEnd.COMPLETED, WINDOW),
    "nothing": Navigation(DispatchEnd.COMPLETED, None, error="net::ERR"),
    "not sent": Navigation(DispatchEnd.NOT_SENT, error="no page"),
    "no answer": Navigation(DispatchEnd.NO_ANSWER, error="late"),
    "dialog": Navigation(DispatchEnd.NO_ANSWER, dialog=DIALOG),
}
OPENED: dict[str, Any] = {
    "id": "d7",
    "type": "prompt",
    "text": "How much?",
    "opener": {"role": "button", "name": "Pay"},
}
BAD: dict[str, Any] = OPENED | {"text": "Delete account", "opener": {"role": "button", "name": "Delete account"}}


def _secret(value: str, openable: bool) -> dict[str, Any]:
    return {"hidden": True, "openable": openable, "characters": len(value)}


def _paged(command: str, url: str, **how: Any) -> NavigateRequest:
    return NavigateRequest(
        **{
            "action_no": 3,
            "url": url,
            "window": WINDOW,
            "newest_snapshot_seq": 9,
            "policy": policy.compile_policy(POLICY, digest="0" * 64),
            "gate": GateState(),
            "now_us": 500,
            "prev_commit_us": 11,
            "command": command,
            "secret": _secret,
            **how,
        }
    )


def _pages() -> Iterator[tuple[str, Callable[[], list[Any]]]]:
    def driven(request: NavigateRequest, came: Any = CAME["committed"], **how: Any) -> Callable[[], list[Any]]:
        return lambda: _driven(navigate(request), came, **how)

    for command in ("navigate", "back", "forward", "reload"):
        for name, came in CAME.items():
            yield f"{command}: {name}", driven(_paged(command, "http://h/new"), came)
        yield f"{command}: denied", driven(_paged(command, "http://h/admin/x"))
    yield "navigate without a lease", driven(_paged("navigate", "http://h/new"), lease=False)
    yield "navigate without a ledger", driven(_paged("navigate", "http://h/new"), ledger=False)
    for step in (TakeLease, Navigate, Release, Record):
        yield f"navigate interrupted before {step.__name__}", driven(_paged("navigate", "http://h/new"), stop=step)
    for command in ("dialog-accept", "dialog-dismiss"):
        for name, dialog in (("prompt", OPENED), ("bad", BAD), ("plain", {"id": "d8", "type": "alert", "text": ""})):
            for text in (None, "my answer"):
                request = _paged(command, WINDOW.url, dialog=dialog, text=text)
                yield f"{command}: {name}, {text}", driven(request, Navigation(DispatchEnd.COMPLETED))
        yield f"{command}: no answer", driven(_paged(command, WINDOW.url, dialog=OPENED), CAME["no answer"])
    tab = {"id": "t2", "title": "Second"}
    for command in ("tab-focus", "tab-close"):
        for name, came in CAME.items():
            yield f"{command}: {name}", driven(_paged(command, "http://h/new", tab=tab), came)
        yield f"{command}: denied", driven(_paged(command, "http://h/admin/x", tab=tab))
    for command in ("navigate", "back", "reload"):
        urls = ("http://h/a#b#c", "http://h/a#c", "http://h/a", "http://h/b", "about:blank#", "http://[h/a#b")
        target = [{"url": url} for url in urls]
        yield f"{command}: marks", lambda c=command, t=target: [retry_gate.page_fingerprint(c, one) for one in t]
    yield "navigate twice", _twice


def _twice() -> list[Any]:
    """The same address again: with and without a newer look, a request that is open, the name of what is repeated."""
    said: list[Any] = []
    pending = (RequestSeen("POST", "u", "causal", "pending"),)
    asked = ((9, None, ()), (99, None, ()), (99, None, pending), (99, 3, pending), (99, 3, ()))
    mark = retry_gate.page_fingerprint("navigate", {"url": "http://h/new"})
    for ok in (True, False):
        kind = delivery.Delivery.DELIVERED_UNVERIFIED if ok else delivery.Delivery.DELIVERY_UNCERTAIN
        gate = GateState().after(mark, retry_gate.Attempt(3, 20, kind, ok=ok))
        for seq, repeat_of, requests in asked:
            request = _paged("navigate", "http://h/new", gate=gate, newest_snapshot_seq=seq, repeat_of=repeat_of)
            said.append(_driven(navigate(request), CAME["committed"], requests=requests))
    return said


APP = DesktopApp("Mail", 77, "g1", True, "desktop://Mail/")
OTHER = DesktopApp(None, 78, "g2", True, "desktop://pid-78/")
FRAME = DesktopWindow("w5", "Inbox", APP, (1, 2, 30, 40), frozenset({"shown", "modal"}))
OPERATIONS: dict[str, tuple[Operation, dict[str, Any]]] = {
    "launch": (Operation("launch", program="Mail"), program_target("Mail", "/usr/bin/mail")),
    "launch forbidden": (Operation("launch", program="x"), program_target("Delete account", "/usr/bin/x")),
    "close-app": (Operation("close-app", app=APP, force=True), app_target(APP, (FRAME,))),
    "close-app nameless": (Operation("close-app", app=OTHER), app_target(OTHER, (FRAME,))),
    **{
        name: (Operation(name, window=FRAME, box=(1, 1, 2, 2)), window_target(FRAME))
        for name in ("focus-window", "move-window", "resize-window", "minimize", "maximize", "restore")
    },
    "clipboard-set": (Operation("clipboard-set", text="words"), clipboard_target()),
    "clipboard-set secret": (Operation("clipboard-set", text="my secret word"), clipboard_target()),
}
OPERATED: dict[str, Operated] = {
    "done": Operated(
        Dispatch(DispatchEnd.COMPLETED, True, hit=Hit("window", "Inbox", True)), ReadBack(True, "there", None, 4, "px")
    ),
    "not done": Operated(Dispatch(DispatchEnd.COMPLETED, True), ReadBack(False, "elsewhere")),
    "not known": Operated(Dispatch(DispatchEnd.COMPLETED, True), ReadBack(None, reason="no answer")),
    "changed": Operated(Dispatch(DispatchEnd.CHANGED, False, differences=("title",), error="it changed")),
    "unsupported": Operated(Dispatch(DispatchEnd.NOT_SENT, False, error="no manager", unsupported=True)),
    "no answer": Operated(Dispatch(DispatchEnd.NO_ANSWER, False, error="late")),
}


def _desktops() -> Iterator[tuple[str, Callable[[], list[Any]]]]:
    def driven(name: str, came: Operated = OPERATED["done"], **how: Any) -> Callable[[], list[Any]]:
        operation, target = OPERATIONS[name]
        asked = {k: how.pop(k) for k in ("gate", "repeat_of", "timeout_ms", "newest_snapshot_seq") if k in how}
        request = DesktopRequest(
            **{
                "action_no": 4,
                "operation": operation,
                "target": target,
                "args": {"window": "w5"},
                "newest_snapshot_seq": 9,
                "policy": policy.compile_policy(POLICY, digest="0" * 64),
                "gate": GateState(),
                "run_key": b"k",
                "now_us": 500,
                "secret": _secret,
                "prev_commit_us": 5,
                **asked,
            }
        )
        return lambda: _driven(operate(request), came, **how)

    for name in OPERATIONS:
        yield f"desktop {name}", driven(name)
    for name, came in OPERATED.items():
        yield f"desktop launch: {name}", driven("launch", came)
        yield f"desktop move-window: {name}", driven("move-window", came, timeout_ms=100, repeat_of=3)
    for step in (TakeLease, Operate, Release, Record):
        yield f"desktop interrupted before {step.__name__}", driven("clipboard-set", stop=step)
    operation, target = OPERATIONS["launch"]
    mark = desktop_fingerprint(operation.command, target, None)
    gate = GateState().after(mark, retry_gate.Attempt(3, 4, delivery.Delivery.DELIVERED_UNVERIFIED, ok=True))
    yield "desktop launched twice", driven("launch", gate=gate, newest_snapshot_seq=4)
    yield "desktop launched again after a look", driven("launch", gate=gate)
    yield "desktop subjects", lambda: [plain(desktop_subject(o.command, t)) for o, t in OPERATIONS.values()]


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


def main() -> None:
    for name in sys.argv[1:]:
        print(json.dumps(HISTORIES[name](), indent=1))
    if sys.argv[1:]:
        return
    now = {question: decided(question) for question in QUESTIONS}
    (HERE / "decided.json").write_text(json.dumps({"situations": list(SITUATIONS), **now}, indent=0) + "\n")
    lines = [json.dumps(told(name), ensure_ascii=False) for name in HISTORIES]
    spelled = {name: work() for name, work in SPELLED.items()}
    (HERE / "spelled.json").write_text(json.dumps(spelled, indent=0) + "\n")
    (HERE / "told.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
