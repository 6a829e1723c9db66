"""One in a hundred of the presses of `make evidence ONLY=desktop`: only what was meant, by the program's own log."""

from __future__ import annotations

import secrets

import pytest

from deskcert.adapters.linux.desktop_session import lacking
from deskcert_schema.vocabulary import PipelinePoint
from scripts.evidence_desktop import GOAL, NEVER_ACTED_ON, Press, judge, presses

LACKING = lacking(fixture=True)


@pytest.mark.evidence
@pytest.mark.skipif(bool(LACKING), reason=f"no desktop: {', '.join(map(str, LACKING))}")
def test_random_presses_on_a_changing_window_meet_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    seed = secrets.randbits(32)
    with capsys.disabled():
        print(f"\ndesktop evidence: seed {seed}")
    found = presses(f"{seed}/actions/0", GOAL // 100)
    assert found.failures == []
    assert found.done == GOAL // 100
    assert found.counts["perturbed"] >= GOAL // 400
    for what in NEVER_ACTED_ON:
        assert f"{what}: pressed" not in found.counts


def test_a_wrong_a_second_and_a_stale_effect_are_each_a_failure() -> None:
    def wanted(do: str) -> Press:
        return Press(1002, "approve", do, {}, PipelinePoint.LEASED)

    right = {"kind": "order.approved", "id": 1002}
    assert judge(wanted("nothing"), None, [right]) is None
    assert "wrong target" in str(judge(wanted("nothing"), None, [{**right, "id": 1003}]))
    assert "wrong target" in str(judge(wanted("nothing"), None, [{**right, "kind": "order.cancelled"}]))
    assert "more than one" in str(judge(wanted("rerender"), True, [right, right]))
    assert all("acted on" in str(judge(wanted(do), True, [right])) for do in NEVER_ACTED_ON)
