"""One in a hundred of the actions of `make evidence ONLY=web`: only what was meant, by the application's own log."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from deskcert_schema.vocabulary import PipelinePoint
from scripts.evidence_web import GOAL, NEVER_ACTED_ON, Try, actions, judge


@pytest.mark.web
@pytest.mark.evidence
def test_random_actions_on_a_changing_page_meet_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    seed = secrets.randbits(32)
    with capsys.disabled():
        print(f"\nweb evidence: seed {seed}")
    found = actions(f"{seed}/actions/0", GOAL // 100)
    assert found.failures == []
    assert found.done == GOAL // 100
    assert found.counts["perturbed"] >= GOAL // 400
    assert found.counts["effects"] >= GOAL // 1000


def wanted(do: str, at: PipelinePoint = PipelinePoint.LEASED, command: str = "click") -> Try:
    return Try(1002, "Approve", command, do, {}, at)


RIGHT = {"kind": "order.approved", "id": 1002}
DONE: dict[str, Any] = {"ok": True, "data": {"disposition": {"delivery": "delivered_unverified"}}}


def test_a_wrong_a_second_and_a_stale_effect_are_each_a_failure() -> None:
    assert judge(wanted("nothing"), None, DONE, [RIGHT]) is None
    assert "wrong target" in str(judge(wanted("nothing"), None, DONE, [{**RIGHT, "id": 1003}]))
    assert "wrong target" in str(judge(wanted("nothing"), None, DONE, [{**RIGHT, "kind": "order.cancelled"}]))
    assert "more than one" in str(judge(wanted("rename"), True, DONE, [RIGHT, RIGHT]))
    for do in NEVER_ACTED_ON:
        assert "acted on" in str(judge(wanted(do), True, DONE, [RIGHT]))
        assert judge(wanted(do, PipelinePoint.VERIFIED), True, DONE, [RIGHT]) is None


def test_an_effect_that_was_not_announced_is_a_failure() -> None:
    refused = {"ok": False, "error": {"code": "STALE_REF", "disposition": {"delivery": "not_delivered"}}}
    assert "not delivered" in str(judge(wanted("nothing"), None, refused, [RIGHT]))
    assert "had an effect" in str(judge(wanted("nothing", command="hover"), None, DONE, [RIGHT]))
    internal = {"ok": False, "error": {"code": "INTERNAL", "message": "", "disposition": {"delivery": "not_delivered"}}}
    assert "defect" in str(judge(wanted("nothing"), None, internal, []))
