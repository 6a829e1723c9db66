"""One in a hundred of the requests of `make evidence ONLY=proxy`: the server's log and the ledger agree."""

from __future__ import annotations

import pytest

from scripts.evidence_proxy import PROXY_GOAL, proxy


@pytest.mark.evidence
def test_server_saw_nothing_that_the_ledger_does_not_hold_and_who_avoided_the_proxy_is_found() -> None:
    found = proxy("suite", PROXY_GOAL // 100)
    assert found.failures == []
    assert found.counts["arrived"] > 0
    assert found.counts["blocked"] > 0
    assert found.counts["around_found"] > 0
