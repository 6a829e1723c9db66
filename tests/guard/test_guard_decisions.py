"""Identity, actionability, verification, delivery, the retry gate: each table, row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deskcert.adapters.base import (
    Action,
    Dialog,
    Dispatch,
    DispatchEnd,
    Gone,
    Handle,
    Live,
    Navigation,
    RequestSeen,
    Unreadable,
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
from deskcert.guard import actionability, identity, retry_gate
from deskcert.guard.delivery import judge_dispatch, judge_navigation
from deskcert.guard.retry_gate import Attempt, GateState, fingerprint, is_unanswered, judge, value_mac
from deskcert.guard.verification import NO_CLAIM, Verification, holds_already, read_back, read_navigation
from deskcert_schema.disposition import SUCCESS_DELIVERIES, Delivery
from deskcert_schema.vocabulary import Check, CheckStatus, Code, DetailKind, Mode, VerificationScope

UNREAD = Unknown("no answer")
HANDLE = Handle("d1", "n1")
NODE: dict[str, Any] = {"role": "button", "name": "Approve", "context": [["row", "Order 1001"]], "node": "n1"}
LIVE = Evidence(
    document="d1",
    node="n1",
    role="button",
    names=NameSources(accessible=Known("Approve")),
    context=(("row", "Order 1001"),),
    url="http://h/orders?page=2#top",
    destination=ABSENT,
    paths=(),
    states={"visible": Known(True), "enabled": Known(True), "editable": Known(True)},
    actions=("click", "press", "set-value"),
    box=(0, 0, 10, 10),
    hit_test=HitTest("pass"),
    value=Known("a"),
    digest="00",
)


def live(**what: Any) -> Evidence:
    states = {**LIVE.states, **what.pop("states", {})}
    return replace(LIVE, states=states, **what)


# --- (2) identity -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "which"),
    [
        (live(document="d2"), ("document",)),
        (live(node="n2"), ("node",)),
        (live(role="link"), ("role",)),
        (live(names=NameSources(accessible=Known("Reject"))), ("name",)),
        (live(names=NameSources()), ("name",)),
        (live(context=(("row", "Order 1002"),)), ("context",)),
        (live(context=()), ("context",)),
        (live(role="link", context=()), ("role", "context")),
    ],
)
def test_each_part_of_identity_counts(evidence: Evidence, which: tuple[str, ...]) -> None:
    assert identity.compare(NODE, HANDLE, evidence) == identity.Changed(which)


def test_the_same_is_the_same_whatever_its_layout() -> None:
    assert identity.compare(NODE, HANDLE, live(names=NameSources(accessible=Known(" Approve\n")))) == identity.Same()
    nameless = {k: v for k, v in NODE.items() if k != "name"}
    assert identity.compare(nameless, HANDLE, live(names=NameSources(accessible=Known("")))) == identity.Same()


def test_a_name_that_could_not_be_read_is_neither() -> None:
    assert identity.compare(NODE, HANDLE, live(names=NameSources(accessible=UNREAD))) == identity.Doubtful(("name",))
    unread = NODE | {"name": {"unknown": "no answer"}}
    assert identity.compare(unread, HANDLE, LIVE) == identity.Doubtful(("name",))
    assert isinstance(identity.compare(unread, HANDLE, live(node="n2")), identity.Changed)


def test_a_name_that_repeats_the_value_is_no_identity_of_a_field() -> None:
    field = {"role": "textbox", "name": "12", "value": "12", "description": "Amount"}
    now = live(role="textbox", names=NameSources(accessible=Known("13"), description=Known("Amount")), context=())
    assert identity.compare(field, HANDLE, now) == identity.Same()
    other = replace(now, names=NameSources(accessible=Known("12"), description=Known("Fee")))
    assert identity.compare(field, HANDLE, other) == identity.Changed(("description",))
    button = field | {"role": "button"}
    assert identity.compare(button, HANDLE, replace(now, role="button")) == identity.Changed(("name",))
    assert "12" not in str(identity.saved_identity(field, HANDLE))


# --- (4) actionability ------------------------------------------------------------------------------------------------


def verdict(action: Action, evidence: Evidence, mode: Mode = Mode.HEADLESS) -> Any:
    return actionability.verdict_of(actionability.judge(action, evidence, mode))


CLICK, SET, ENTER = Action("click"), Action("set-value", value="b"), Action("press", key="Enter")
SPACE = Action("press", key="Space")


@pytest.mark.parametrize("action", [CLICK, SET, ENTER])
def test_all_checks_pass(action: Action) -> None:
    assert verdict(action, LIVE) == actionability.Ready()


@pytest.mark.parametrize(
    ("action", "evidence", "check", "status"),
    [
        (CLICK, live(states={"visible": Known(False)}), Check.VISIBLE, CheckStatus.FAIL),
        (CLICK, live(states={"visible": UNREAD}), Check.VISIBLE, CheckStatus.UNKNOWN),
        (CLICK, live(states={"visible": ABSENT}), Check.VISIBLE, CheckStatus.UNKNOWN),
        (CLICK, live(box=None), Check.VISIBLE, CheckStatus.UNKNOWN),
        (CLICK, live(box=(0, 0, 0, 9)), Check.VISIBLE, CheckStatus.FAIL),
        (CLICK, live(box=(0, 0, 9, 0)), Check.VISIBLE, CheckStatus.FAIL),
        (ENTER, live(states={"enabled": Known(False)}), Check.ENABLED, CheckStatus.FAIL),
        (SET, live(states={"enabled": UNREAD}), Check.ENABLED, CheckStatus.UNKNOWN),
        (SET, live(states={"editable": UNREAD}), Check.EDITABLE, CheckStatus.UNKNOWN),
        (CLICK, live(hit_test=HitTest("fail", "dialog", "Cookies")), Check.RECEIVES_EVENTS, CheckStatus.FAIL),
        (CLICK, live(hit_test=HitTest("unknown")), Check.RECEIVES_EVENTS, CheckStatus.UNKNOWN),
    ],
)
def test_wait_class(action: Action, evidence: Evidence, check: Check, status: CheckStatus) -> None:
    found = verdict(action, evidence)
    assert isinstance(found, actionability.NotYet)
    assert (found.first.check, found.first.status) == (check, status)


@pytest.mark.parametrize(
    ("action", "evidence", "check", "code"),
    [
        (CLICK, live(actions=("press",)), Check.SUPPORTED_ACTION, Code.ACTION_NOT_SUPPORTED),
        (SET, live(states={"editable": Known(False)}), Check.EDITABLE, Code.ACTION_NOT_SUPPORTED),
        (SET, live(states={"readonly": Known(True)}), Check.EDITABLE, Code.ACTION_NOT_SUPPORTED),
        (Action("press", key="Escape"), LIVE, Check.MODE, Code.POLICY_DENIED),
    ],
)
@pytest.mark.parametrize("disabled", [False, True])
def test_terminal_class_beats_waiting(
    action: Action, evidence: Evidence, check: Check, code: Code, disabled: bool
) -> None:
    if disabled:
        evidence = replace(evidence, states={**evidence.states, "enabled": Known(False), "visible": Known(False)})
    found = verdict(action, evidence)
    assert isinstance(found, actionability.Blocked)
    assert (found.first.check, found.code) == (check, code)


def test_hit_test_counts_for_pointer_like_actions_only_and_out_of_view_is_deferred() -> None:
    covered = live(hit_test=HitTest("fail"))
    assert verdict(ENTER, covered) == verdict(SET, covered) == actionability.Ready()
    assert verdict(CLICK, live(hit_test=HitTest("deferred"))) == actionability.Ready()
    report = actionability.judge(CLICK, live(hit_test=HitTest("unknown")), Mode.HEADLESS)
    assert "occluder" not in report.as_json()[-1]
    named = actionability.judge(CLICK, live(hit_test=HitTest("fail", "dialog", "Cookies")), Mode.HEADLESS)
    assert named.as_json()[-1]["occluder"] == {"role": "dialog", "name": "Cookies"}
    assert verdict(Action("press", key="Escape"), LIVE, Mode.FOCUS_FALLBACK) == actionability.Ready()


# --- (8) verification -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probed", "satisfied", "reason"),
    [
        (Live(live(value=Known("b"))), True, None),
        (Live(live(value=Known("a"))), False, None),
        (Live(live(value=Known("B"))), False, None),
        (Live(live(value=ABSENT)), False, None),
        (Live(live(value=UNREAD)), None, "insufficient_evidence"),
        (Live(live(value=ABSENT, states={"secure": Known(True)})), None, "secure_field"),
        (Gone("removed"), None, "the element is gone: removed"),
        (Unreadable("no answer"), None, "no answer"),
    ],
)
def test_read_back_of_a_value(probed: Any, satisfied: bool | None, reason: str | None) -> None:
    found = read_back(SET, probed)
    assert (found.scope, found.satisfied, found.reason) == (VerificationScope.ELEMENT_VALUE, satisfied, reason)
    assert found.observed is None, "a typed value is secret"


def test_other_actions_claim_nothing_and_line_ends_do_not_count() -> None:
    assert read_back(CLICK, Live(LIVE)) == NO_CLAIM
    assert read_back(Action("set-value", value="x\r\ny"), Live(live(value=Known("x\ny")))).satisfied is True
    assert read_back(Action("set-value", value=""), Live(live(value=ABSENT))).satisfied is None


def test_already_holds_only_when_it_is_known_to() -> None:
    assert holds_already(SET, live(value=Known("b")))
    for evidence in (LIVE, live(value=UNREAD), live(value=ABSENT)):
        assert not holds_already(SET, evidence)
    assert not holds_already(SET, live(value=Known("b"), states={"secure": Known(True)}))
    assert not holds_already(CLICK, LIVE)


# --- (9) delivery -----------------------------------------------------------------------------------------------------

TRUE = Verification(VerificationScope.ELEMENT_VALUE, "c", True)
FALSE = Verification(VerificationScope.ELEMENT_VALUE, "c", False)
NOT_TOLD = Verification(VerificationScope.ELEMENT_VALUE, "c", None)
DIALOG = Dialog("1", "confirm", "Really?")
ROWS: list[tuple[Dispatch, Verification, tuple[Any, ...]]] = [
    (Dispatch(DispatchEnd.COMPLETED, True), NO_CLAIM, (None, None, Delivery.DELIVERED_UNVERIFIED)),
    (Dispatch(DispatchEnd.COMPLETED, False), NO_CLAIM, (None, None, Delivery.DELIVERED_UNVERIFIED)),
    (Dispatch(DispatchEnd.COMPLETED, True), TRUE, (None, None, Delivery.DELIVERED_VERIFIED)),
    (Dispatch(DispatchEnd.COMPLETED, True), NOT_TOLD, (None, None, Delivery.DELIVERED_UNVERIFIED)),
    (
        Dispatch(DispatchEnd.COMPLETED, True),
        FALSE,
        (Code.ACTION_FAILED, DetailKind.POST_ACTION_VERIFICATION, Delivery.DELIVERED_UNVERIFIED),
    ),
    (
        Dispatch(DispatchEnd.COMPLETED, True, dialog=DIALOG),
        NO_CLAIM,
        (None, DetailKind.PENDING_DIALOG, Delivery.DELIVERED_UNVERIFIED),
    ),
    (
        Dispatch(DispatchEnd.CHANGED, False),
        NO_CLAIM,
        (Code.ACTION_FAILED, DetailKind.CHANGED_AT_DISPATCH, Delivery.NOT_DELIVERED),
    ),
    (
        Dispatch(DispatchEnd.CHANGED, False, ("pointerdown",)),
        NO_CLAIM,
        (Code.ACTION_FAILED, DetailKind.STOPPED_MIDWAY, Delivery.DELIVERED_UNVERIFIED),
    ),
    (
        Dispatch(DispatchEnd.NOT_SENT, True),
        NO_CLAIM,
        (Code.ACTION_FAILED, DetailKind.STOPPED_MIDWAY, Delivery.DELIVERED_UNVERIFIED),
    ),
    (
        Dispatch(DispatchEnd.NOT_SENT, False),
        NO_CLAIM,
        (Code.APP_UNRESPONSIVE, DetailKind.COMPONENT_LOST, Delivery.NOT_DELIVERED),
    ),
    (
        Dispatch(DispatchEnd.STOPPED, True, ("pointerdown",)),
        NO_CLAIM,
        (Code.ACTION_FAILED, DetailKind.STOPPED_MIDWAY, Delivery.DELIVERED_UNVERIFIED),
    ),
    (
        Dispatch(DispatchEnd.NO_ANSWER, False),
        NO_CLAIM,
        (Code.TIMEOUT, DetailKind.DISPATCH_TIMEOUT, Delivery.DELIVERY_UNCERTAIN),
    ),
    (
        Dispatch(DispatchEnd.NO_ANSWER, False, dialog=DIALOG),
        NO_CLAIM,
        (Code.TIMEOUT, DetailKind.DISPATCH_TIMEOUT, Delivery.DELIVERY_UNCERTAIN),
    ),
    (
        Dispatch(DispatchEnd.NO_ANSWER, True),
        NO_CLAIM,
        (Code.TIMEOUT, DetailKind.DISPATCH_TIMEOUT, Delivery.DELIVERED_UNVERIFIED),
    ),
    (
        Dispatch(DispatchEnd.NO_ANSWER, True, dialog=DIALOG),
        NO_CLAIM,
        (None, DetailKind.PENDING_DIALOG, Delivery.DELIVERED_UNVERIFIED),
    ),
]


@pytest.mark.parametrize(("dispatch", "read", "expected"), ROWS)
def test_rows_of_the_disposition_table(dispatch: Dispatch, read: Verification, expected: tuple[Any, ...]) -> None:
    found = judge_dispatch(dispatch, read)
    assert (found.code, found.kind, found.delivery) == expected
    assert found.ok == (found.code is None)
    assert not found.ok or found.delivery in SUCCESS_DELIVERIES


NEW = WindowState("w1", "t", "http://h/new", "d2")
OLD = WindowState("w1", "t", "http://h/old", "d1")


@pytest.mark.parametrize(
    ("navigation", "expected"),
    [
        (Navigation(DispatchEnd.COMPLETED, NEW, 200), (None, None, Delivery.DELIVERED_VERIFIED)),
        (Navigation(DispatchEnd.COMPLETED, NEW, 500), (None, None, Delivery.DELIVERED_VERIFIED)),
        (Navigation(DispatchEnd.NO_ANSWER, NEW), (None, None, Delivery.DELIVERED_VERIFIED)),
        (
            Navigation(DispatchEnd.COMPLETED, OLD),
            (Code.ACTION_FAILED, DetailKind.NAVIGATION_FAILED, Delivery.DELIVERED_UNVERIFIED),
        ),
        (
            Navigation(DispatchEnd.COMPLETED, None),
            (Code.ACTION_FAILED, DetailKind.NAVIGATION_FAILED, Delivery.DELIVERED_UNVERIFIED),
        ),
        (
            Navigation(DispatchEnd.NOT_SENT),
            (Code.ACTION_FAILED, DetailKind.NAVIGATION_FAILED, Delivery.NOT_DELIVERED),
        ),
        (
            Navigation(DispatchEnd.NO_ANSWER),
            (Code.TIMEOUT, DetailKind.DISPATCH_TIMEOUT, Delivery.DELIVERY_UNCERTAIN),
        ),
        (
            Navigation(DispatchEnd.NO_ANSWER, dialog=DIALOG),
            (None, DetailKind.PENDING_DIALOG, Delivery.DELIVERED_UNVERIFIED),
        ),
    ],
)
def test_rows_of_a_navigation(navigation: Navigation, expected: tuple[Any, ...]) -> None:
    found = judge_navigation(navigation, read_navigation(navigation, "d1", "http://h/new"))
    assert (found.code, found.kind, found.delivery) == expected


def test_a_navigation_inside_the_document_is_verified_by_its_address() -> None:
    there = Navigation(DispatchEnd.COMPLETED, replace(OLD, url="http://h/old#part"))
    assert read_navigation(there, "d1", "http://h/old#part").satisfied is True
    assert read_navigation(there, "d1", "http://h/old#other").satisfied is False


# --- the retry gate ---------------------------------------------------------------------------------------------------

OK = Attempt(10, 11, Delivery.DELIVERED_UNVERIFIED, ok=True)


@pytest.mark.parametrize(
    ("previous", "unanswered", "newer", "repeat_of", "passes"),
    [
        (None, False, False, None, True),
        (replace(OK, delivery=Delivery.NOT_DELIVERED, ok=False), False, False, None, True),
        (OK, False, False, None, False),
        (OK, False, True, None, True),
        (OK, False, False, 10, False),
        (OK, True, True, None, False),
        (OK, True, True, 10, True),
        (replace(OK, pending_dialog=True), False, True, None, False),
        (replace(OK, pending_dialog=True), False, True, 10, True),
        (replace(OK, ok=False), False, True, None, False),
        (replace(OK, ok=False), False, True, 10, True),
        (replace(OK, ok=False), False, True, 11, True),
        (replace(OK, ok=False), False, True, 9, False),
        (replace(OK, ok=False), False, False, 10, False),
        (replace(OK, result_seq=None), False, True, None, False),
        (replace(OK, delivery=Delivery.DELIVERY_UNCERTAIN, ok=False), False, True, None, False),
        (replace(OK, delivery=Delivery.UNKNOWN, ok=False), False, True, 10, True),
        (replace(OK, delivery=Delivery.DELIVERED_VERIFIED), False, True, None, True),
    ],
)
def test_rows_of_the_retry_gate(
    previous: Attempt | None, unanswered: bool, newer: bool, repeat_of: int | None, passes: bool
) -> None:
    assert judge(previous, unanswered=unanswered, newer_snapshot=newer, repeat_of=repeat_of) is passes


def test_a_snapshot_is_newer_than_the_result_only() -> None:
    for newest, newer in ((9, False), (10, False), (11, False), (12, True)):
        found = retry_gate.decide("f", OK, unanswered=False, newest_snapshot=newest, repeat_of=None)
        assert (found.newer_snapshot, found.passes) == (newer, newer)


def test_what_reached_nothing_does_not_hide_what_did() -> None:
    state = GateState().after("f", OK)
    assert state.after("f", Attempt(20, 21, Delivery.NOT_DELIVERED, ok=False)).attempts["f"] == OK
    later = Attempt(20, 21, Delivery.DELIVERY_UNCERTAIN, ok=False)
    assert state.after("f", later).attempts == {"f": later}


def test_a_repeat_is_recognised_after_a_reload() -> None:
    same = [
        live(document="d9", node="n9", digest="ff"),
        live(url="http://h/orders?page=3&token=x"),
        live(names=NameSources(accessible=Known("APPROVE\u200b"))),
        live(value=Known("other"), box=(5, 5, 5, 5)),
    ]
    assert {fingerprint(CLICK, e, None) for e in [LIVE, *same]} == {fingerprint(CLICK, LIVE, None)}


@pytest.mark.parametrize(
    "evidence",
    [
        live(role="link"),
        live(names=NameSources(accessible=Known("Reject"))),
        live(context=(("row", "Order 1002"),)),
        live(url="http://h/payouts"),
        live(url="https://h/orders"),
        live(destination=Known(Destination(form_action="http://h/a", form_method="POST"))),
        live(destination=Known(Destination(link="http://h/a?id=1"))),
    ],
)
def test_another_control_is_no_repeat(evidence: Evidence) -> None:
    assert fingerprint(CLICK, evidence, None) != fingerprint(CLICK, LIVE, None)


def test_values_and_keys_tell_actions_apart() -> None:
    a, b = value_mac(b"k", "a"), value_mac(b"k", "b")
    assert len({fingerprint(SET, LIVE, m) for m in (a, b, None)}) == 3
    assert value_mac(b"other", "a") != a
    button = live(states={"editable": Known(False)})
    assert fingerprint(ENTER, button, None) == fingerprint(CLICK, button, None)
    assert fingerprint(ENTER, LIVE, None) != fingerprint(CLICK, LIVE, None)


def test_another_way_to_the_same_control_has_its_fingerprint() -> None:
    """A submit that timed out must not go out again by Enter in a field, by the label, or by the icon on the button."""
    to = Known(Destination(form_action="http://127.0.0.1/pay", form_method="POST"))
    names, place = NameSources(accessible=Known("Pay")), (("row", "Order 1001"),)
    button = replace(LIVE, role="button", names=names, context=place, destination=to, paths=())
    itself = fingerprint(CLICK, button, None)
    field = live(role="textbox", context=())

    def passed_on(why: str, *, context: tuple[tuple[str, str], ...] = place) -> tuple[ActivationPath, ...]:
        return (ActivationPath(why, "button", names, to, context),)

    enter = replace(field, paths=passed_on("default_submitter"))
    box = live(role="checkbox", context=(), states={"editable": ABSENT}, paths=passed_on("default_submitter"))
    label = replace(LIVE, role="label", context=(), paths=passed_on("label_control"))
    icon = replace(LIVE, role="img", context=(), paths=passed_on("ancestor"))
    assert fingerprint(ENTER, enter, None) == itself
    assert fingerprint(ENTER, box, None) == itself
    assert fingerprint(CLICK, label, None) == itself
    assert fingerprint(CLICK, icon, None) == itself
    # Another row's button, typing, a blank, and a control of its own inside the button are something else.
    other = replace(field, paths=passed_on("default_submitter", context=(("row", "Order 1002"),)))
    assert fingerprint(ENTER, other, None) != itself
    assert fingerprint(SPACE, enter, None) != itself
    assert fingerprint(SPACE, box, None) != itself
    assert fingerprint(SET, enter, "00") != itself
    link = replace(LIVE, role="link", context=(), paths=passed_on("ancestor"))
    assert fingerprint(CLICK, link, None) != itself


@pytest.mark.parametrize(
    ("method", "state", "open_"),
    [
        ("POST", "pending", True),
        ("GET", "pending", True),
        ("POST", "answered", False),
        ("POST", "failed", True),
        ("GET", "failed", False),
    ],
)
def test_unanswered_requests(method: str, state: str, open_: bool) -> None:
    answered = RequestSeen("POST", "http://h", "causal", "answered")
    assert is_unanswered([answered, RequestSeen(method, "http://h", "causal", state)]) is open_
    assert not is_unanswered([])
