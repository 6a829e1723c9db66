"""Which action a write belongs to."""

from __future__ import annotations

import asyncio
from pathlib import Path

from proxy_rig import POLICY, Origin, make_ledger, net_records, request_bytes, send_raw

from deskcert_proxy.attribution import Attributed, Attributor, Seen, join
from deskcert_proxy.supervisor import ProxyRun
from deskcert_schema.vocabulary import NetworkHow

URL = "http://127.0.0.1/api/orders/1"


def test_causal_beats_window_and_each_request_is_taken_once() -> None:
    attributor = Attributor()
    attributor.saw(Seen("POST", URL, NetworkHow.WINDOW, 5))
    attributor.saw(Seen("POST", URL, NetworkHow.CAUSAL, 7))
    assert attributor.of("post", URL + "#x") == Attributed(7, NetworkHow.CAUSAL)
    assert attributor.of("POST", URL) == Attributed(5, NetworkHow.WINDOW)
    assert attributor.of("POST", URL) == Attributed(None, NetworkHow.NONE)


def test_what_the_browser_did_not_tell_is_put_down_to_the_open_span_or_to_nobody() -> None:
    records = [
        {"kind": "net.allowed", "seq": 1, "method": "POST", "url": URL},
        {"kind": "action.intent", "seq": 2},
        {"kind": "net.allowed", "seq": 3, "method": "POST", "url": URL},
        {"kind": "action.result", "seq": 4},
        {"kind": "net.blocked", "seq": 5, "method": "POST", "url": URL},
    ]
    none, window = Attributed(None, NetworkHow.NONE), Attributed(2, NetworkHow.WINDOW)
    assert join([], records) == [none, window, none]
    assert window.recorded() == {"how": "window", "intent": 2}
    assert none.recorded() == {"how": "none"}


def test_other_method_or_query_is_another_request() -> None:
    attributor = Attributor()
    attributor.saw(Seen("POST", URL, NetworkHow.CAUSAL, 7))
    assert attributor.of("PUT", URL).how is NetworkHow.NONE
    assert attributor.of("POST", URL + "?a").how is NetworkHow.NONE


async def test_record_gets_what_this_side_knows_before_it_is_written(tmp_path: Path) -> None:
    attributor = Attributor()
    ledger, origin = make_ledger(tmp_path), Origin()
    attributor.saw(Seen("POST", origin.url + "/api/x", NetworkHow.CAUSAL, 41))

    def complete(kind: str, payload: dict) -> dict:
        if kind not in ("net.allowed", "net.blocked"):
            return payload
        return payload | attributor.of(payload["method"], payload["url"].value).recorded()

    async with await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy", complete=complete) as proxy:
        data = request_bytes("POST", origin.url + "/api/x", b"{}", [("Content-Type", "application/json")])
        for _ in range(2):
            assert (await asyncio.to_thread(send_raw, proxy.port, data)).status == 200
    ledger.seal()
    origin.close()
    assert [(r["how"], r.get("intent")) for r in net_records(tmp_path, "net.allowed")] == [
        ("causal", 41),
        ("none", None),
    ]
