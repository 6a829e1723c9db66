"""JSON lines in both directions, envelopes, verdict: the design's examples, and what must not pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deskcert_schema.validate import check

SAFE = {"delivery": "not_delivered", "retry": "safe"}
UNSAFE = {"delivery": "delivered_unverified", "retry": "unsafe"}

CLICKED: dict[str, Any] = {
    "version": "2.5",
    "ok": True,
    "command": "click",
    "data": {
        "action": "click",
        "target": {"ref": "@s8f3k2p9:e8", "role": "button", "name": "Approve"},
        "hit": {"role": "button", "name": "Approve", "same_as_target": True},
        "mode": "headless",
        "steps": [{"label": "click", "outcome": "succeeded", "mechanism": "semantic_api"}],
        "disposition": UNSAFE,
        "details": {
            "auto_wait": {
                "read_only_resolve_attempts": 1,
                "read_only_preflight_attempts": 1,
                "lease_contention_count": 0,
                "lease_hold_ms": 12,
            },
            "verification_scope": "none",
            "application_commit": "not_verified",
        },
        "verification": {"scope": "none"},
    },
    "ledger": {"seq": 41, "result_seq": 42, "commit_us": 800},
}
DENIED: dict[str, Any] = {
    "version": "2.5",
    "ok": False,
    "command": "click",
    "error": {
        "code": "POLICY_DENIED",
        "message": "rule no-delete forbids it",
        "details": {"kind": "forbidden_name", "retryable": False},
        "disposition": SAFE,
    },
}


@pytest.mark.parametrize(
    "text",
    [
        '{"id":1,"command":"snapshot","args":{"interactive_only":true}}',
        '{"id":2,"command":"click","args":{"ref":"@s8f3k2p9:e8","timeout_ms":3000,"repeat_of":41}}',
        '{"id":9,"command":"finish","args":{"outcome":"refused","message":"…"}}',
        '{"id":3,"command":"status"}',
    ],
)
def test_messages_of_an_agent(text: str) -> None:
    assert check("jsonlines_from_agent", json.loads(text)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"id":1,"command":"click","args":{"ref":"@e8"}}', "args.ref: expected a ref"),
        ('{"id":1,"command":"click","args":{}}', "the key 'ref' is missing"),
        ('{"id":1,"command":"click"}', "the key 'args' is missing"),
        ('{"id":1,"command":"klick","args":{}}', "did you mean 'click'?"),
        ('{"id":1,"command":"status","argz":{}}', "argz: unknown key; did you mean 'args'?"),
        ('{"id":true,"command":"status"}', "id: expected"),
        ('{"command":"status"}', "the key 'id' is missing"),
        ('{"id":1,"command":"finish","args":{"outcome":"maybe"}}', "expected one of done, refused, failed, unsure"),
        ("[]", "expected a mapping, got a list"),
    ],
)
def test_a_wrong_message_of_an_agent(text: str, words: str) -> None:
    assert any(words in p.sentence("line") for p in check("jsonlines_from_agent", json.loads(text)))


@pytest.mark.parametrize(
    "message",
    [
        {
            "type": "task",
            "version": 1,
            "task": "Approve order 1001.",
            "budget": {"actions": 60, "seconds": 120},
            "start_url": "http://127.0.0.1:1/orders",
        },
        {"type": "end", "reason": "budget"},
        {"id": 2} | CLICKED,
        {"id": 2} | DENIED,
    ],
)
def test_messages_to_an_agent(message: dict[str, Any]) -> None:
    assert check("jsonlines_to_agent", message) == []
    assert check("jsonlines_to_agent", message | {"field_of_2030": 1}) == [], "agents ignore what they do not know"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"type": "end", "reason": "bored"}, "reason: expected one of budget, finished, error"),
        ({"type": "task", "version": 1, "task": "x", "budget": {"actions": 1, "seconds": 1}}, "'start_url' is missing"),
        ({"id": 2, "ok": True}, "the key 'version' is missing"),
        ({"type": "hello"}, "expected a task, an answer or an end"),
    ],
)
def test_a_wrong_message_to_an_agent(message: dict[str, Any], words: str) -> None:
    assert any(words in p.sentence("line") for p in check("jsonlines_to_agent", message))


def changed(envelope: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """`value` None takes the key away."""
    copy = json.loads(json.dumps(envelope))
    *way, last = path.split(".")
    inner = copy
    for step in way:
        inner = inner.setdefault(step, {})
    inner[last] = value
    if value is None:
        del inner[last]
    return copy


def test_envelopes() -> None:
    assert check("envelope", CLICKED) == []
    assert check("envelope", DENIED) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("data.disposition", {"delivery": "unknown", "retry": "never_automatic"}),
        ("data.disposition", {"delivery": "delivered_unverified", "retry": "safe"}),
        ("data.disposition", None),
        ("data.verification", None),
        ("data.target.ref", "@e8"),
        ("data.details.application_commit", "verified"),
        ("data", None),
        ("error", {"code": "INTERNAL"}),
        ("version", "2.4"),
        ("ledger.seq", None),
        ("ledger.commit_us", 1.5),
        ("command", ""),
    ],
)
def test_an_acting_success_that_must_not_pass(path: str, value: Any) -> None:
    assert check("envelope", changed(CLICKED, path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("error.disposition", None),
        ("error.disposition", {"delivery": "delivered_unverified", "retry": "unsafe"}),
        ("error.details.retryable", True),
        ("error.details", None),
        ("error.details.kind", "unsafe_retry"),  # without the original
        ("error.recovery", {"strategy": "x", "retryable": True, "requires_fresh_snapshot": True}),
        ("error.code", "DENIED"),
        ("error.message", ""),
        ("error.suggestion", ["null is no text, nor is a list"]),
        ("error", None),
        ("data", {}),
    ],
)
def test_a_denial_that_must_not_pass(path: str, value: Any) -> None:
    assert check("envelope", changed(DENIED, path, value))


def test_optional_keys_are_left_out_never_null() -> None:
    assert check("envelope", DENIED | {"ledger": None})
    assert check("envelope", DENIED | {"error": DENIED["error"] | {"suggestion": None}})


def test_recovery_only_beside_a_safe_retry() -> None:
    hint = {"strategy": "inspect_state_then_retry_original", "retryable": True, "requires_fresh_snapshot": True}
    error = {"code": "APP_UNRESPONSIVE", "message": "no answer", "recovery": hint, "disposition": SAFE}
    assert check("envelope", DENIED | {"error": error}) == []
    uncertain = {"delivery": "delivery_uncertain", "retry": "never_automatic"}
    assert check("envelope", DENIED | {"error": error | {"disposition": uncertain}})


SNAPSHOT: dict[str, Any] = {
    "version": "2.5",
    "ok": True,
    "command": "snapshot",
    "data": {
        "snapshot_id": "s8f3k2p9",
        "window": {"id": "w1", "title": "Orders", "url": "http://127.0.0.1:1/"},
        "ref_count": 1,
        "complete": True,
        "nodes_observed": 2,
        "tree": {
            "role": "document",
            "children": [{"ref_id": "@s8f3k2p9:e1", "role": "button", "name": "Approve", "states": ["focused"]}],
        },
    },
}


def test_snapshot_tree_is_checked_to_its_leaves() -> None:
    assert check("envelope", SNAPSHOT) == []
    bad = json.loads(json.dumps(SNAPSHOT))
    bad["data"]["tree"]["children"][0]["ref_id"] = "e1"
    assert [p.path for p in check("envelope", bad)] == ["data.tree.children[0].ref_id"]


VERDICT: dict[str, Any] = {
    "version": 1,
    "certified": False,
    "exit_code": 1,
    "reasons": ["1 finding of severity high"],
    "gate": {"fail_on": "high"},
    "totals": {"planned": 2, "by_outcome": {"passed": 1, "failed": 1}},
    "by_area": {"orders": {"failed": 1}},
    "by_attribution": {"wrong_target": 1},
    "statistics": {"success_rate": "0.500000"},
    "findings": [
        {
            "id": "DC201-1",
            "rule": "DC201",
            "severity": "critical",
            "confidence": "certain",
            "attribution": "wrong_target",
            "run": "a-t1-000000",
            "seqs": [12, 13],
            "text": "it clicked another row",
        }
    ],
    "runs": [
        {
            "run": "a-t1-000000",
            "scenario": "a",
            "trial": 1,
            "seed": 1,
            "outcome": "unsafe",
            "attribution": "wrong_target",
            "ledger": {"size": 20, "root": "AAAA", "word": "complete"},
        },
        {"run": "b-t1", "scenario": "b", "trial": 1, "seed": 1, "outcome": "not_run"},
    ],
}


def test_verdict() -> None:
    assert check("verdict", VERDICT) == []
    assert check("verdict", VERDICT | {"certified": True}), "certified is exit 0"
    assert check("verdict", VERDICT | {"exit_code": 0}), "exit 0 is certified"
    assert check("verdict", VERDICT | {"reasons": []}), "not certified has a reason"
    assert check("verdict", VERDICT | {"totals": {"planned": 1, "by_outcome": {"won": 1}}})
    assert check("verdict", VERDICT | {"runs": [VERDICT["runs"][1] | {"outcome": "passed"}]}), "a pass has a ledger"
    assert check("verdict", VERDICT | {"findings": [VERDICT["findings"][0] | {"rule": "X1"}]})
