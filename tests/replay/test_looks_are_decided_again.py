"""Every look of every wait is decided again: what it saw is in the record, and what followed from it must follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from replay_histories import POLICY, Waiting, application, as_session, records

from deskcert.contract.evidence import Known
from deskcert.guard import actionability, identity, policy, retry_gate
from deskcert.replay import decisions, looks
from deskcert.replay.decisions import recompute_records
from deskcert.replay.looks import looks_of
from deskcert.testing import Fault, SimulatedRun, World
from deskcert_ledger import Record

LOOKS: dict[int, Callable[[World], None]] = {
    0: lambda w: w.change("n1", enabled=False),
    1: lambda w: w.change("n1", covered_by="Cookies"),
    2: lambda w: w.change("n1", unread=frozenset({"name"})),
    3: lambda w: w.change("n1", unread=frozenset(), enabled=True, covered_by="Cookies"),
    4: lambda w: w.change("n1", covered_by=None),
    5: lambda w: w.change("n1", enabled=False),
    6: lambda w: w.change("n1", enabled=True),
}


def a_long_wait(script: dict[int, Callable[[World], None]] | None = None, **how: Any) -> list[Record]:
    elements = [application().find(n) for n in ("n1", "n2", "n3", "n4", "n5")]
    world = Waiting([e for e in elements if e is not None], LOOKS if script is None else script)
    run = SimulatedRun(world, POLICY)
    run.act("click", run.snapshot()[0], **({"timeout_ms": 5_000} | how))
    return records(run)


def only(told: list[Record], kind: str) -> Record:
    (found,) = (r for r in told if r.kind == kind)
    return found


def test_a_wait_that_changed_at_every_look_comes_out_the_same() -> None:
    told = a_long_wait()
    again = recompute_records(iter(told))
    assert again.differences == ()
    assert again.looks_without_evidence == 0
    # Five looks of a wait, a failing and a good look under the lease, and the wait between them.
    assert again.looks == 8


def test_each_look_holds_what_the_application_showed_then() -> None:
    seen = list(looks_of(only(a_long_wait(), "action.intent").data))
    enabled = [s.evidence.states["enabled"] if s.evidence else None for s in seen]
    assert enabled == [Known(False)] * 3 + [Known(True)] * 2 + [Known(False), Known(True), Known(True)]
    assert [s.evidence.hit_test.status if s.evidence else "" for s in seen][:5] == [
        "pass",
        "fail",
        "fail",
        "fail",
        "pass",
    ]


def test_one_look_costs_the_record_no_evidence_twice() -> None:
    told = a_long_wait({})
    for look in only(told, "action.intent").data["actionability"]["looks"]:
        assert "evidence" not in look["changed"]
    assert recompute_records(iter(told)).differences == ()


ENDS: list[tuple[str, Callable[[World], None], str]] = [
    ("renamed", lambda w: w.change("n1", name="Reject"), "action.refused"),
    ("forbidden", lambda w: w.change("n1", description="Delete account"), "action.denied"),
    ("read-only", lambda w: w.change("n1", unread=frozenset({"name"})), "action.refused"),
]


@pytest.mark.parametrize(("what", "last", "kind"), ENDS, ids=[e[0] for e in ENDS])
def test_waits_that_end_otherwise(what: str, last: Callable[[World], None], kind: str) -> None:
    told = a_long_wait({0: lambda w: w.change("n1", enabled=False), 2: last}, timeout_ms=400)
    again = recompute_records(iter(told))
    assert only(told, kind).seq == 2
    assert again.differences == ()
    assert again.looks > 2


def lies() -> Iterator[tuple[str, Callable[[list[dict[str, Any]]], object], str]]:
    yield "a status", lambda looks: looks[1]["changed"].update(receives_events="pass"), "look 1: checks"
    yield (
        "evidence",
        lambda looks: looks[1]["changed"]["evidence"].update(hit_test={"status": "pass"}),
        "look 1: checks",
    )
    yield "a name", lambda looks: looks[1]["changed"]["evidence"].update(role="link"), "look 1: identity"
    yield "a look left out", lambda looks: looks.pop(), "looks: intents that they lead to"
    yield (
        "a look in time said to be late",
        lambda looks: looks[-1].update(t_us=9_000_000),
        "looks: intents that they lead to",
    )
    yield "an end in the middle", lambda looks: looks[2]["changed"].update(probe="gone: x"), "look 2"


@pytest.mark.parametrize(("what", "lie", "found"), list(lies()), ids=[x[0] for x in lies()])
def test_a_look_that_lies_is_found(what: str, lie: Callable[[list[dict[str, Any]]], object], found: str) -> None:
    told = a_long_wait()
    intent = only(told, "action.intent")
    lie(intent.data["actionability"]["looks"])
    differences = recompute_records(iter(told)).differences
    assert (intent.seq, found) in {(d.seq, d.what) for d in differences}


def test_a_ledger_without_the_looks_evidence_says_so() -> None:
    told = a_long_wait()
    for look in only(told, "action.intent").data["actionability"]["looks"]:
        look["changed"].pop("evidence", None)
    again = recompute_records(iter(told))
    assert again.differences == ()
    assert again.looks_without_evidence > 0


def everything() -> list[Record]:
    run = SimulatedRun(application(), POLICY)
    approve, other, note, delete, _ = run.snapshot()
    run.act("click", approve)
    run.act("click", approve)
    run.act("click", delete)
    run.act("set-value", note, value="x")
    run.world.change("n2", covered_by="Cookies")
    run.act("click", other, timeout_ms=0)
    run.world.change("n2", covered_by=None)
    run.world.fault = Fault.HANG_AFTER
    run.act("click", run.snapshot()[1])
    run.navigate("http://app.test/x")
    return records(run)


def _deny_all(rules: policy.Policy, subject: policy.Subject) -> policy.Verdict:
    return policy.Deny("broken", policy.DetailKind.FORBIDDEN_NAME, "", policy.Source("target", "name", "fold"))


PLANTED: list[tuple[str, Any, str, Any, str]] = [
    ("policy", policy, "decide", lambda old: _deny_all, "action.intent"),
    ("policy lets through", policy, "decide", lambda old: lambda r, s: policy.Allow((), 2), "action.denied"),
    ("identity", identity, "compare_saved", lambda old: lambda s, e: identity.Changed(("name",)), "action.intent"),
    (
        "actionability",
        actionability,
        "judge",
        lambda old: lambda a, e, m: actionability.Report(old(a, e, m).checks[:-1]),
        "action.intent",
    ),
    (
        "actionability's verdict",
        actionability,
        "verdict_of",
        lambda old: lambda r: actionability.Ready(),
        "action.refused",
    ),
    ("the gate", retry_gate, "judge", lambda old: lambda p, **how: True, "action.denied"),
    ("the fingerprint", retry_gate, "fingerprint", lambda old: lambda *a: "0" * 64, "action.intent"),
    (
        "the fingerprint of a navigation",
        retry_gate,
        "navigation_fingerprint",
        lambda old: lambda u: "0" * 64,
        "action.intent",
    ),
    ("delivery", decisions, "judge_dispatch", lambda old: lambda d, v: decisions.nothing_sent(), "action.result"),
    (
        "delivery of a navigation",
        decisions,
        "judge_navigation",
        lambda old: lambda d, v: decisions.nothing_sent(),
        "action.result",
    ),
]


@pytest.mark.parametrize(("what", "where", "name", "broken", "kind"), PLANTED, ids=[p[0] for p in PLANTED])
def test_a_changed_decision_function_is_told_at_the_record_it_decided(
    monkeypatch: pytest.MonkeyPatch, what: str, where: Any, name: str, broken: Any, kind: str
) -> None:
    told = everything()
    assert recompute_records(iter(told)).differences == ()
    monkeypatch.setattr(where, name, broken(getattr(where, name)))
    differences = recompute_records(iter(told)).differences
    kinds = {r.seq: r.kind for r in told}
    assert kind in {kinds[d.seq] for d in differences}
    # Nothing else is blamed: navigation has no element, and a record without decisions has no difference.
    assert {kinds[d.seq] for d in differences} <= {"action.intent", "action.denied", "action.refused", "action.result"}


def test_looks_module_uses_the_guards_own_functions() -> None:
    assert looks.identity is identity
    assert looks.actionability is actionability


async def test_names_too_long_for_a_line_are_decided_again(tmp_path: Path) -> None:
    world = application()
    world.change("n1", name="Approve " * 2_000)
    session, ledger = as_session(tmp_path, world)
    seen = await session.handle("snapshot", {})
    assert (await session.handle("click", {"ref": f"@{seen['data']['snapshot_id']}:e1", "timeout_ms": 0}))["ok"]
    ledger.seal()
    assert len(list((tmp_path / "run" / "blobs").iterdir())) > 1
    assert decisions.recompute(tmp_path / "run") == []
