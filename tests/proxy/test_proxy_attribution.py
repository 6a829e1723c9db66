"""Which action a write belongs to, and replay from a tape."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from proxy_rig import POLICY, Origin, make_ledger, net_records, request_bytes, send_raw

from deskcert_proxy.attribution import Attributed, Attributor, Seen, join
from deskcert_proxy.replay import Replayer, match_key, read_tape
from deskcert_proxy.request import Request
from deskcert_proxy.serve import Listening, serve
from deskcert_proxy.supervisor import ProxyRun
from deskcert_schema.errors import LedgerFormatError
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


async def test_replay_answers_from_the_tape_and_forwards_nothing(tmp_path: Path) -> None:
    ledger, origin = make_ledger(tmp_path), Origin()
    origin.pages["/page"] = ("text/html", b"<p>kept</p>")
    get = request_bytes("GET", origin.url + "/page", b"", [("Cookie", "session=s3cr3t-value")])
    tape = tmp_path / "tape"
    async with await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy", tape=tape) as proxy:
        assert (await asyncio.to_thread(send_raw, proxy.port, get)).body == b"<p>kept</p>"
    ledger.seal()
    kept = (tape / "flows.jsonl").read_text()
    assert "s3cr3t-value" not in kept
    assert (tape / "flows.jsonl").stat().st_mode & 0o077 == 0
    recorded = len(origin.hits)

    missed: list[tuple[Request, str]] = []
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    replayer = Replayer(read_tape(tape / "flows.jsonl"), lambda r, why: missed.append((r, why)))
    serving = asyncio.create_task(
        serve(replayer, listen=("127.0.0.1", 0), confdir=tmp_path / "ca", ready=ready.set_result, stop=stop)
    )
    listening: Listening = await ready
    first = await asyncio.to_thread(send_raw, listening.port, get)
    again = await asyncio.to_thread(send_raw, listening.port, get)
    other = await asyncio.to_thread(send_raw, listening.port, request_bytes("POST", origin.url + "/api/x", b"1"))
    stop.set()
    await serving
    assert (first.status, first.body) == (200, b"<p>kept</p>")
    assert first.headers["content-length"] == "11"
    assert (again.status, other.status) == (502, 502)
    assert [why for _, why in missed] == ["asked more often than it was", "not on the tape"]
    assert len(origin.hits) == recorded  # nothing went on to the server
    origin.close()


def test_damaged_tape_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "flows.jsonl"
    path.write_text("{}\n")
    with pytest.raises(LedgerFormatError, match="line 1"):
        read_tape(path)
    assert match_key("get", "http://a/#x", b"") == match_key("GET", "http://a/", b"")
