"""Every decision of a run comes out the same from its ledger and blobs alone; and a record that lies is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskcert.adapters.simulator import Simulator
from deskcert.guard.policy import compile_policy
from deskcert.replay.decisions import recompute, recompute_records
from deskcert.session.session import Session
from deskcert.testing import Element, Fault, SimulatedRun, World
from deskcert_ledger import ProjectKey, Record, RunLedger, SystemClock
from deskcert_schema.vocabulary import PipelinePoint

POLICY: dict[str, Any] = {
    "version": 1,
    "deny": [
        {"id": "no-delete", "name": "Delete account"},
        {"id": "no-cards", "value": {"regex": "[0-9]{16}"}},
        {"id": "watch-notes", "name": "Note", "effect": "record_only"},
        {"id": "no-admin", "url": "**/admin"},
    ],
}


def application() -> World:
    return World(
        [
            Element("n1", "order-1", name="Approve", context=(("row", "Order 1001"),)),
            Element("n2", "order-2", name="Approve", context=(("row", "Order 1002"),)),
            Element("n3", "note", role="textbox", name="Note", value="", editable=True),
            Element("n4", "account", name="Delete account"),
            Element("n5", "pin", role="textbox", name="PIN", value="", editable=True, secure=True),
        ]
    )


def counted(rng_state: list[int]) -> Callable[[int], bytes]:
    def rng(n: int) -> bytes:
        rng_state[0] += 1
        return rng_state[0].to_bytes(4, "big").rjust(n, b"\x5a")

    return rng


def start(folder: Path) -> RunLedger:
    key = ProjectKey.load_or_create(folder / "key")
    begin = {"policy": {"digest": "0" * 64, "content": POLICY}}
    return RunLedger.create(
        folder / "run",
        origin="deskcert/test/r1",
        start=begin,
        project_key=key,
        clock=SystemClock(),
        rng=counted([0]),
    )


async def a_run_with_everything(folder: Path) -> Path:
    """A real ledger, written by the real session over the simulated application."""
    ledger, world = start(folder), application()
    session = Session(
        Simulator(world), ledger, compile_policy(POLICY, digest="0" * 64), clock=SystemClock(), rng=counted([999])
    )

    async def refs() -> list[str]:
        seen = await session.handle("snapshot", {})
        return [f"@{seen['data']['snapshot_id']}:e{n}" for n in range(1, 6)]

    async def do(command: str, **args: Any) -> dict[str, Any]:
        return await session.handle(command, {"timeout_ms": 0} | args)

    approve, other, note, delete, pin = await refs()
    assert (await do("click", ref=approve))["ok"]
    assert not (await do("click", ref=approve))["ok"]  # the retry gate
    assert (await do("set-value", ref=note, value="hello"))["ok"]
    assert (await do("set-value", ref=note, value="hello"))["ok"]  # holds already
    assert not (await do("set-value", ref=note, value="4111111111111111"))["ok"]
    assert (await do("set-value", ref=pin, value="1234"))["ok"]
    assert not (await do("click", ref=delete))["ok"]
    world.change("n2", covered_by="Cookies")
    assert not (await do("click", ref=other))["ok"]
    world.change("n2", covered_by=None, unread=frozenset({"name"}))
    assert not (await do("click", ref=other))["ok"]
    world.change("n2", unread=frozenset(), context=(("row", "Order 7"),))
    assert not (await do("click", ref=other))["ok"]
    approve, other, *_ = await refs()
    world.before_dispatch = lambda w: w.change("n2", description="x")
    assert not (await do("click", ref=other))["ok"]
    world.fault = Fault.HANG_AFTER
    timed_out = await do("press", ref=other, key="Enter")
    approve, other, *_ = await refs()
    world.answer_all()
    assert not (await do("click", ref=other))["ok"]
    assert (await do("click", ref=other, repeat_of=timed_out["ledger"]["seq"]))["ok"]
    world.fault = Fault.DIALOG
    assert (await do("click", ref=approve))["ok"]
    world.open_dialog = None
    assert (await session.handle("navigate", {"url": "http://app.test/payouts"}))["ok"]
    assert not (await session.handle("navigate", {"url": "http://app.test/admin"}))["ok"]
    ledger.seal()
    return folder / "run"


async def test_a_real_ledger_gives_the_same_decisions(tmp_path: Path) -> None:
    folder = await a_run_with_everything(tmp_path)
    kinds = [json.loads(line)["kind"] for line in (folder / "ledger.jsonl").read_text().splitlines()]
    assert {"action.denied", "action.refused", "action.intent", "action.result"} <= set(kinds)
    assert recompute(folder) == []


def records(run: SimulatedRun) -> list[Record]:
    return [Record(r.seq, r.kind, "guard", "", 0, json.loads(json.dumps(dict(r.data))), b"") for r in run.records]


def history() -> list[Record]:
    run = SimulatedRun(application(), POLICY)
    approve, _, note, delete, _ = run.snapshot()
    run.act("click", approve)
    run.act("click", approve)
    run.act("click", delete)
    run.act("set-value", note, value="x")
    run.at[PipelinePoint.LEASED] = lambda world: world.change("n2", enabled=False)
    run.act("click", run.snapshot()[1], timeout_ms=0)
    return records(run)


def test_a_history_is_decided_again_in_full() -> None:
    again = recompute_records(iter(history()))
    assert again.differences == ()
    assert again.decisions == 7


LIES: list[tuple[str, str, Callable[[dict[str, Any]], object], str]] = [
    ("action.intent", "name", lambda d: d["evidence"]["names"].update(accessible="Delete account"), "policy.verdict"),
    ("action.intent", "identity", lambda d: d["target"].update(name="Reject"), "identity"),
    ("action.intent", "context", lambda d: d["evidence"].update(context=[]), "identity"),
    ("action.intent", "checks", lambda d: d["actionability"]["checks"][3].update(status="fail"), "checks"),
    ("action.intent", "hidden", lambda d: d["evidence"]["states"].update(visible=False), "actionability"),
    ("action.intent", "fingerprint", lambda d: d.update(fingerprint="0" * 64), "fingerprint"),
    ("action.intent", "rules", lambda d: d["policy"].update(rules_evaluated=1), "policy"),
    ("action.intent", "gate", lambda d: d["gate"].update(newer_snapshot=True), "gate"),
    ("action.result", "delivery", lambda d: d.update(delivery="not_delivered"), "delivery"),
    ("action.result", "retry", lambda d: d.update(retry="safe"), "retry"),
    ("action.result", "ok", lambda d: d.update(ok=False), "ok"),
    ("action.result", "dispatch", lambda d: d["dispatch"].update(end="no_answer"), "code"),
    (
        "action.denied",
        "previous",
        lambda d: d["gate"].update(previous={"seq": 1, "delivery": "unknown", "ok": False}),
        "gate",
    ),
    ("action.denied", "kind", lambda d: d.update(detail_kind="forbidden_name"), "kind"),
    ("action.refused", "checks", lambda d: d["evidence"]["states"].update(enabled=True), "actionability"),
    ("action.refused", "code", lambda d: d.update(detail_kind="x"), "actionability"),
    ("action.intent", "lost", lambda d: d.pop("evidence"), "record"),
]


@pytest.mark.parametrize(("kind", "what", "lie", "found"), LIES, ids=[f"{k}-{w}" for k, w, _, _ in LIES])
def test_a_record_that_lies_is_found(kind: str, what: str, lie: Callable[[dict[str, Any]], object], found: str) -> None:
    told = history()
    first = next(r for r in told if r.kind == kind)
    lie(first.data)
    differences = recompute_records(iter(told)).differences
    assert (first.seq, found) in {(d.seq, d.what) for d in differences}


def test_another_policy_decides_otherwise() -> None:
    told = history()
    told[0].data["policy"]["content"] = {"version": 1, "deny": [{"id": "no-approve", "name": "Approve"}]}
    whats = {d.what for d in recompute_records(iter(told)).differences}
    assert "policy.verdict" in whats
