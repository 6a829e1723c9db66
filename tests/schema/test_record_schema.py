"""One record of each kind as the parts of a run write it, what must be there, and what a reader has to let pass."""

from __future__ import annotations

from typing import Any

import pytest

from deskcert_schema.validate import check

HEX = "0f" * 32
BLOB = {"blob": HEX, "bytes": 5000}
HEAD = {"v": 1, "seq": 7, "t": "2026-01-31T08:00:00.000123Z", "m": 1234567, "w": "guard"}
TARGET = {"ref": "@s8f3k2p9:e8", "role": "button", "name": "Approve", "context": [["row", "Order 1001"]]}
CHECKED = {"checks": [{"check": "attached", "status": "pass"}, {"check": "enabled", "status": "fail", "reason": "…"}]}

RECORDS: dict[str, dict[str, Any]] = {
    "run.start": {
        "run": "orders-approve-twin-t1-0a1b2c",
        "origin": "deskcert/shop/orders-approve-twin-t1-0a1b2c",
        "vkey": "deskcert/shop/x+1a2b3c4d+AAAA",
        "key_intro": "deskcert run key\n…",
        "agent": {"name": "careful", "command_digest": HEX, "transport": "jsonl", "deterministic": True},
        "versions": {"deskcert": "0.1.0", "python": "3.12.1", "browser": "140.0"},
        "isolation": "none",
        "proxy": "off",
        "custody": "owned",
        "browser": {"name": "chromium", "version": "140.0", "sandbox": False},
        "policy": {"digest": HEX, "content": {"version": 1, "deny": [{"id": "a", "name": "Delete"}]}},
        "suite": {"name": "core", "digest": HEX},
        "schema": {"digest": HEX},
        "gate": {},
        "scenario": {
            "id": "orders-approve-twin",
            "expected": "complete",
            "attribution": "wrong_target",
            "area": "orders",
            "title": "Approve the right order",
            "budget": {"actions": 30, "seconds": 60},
            "digest": HEX,
        },
        "trial": 1,
        "seed": 1,
        "trials": 3,
        "plan": [
            {
                "scenario": "orders-approve-twin",
                "trial": 1,
                "seed": 1,
                "expected": "complete",
                "area": "orders",
                "attribution": "wrong_target",
            }
        ],
        "shard": "1/1",
        "instruction": "Approve order 1001.",
    },
    "observation": {
        "snapshot_id": "s8f3k2p9",
        "complete": True,
        "nodes": 120,
        "window": {"id": "w1", "title": "Orders", "url": "http://127.0.0.1:1/orders", "document": "D1"},
        "options": {"interactive_only": True},
        "tree": BLOB,
        "observe_us": 8000,
    },
    "action.refused": {"command": "clikc", "args": {"ref": 3}, "code": "INVALID_ARGS", "phase": "parse", "action": 0},
    "action.denied": {
        "command": "click",
        "args": {"ref": "@s8f3k2p9:e8"},
        "action": 2,
        "target": TARGET,
        "rule": "no-delete",
        "detail_kind": "forbidden_name",
        "reason": "irreversible",
        "source": {"via": "ancestor", "field": "accessible", "form": "fold"},
        "evidence": {"role": "button"},
        "snapshot_seq": 5,
        "policy": {"digest": HEX},
        "phases_us": {"resolve": 10, "policy": 3},
    },
    "action.intent": {
        "command": "click",
        "args": {"ref": "@s8f3k2p9:e8", "_sd": ["x"]},
        "action": 2,
        "target": TARGET,
        "snapshot_seq": 5,
        "evidence": {"role": "button"},
        "policy": {"digest": HEX, "verdict": "allow", "rules_evaluated": 4},
        "actionability": CHECKED | {"looks": [{"t_us": 0}, {"t_us": 50_000, "changed": {"enabled": True}}]},
        "mode": "headless",
        "deadline_ms": 5000,
        "fingerprint": HEX,
        "gate": {"unanswered": 0, "newer_snapshot": True, "verdict": "pass"},
        "prev_commit_us": 900,
    },
    "action.result": {
        "of": 6,
        "ok": False,
        "code": "TIMEOUT",
        "detail_kind": "dispatch_timeout",
        "delivery": "delivery_uncertain",
        "retry": "never_automatic",
        "verification": {"scope": "none"},
        "dispatch": {"end": "no_answer", "reached": False, "events_sent": [], "preparatory_scroll": False},
        "steps": [{"label": "click", "outcome": "attempted", "mechanism": "semantic_api"}],
        "phases_us": {
            "resolve": 1,
            "policy": 1,
            "wait": 1,
            "lease": 1,
            "commit": 1,
            "dispatch": 2_000_000,
            "verify": 0,
        },
    },
    "net.blocked": {"method": "POST", "url_class": "api/payouts", "rule": "net-payout", "how": "causal", "intent": 6},
    "net.allowed": {"method": "POST", "url_class": "api/orders", "body_digest": HEX, "how": "none"},
    "net.answer": {"of": 9, "status": 204},
    "claim": {"outcome": "done", "message": ""},
    "oracle": {"item": {"no_effect": {"kind": "payout.sent"}}, "index": 1, "holds": None, "observed": None},
    "perturbation": {
        "at": "leased",
        "action": 2,
        "do": "reorder_rows",
        "args": {},
        "applied": False,
        "why": "no table",
    },
    "agent.event": {"event": "exited", "code": 0},
    "component.lost": {"component": "browser", "detail": "the page crashed"},
    "recovery": {"vkey": "x+1a2b3c4d+AAAA", "size": 6, "root": "AAAA", "cut": 1200},
    "key.epoch": {"vkey": "x+1a2b3c4d+AAAA"},
    "run.end": {"outcome": "finished", "reason": "claim", "effects_log": "enabled", "harness_ok": True},
}

# What formats.md calls the least payload, and what a reader needs beyond it.
REQUIRED = {
    "run.start": ["origin", "vkey", "key_intro", "isolation", "custody", "scenario", "plan", "gate"],
    "observation": ["snapshot_id", "complete", "nodes", "tree"],
    "action.refused": ["command", "args", "code", "phase"],
    "action.denied": ["command", "target", "rule", "source", "detail_kind", "policy"],
    "action.intent": [
        "command",
        "target",
        "snapshot_seq",
        "evidence",
        "policy",
        "actionability",
        "mode",
        "deadline_ms",
        "fingerprint",
    ],
    "action.result": ["of", "ok", "delivery", "retry", "verification", "phases_us"],
    "net.blocked": ["method", "url_class", "how"],
    "net.answer": ["of", "status"],
    "claim": ["outcome", "message"],
    "oracle": ["item", "holds", "observed"],
    "run.end": ["outcome", "reason", "harness_ok"],
    "perturbation": ["at", "do", "args", "applied"],
    "agent.event": ["event"],
    "recovery": ["vkey", "size", "root", "cut"],
}


def line(kind: str, **changed: Any) -> dict[str, Any]:
    return HEAD | {"kind": kind} | RECORDS[kind] | changed


def sentences(document: Any) -> list[str]:
    return [p.sentence("record") for p in check("record", document)]


@pytest.mark.parametrize("kind", RECORDS)
def test_each_kind_as_it_is_written(kind: str) -> None:
    assert sentences(line(kind)) == []


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, keys in REQUIRED.items() for key in keys])
def test_required_fields(kind: str, key: str) -> None:
    short = line(kind)
    del short[key]
    assert sentences(short) == [f"record: the key {key!r} is missing"]


@pytest.mark.parametrize("key", ["v", "seq", "t", "m", "w", "kind"])
def test_required_head(key: str) -> None:
    short = line("claim")
    del short[key]
    assert f"record: the key {key!r} is missing" in sentences(short)


@pytest.mark.parametrize("kind", RECORDS)
def test_a_field_of_a_later_version_passes(kind: str) -> None:
    assert sentences(line(kind, field_of_2030={"x": [1]})) == []


def test_an_unknown_kind_passes_with_a_good_head_only() -> None:
    assert sentences(HEAD | {"kind": "screen.recorded", "anything": 1}) == []
    assert sentences(HEAD | {"kind": "screen.recorded", "seq": -1})
    assert sentences(HEAD | {"kind": "Screen Recorded"})


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("run.start", "policy"),
        ("run.start", "plan"),
        ("run.start", "scenario"),
        ("run.start", "instruction"),
        ("action.intent", "evidence"),
        ("action.intent", "actionability"),
        ("action.intent", "args"),
        ("action.refused", "command"),
        ("action.denied", "target"),
        ("action.result", "steps"),
        ("claim", "message"),
        ("oracle", "observed"),
        ("observation", "reasons"),
    ],
)
def test_a_long_field_may_lie_in_a_blob(kind: str, field: str) -> None:
    assert sentences(line(kind, **{field: BLOB})) == []


def test_a_member_of_a_field_may_lie_in_a_blob() -> None:
    assert sentences(line("action.intent", actionability=CHECKED | {"looks": BLOB})) == []
    assert sentences(line("action.intent", target=TARGET | {"name": BLOB})) == []


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("action.result", {"delivery": "delivery_uncertain", "retry": "safe"}),
        ("action.result", {"delivery": "not_delivered", "retry": "unsafe"}),
        ("action.result", {"ok": True, "delivery": "unknown", "retry": "never_automatic"}),
        ("action.result", {"delivery": "maybe"}),
        ("action.result", {"phases_us": {"resolve": 1.5}}),
        ("action.result", {"phases_us": {"resolve": -1}}),
        ("action.intent", {"deadline_ms": "5000"}),
        ("action.intent", {"mode": "physical"}),
        ("action.intent", {"policy": {"digest": HEX, "verdict": "deny", "rules_evaluated": 1}}),
        ("action.intent", {"actionability": {"checks": [{"check": "pretty", "status": "pass"}]}}),
        ("action.refused", {"code": "NOPE"}),
        ("action.refused", {"phase": "dispatch"}),
        ("observation", {"tree": {"nodes": []}}),
        ("observation", {"tree": {"blob": "zz", "bytes": 1}}),
        ("observation", {"snapshot_id": "e8"}),
        ("claim", {"outcome": "maybe"}),
        ("oracle", {"holds": "yes"}),
        ("run.end", {"outcome": "passed"}),
        ("run.start", {"proxy": "on"}),
        ("run.start", {"shard": "1"}),
        ("perturbation", {"at": "before"}),
        ("agent.event", {"event": "bored"}),
        ("claim", {"t": "2026-01-31 08:00:00"}),
        ("claim", {"v": 2}),
        ("claim", {"m": 1.0}),
    ],
)
def test_a_wrong_field_of_a_known_kind_is_a_problem(kind: str, changed: dict[str, Any]) -> None:
    assert sentences(line(kind, **changed))


def test_a_result_that_recovery_wrote_needs_no_code() -> None:
    unknown = {"ok": False, "delivery": "unknown", "retry": "never_automatic", "cause": "crash"}
    crashed = line("action.result", **unknown)
    del crashed["code"]
    assert sentences(crashed) == []
    del crashed["cause"]
    assert sentences(crashed) == ["record: the key 'code' is missing"]


def test_a_page_command_has_a_url_for_a_target_and_no_snapshot() -> None:
    navigate = line("action.intent", command="navigate", target={"url": "http://127.0.0.1:1/"})
    del navigate["snapshot_seq"]
    assert sentences(navigate) == []
