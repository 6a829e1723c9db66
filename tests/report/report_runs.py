"""Run folders for the report: a page that attacks its readers, and a run of any length."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from scoring_runs import Suite, Ticking
from scoring_talk import start

from deskcert_ledger import Ack, Blob, RunLedger

EVIL = "</script><img src=x onerror=\"document.title='owned'\"><b id=owned>\x1b[31m\u202eevil\u0000\ud800 D\u0435lete"


def target(name: str) -> dict[str, Any]:
    return {
        "ref": "@s1:e1",
        "role": "button",
        "name": name,
        "document": "d",
        "node": "n1",
        "by": "name",
        "context": [["row", EVIL]],
    }


def evil_run(out: Path) -> Suite:
    """Every text that a page or an agent can supply is hostile, and one name is a megabyte long."""
    suite = Suite(out, scenarios=("notes-evil",))
    nodes = [
        {
            "d": 0,
            "node": "n1",
            "role": "button",
            "name": EVIL,
            "box": [10000, 10000, 90000, 30000],
            "states": [EVIL],
            "ref": 1,
        },
        {
            "d": 0,
            "node": "n2",
            "role": "button",
            "name": "x" * 1_000_000,
            "box": [10000, 50000, 90000, 30000],
            "ref": 2,
        },
    ]
    window = {"id": "w", "title": EVIL, "url": "javascript:alert(1)", "document": "d"}
    suite.run(
        {
            "kind": "observation",
            "snapshot_id": "s1",
            "complete": True,
            "nodes": 2,
            "window": window,
            "options": {},
            "tree": Blob({"nodes": nodes}),
            "observe_us": 1,
        },
        {
            "kind": "action.denied",
            "command": "click",
            "args": {"ref": "@s1:e1"},
            "action": 1,
            "target": target(EVIL),
            "rule": "no-evil",
            "detail_kind": "forbidden_name",
            "reason": EVIL,
            "source": {"via": "target", "field": "accessible", "form": EVIL},
            "evidence": {},
            "snapshot_seq": 1,
            "policy": {"digest": "0" * 64},
            "phases_us": {},
        },
        {
            "kind": "action.refused",
            "command": EVIL,
            "args": {EVIL: EVIL},
            "code": "INVALID_ARGS",
            "phase": "parse",
            "action": 2,
        },
        {
            "kind": "action.denied",
            "command": "click",
            "args": {"ref": "@s1:e2"},
            "action": 3,
            "target": target("x" * 1_000_000),
            "rule": "no-evil",
            "detail_kind": "forbidden_name",
            "reason": "",
            "source": {"via": "target", "field": "accessible", "form": "fold"},
            "evidence": {},
            "snapshot_seq": 1,
            "policy": {"digest": "0" * 64},
            "phases_us": {},
        },
        {"kind": "claim", "outcome": "done", "message": EVIL},
        {"kind": "run.end", "outcome": "finished", "reason": EVIL, "effects_log": "enabled", "harness_ok": True},
        scenario="notes-evil",
        title=EVIL,
        start_more={"instruction": EVIL},
    )
    return suite


def long_run(out: Path, records: int) -> Path:
    """A sealed run of `records` records and `run.end`: looks, and a click with its result, one in fifty denied."""
    suite = Suite(out, scenarios=("orders-long",))
    told = start(id="orders-long", area="orders")
    del told["kind"], told["origin"]
    name = "orders-long-t1-aaaaaa"
    ledger = RunLedger.create(
        out / "runs" / name,
        origin=f"deskcert/test/{name}",
        start=told
        | {
            "run": name,
            "seed": suite.seed(1),
            "plan": suite.planned(),
            "gate": {},
            "suite": {"name": "s", "digest": "1" * 64},
        },
        project_key=suite.key,
        clock=Ticking(),
        rng=random.Random(1).randbytes,
    )
    button = target("Approve") | {"context": [["row", "Order 1001"]]}
    for seq in range(1, records):
        if seq % 3 == 1:
            window = {"id": "w", "title": f"Orders, page {seq}", "url": "http://app.test/orders", "document": "d"}
            payload = {"snapshot_id": f"s{seq}", "complete": True, "nodes": 60, "window": window}
            ledger.submit("observation", payload, ack=Ack.ORDERED)
        elif seq % 3 == 2:
            intent = {"command": "click", "args": {"ref": "@s1:e1"}, "action": seq, "target": button, "snapshot_seq": 1}
            denied = {"rule": "no-approve", "kind": "forbidden_name", "reason": "not today", "source": {}}
            kind = "action.denied" if seq % 50 == 0 else "action.intent"
            ledger.submit(kind, intent | (denied if seq % 50 == 0 else {}), ack=Ack.ORDERED)
        elif (seq - 1) % 50 == 0:
            ledger.submit("agent.event", {"event": "output"}, ack=Ack.ORDERED)
        else:
            result = {"of": seq - 1, "ok": True, "delivery": "delivered_unverified", "retry": "unsafe", "phases_us": {}}
            ledger.submit("action.result", result, ack=Ack.ORDERED)
    end = {"outcome": "finished", "reason": "the end", "effects_log": "enabled", "harness_ok": True}
    ledger.append("run.end", end)
    ledger.seal()
    return ledger.folder
