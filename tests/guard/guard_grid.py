"""Situations and actions, and what the guard decides of each action in each situation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from spelled_before import plain

from deskcert.adapters.base import (
    Action,
    Handle,
    Live,
    WindowState,
)
from deskcert.contract.evidence import (
    ABSENT,
    ActivationPath,
    Destination,
    Evidence,
    HitTest,
    Known,
    NameSources,
    Unknown,
)
from deskcert.guard import actionability, identity, policy, retry_gate, verification
from deskcert.guard.pipeline import dispatch_budget
from deskcert_schema.vocabulary import Mode

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
    "one option and twins": live(role="listbox", options=(1, 2)),
    "twins and no option": live(role="listbox", options=(2, 0)),
    "hidden, no box": live(states={"visible": Known(False)}, box=None),
    "hidden, no width": live(states={"visible": UNREAD}, box=(0, 0, 0, 5)),
    "twin options": live(role="combobox", options=(2,)),
    "options unread": live(role="combobox", options=None),
    "dropped on forbidden": live(other=named("Delete account", node="n9", context=())),
    "dropped on what has no name to read": live(other=named(UNREAD, node="n9", context=())),
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
    "press nothing": Action("press"),
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


def short(value: Any) -> str:
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()[:4]


@cache
def denying() -> policy.Policy:
    """Made once: no history changes it."""
    return policy.compile_policy(POLICY, digest="0" * 64)


def _questions() -> dict[str, Callable[[Action, Evidence], Any]]:
    deny = denying()
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
        place = identity.saved_identity(NODE | {"name": "Delete account", "context": []}, Handle("d1", "n9"))
        dragged = identity.saved_identity(NODE, handle) | {"to": place}
        rows["dragged"] = [identity.compare_saved(dragged, e) for e in SITUATIONS.values()]
    else:
        answer = _questions()[question]
        rows = {name: [answer(action, e) for e in SITUATIONS.values()] for name, action in ACTIONS.items()}
    return {name: "".join(map(short, row)) for name, row in rows.items()}
