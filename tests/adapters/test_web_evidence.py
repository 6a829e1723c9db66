"""One in a hundred of the actions of `make evidence ONLY=web`: only what was meant, by the application's own log."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from deskcert.adapters.web.browser import WebBrowser
from deskcert_schema.vocabulary import PipelinePoint
from scripts.evidence_web import GOAL, NEVER_ACTED_ON, Try, actions, judge
from scripts.evidence_web_memory import acted, judge_slope, slope
from scripts.web_bench import bench


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


def measured(*heaps: int) -> list[dict[str, int]]:
    return [{"page_heap": heap, "browser_rss": 1_000, "deskcert_rss": 1_000} for heap in heaps]


def test_what_grows_over_the_second_half_is_a_failure() -> None:
    assert judge_slope(measured(0, 900_000, 900_000, 900_100, 900_000, 900_100), every=250) == []
    grown = judge_slope(measured(0, 100_000, 200_000, 300_000, 400_000, 500_000), every=250)
    assert grown == ["page_heap grows by 400 bytes an action; 100 are allowed"]
    assert slope([9, 9, 9, 0, 500, 1_000], every=250) == 2.0


@pytest.mark.web
@pytest.mark.evidence
async def test_clicks_that_open_and_close_a_dialog_leave_nothing_on_the_page() -> None:
    """One in a hundred of the actions; over so few only a leak of whole nodes would show."""
    browser = await WebBrowser.launch()
    try:
        async with bench(browser) as found:
            measures = await acted(found, 100, every=20)
    finally:
        await browser.close()
    assert len(measures) == 6
    assert slope([m["page_heap"] for m in measures], every=20) < 10_000
