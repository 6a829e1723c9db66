"""Whatever breaks, nothing passes that is forbidden or not recorded, and the ledger says so."""

from __future__ import annotations

import asyncio
import base64
import errno
import os
import signal
import socket
from pathlib import Path

import mitmproxy.addons.proxyserver  # noqa: F401 - it makes mitmproxy's hooks known
import pytest
from mitmproxy.hooks import all_hooks
from mitmproxy.test import tflow
from proxy_rig import POLICY, Origin, make_ledger, net_records, read_reply, request_bytes, send_raw

from deskcert_ledger.store import Disk
from deskcert_proxy.addon import SecondLine
from deskcert_proxy.rules import compile_network
from deskcert_proxy.scribe import Scribe
from deskcert_proxy.supervisor import ProxyRun
from deskcert_schema.errors import ConfigError, HarnessError

JSON = [("Content-Type", "application/json")]
BREAKS = Path(__file__).parent / "breaks"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


async def post(proxy: ProxyRun, url: str, body: bytes = b"{}") -> int:
    try:
        return (await asyncio.to_thread(send_raw, proxy.port, request_bytes("POST", url, body, JSON))).status
    except OSError:
        return 0


@pytest.mark.parametrize(
    "broken",
    [
        "request=deskcert_proxy.addon:classify",
        "request=deskcert_proxy.addon:describe",
        "request=deskcert_proxy.addon:request_of",
        "request=deskcert_proxy.rules:NetworkPolicy.decide",
        "request=deskcert_proxy.addon:SecondLine._remember",
        "server_connect=deskcert_proxy.addon:SecondLine.server_connect",
    ],
)
async def test_exception_in_a_hook_lets_no_write_through(tmp_path: Path, broken: str) -> None:
    ledger, origin = make_ledger(tmp_path), Origin()
    environment = {**os.environ, "PYTHONPATH": str(BREAKS), "DESKCERT_TEST_BREAK": broken.partition("=")[2]}
    async with await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy", environment=environment) as proxy:
        for path in ("/api/x", "/api/payouts/1"):
            assert await post(proxy, origin.url + path) in (403, 502)
    assert origin.hits == []
    origin.close()
    ledger.seal()
    faults = net_records(tmp_path, "component.lost")
    assert faults
    assert faults[0]["component"] == "proxy"
    assert broken.partition("=")[0] in faults[0]["detail"]


async def test_exception_after_the_answer_is_recorded_as_a_fault(tmp_path: Path) -> None:
    ledger, origin = make_ledger(tmp_path), Origin()
    broken = "deskcert_proxy.scribe:Scribe.answered"
    environment = {**os.environ, "PYTHONPATH": str(BREAKS), "DESKCERT_TEST_BREAK": broken}
    async with await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy", environment=environment) as proxy:
        assert await post(proxy, origin.url + "/api/x") == 200
    assert [hit.path for hit in origin.hits] == ["/api/x"]
    origin.close()
    ledger.seal()
    assert [r["class"] for r in net_records(tmp_path, "net.allowed")] == ["write"]
    assert net_records(tmp_path, "component.lost")


@pytest.mark.parametrize("hook", ["responseheaders", "response", "error"])
async def test_exception_on_the_way_back_is_recorded_and_lets_nothing_forbidden_through(
    tmp_path: Path, hook: str
) -> None:
    ledger, origin = make_ledger(tmp_path), Origin()
    broken = f"deskcert_proxy.addon:SecondLine.{hook}"
    environment = {**os.environ, "PYTHONPATH": str(BREAKS), "DESKCERT_TEST_BREAK": broken}
    async with await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy", environment=environment) as proxy:
        assert await post(proxy, origin.url + "/api/x") == 200
        assert await post(proxy, origin.url + "/api/payouts/1") == 403
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            client.sendall(b"POST http://127.0.0.1/api/x HTTP/1.1\r\nContent-Length: many\r\n\r\n")
            await asyncio.to_thread(read_reply, client)
        nobody = f"http://127.0.0.1:{free_port()}/api/x"  # nobody listens: mitmproxy tells its `error` hook
        assert await post(proxy, nobody) == 502
    assert origin.writes() == ["POST /api/x"]
    origin.close()
    ledger.seal()
    assert [r["url_class"].rpartition("/")[2] for r in net_records(tmp_path, "net.allowed")] == ["x", "x"]
    assert any(f"hook {hook} failed" in fault["detail"] for fault in net_records(tmp_path, "component.lost"))


@pytest.mark.parametrize("hook", ["http_connect", "websocket_start", "websocket_message"])
async def test_exception_in_a_tunnels_hook_keeps_it_shut(tmp_path: Path, hook: str) -> None:
    ledger, origin = make_ledger(tmp_path), Origin()
    broken = f"deskcert_proxy.addon:SecondLine.{hook}"
    environment = {**os.environ, "PYTHONPATH": str(BREAKS), "DESKCERT_TEST_BREAK": broken}
    async with await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy", environment=environment) as proxy:
        if hook == "http_connect":
            request = f"CONNECT 127.0.0.1:{origin.port} HTTP/1.1\r\nHost: 127.0.0.1:{origin.port}\r\n\r\n"
            assert (await asyncio.to_thread(send_raw, proxy.port, request.encode())).status == 403
        else:
            await asyncio.to_thread(_one_message, proxy.port, origin)
    assert origin.messages == []
    origin.close()
    ledger.seal()
    assert any(hook in fault["detail"] for fault in net_records(tmp_path, "component.lost"))


def _one_message(port: int, origin: Origin) -> None:
    """An upgrade, and one masked text message; then until the other side has had its say."""
    key = base64.b64encode(os.urandom(16)).decode()
    head = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Key", key)]
    head.append(("Sec-WebSocket-Version", "13"))
    text = b'{"op":"read"}'
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(request_bytes("GET", origin.url + "/ws", b"", head))
        assert read_reply(client).status == 101
        client.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
        client.sendall(bytes([0x88, 0x80, 0, 0, 0, 0]))
        while client.recv(4096):
            pass


@pytest.mark.parametrize("hook", ["running", "done"])
async def test_exception_in_the_proxys_own_life_is_recorded(tmp_path: Path, hook: str) -> None:
    ledger, origin = make_ledger(tmp_path), Origin()
    broken = f"deskcert_proxy.addon:SecondLine.{hook}"
    environment = {**os.environ, "PYTHONPATH": str(BREAKS), "DESKCERT_TEST_BREAK": broken}
    async with await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy", environment=environment) as proxy:
        assert await post(proxy, origin.url + "/api/x") == 200
        assert await post(proxy, origin.url + "/api/payouts/1") == 403
    assert origin.writes() == ["POST /api/x"]
    origin.close()
    ledger.seal()
    assert any(f"hook {hook} failed" in fault["detail"] for fault in net_records(tmp_path, "component.lost"))


@pytest.mark.parametrize("hook", ["load", "configure"])
async def test_exception_while_it_is_set_up_keeps_the_proxy_from_starting(tmp_path: Path, hook: str) -> None:
    broken = f"deskcert_proxy.addon:SecondLine.{hook}"
    environment = {**os.environ, "PYTHONPATH": str(BREAKS), "DESKCERT_TEST_BREAK": broken}
    with pytest.raises(HarnessError, match="the proxy did not start"):
        await ProxyRun.start(make_ledger(tmp_path), POLICY, folder=tmp_path / "proxy", environment=environment)


RAW = {
    "tcp_start": tflow.ttcpflow, "tcp_message": tflow.ttcpflow, "udp_start": tflow.tudpflow,
    "udp_message": tflow.tudpflow, "dns_request": tflow.tdnsflow,
}  # fmt: skip


@pytest.mark.parametrize("hook", RAW)
async def test_exception_in_a_hook_for_raw_traffic_ends_the_flow(
    tmp_path: Path, hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mitmproxy is set up so that it never calls these; its own flows are given to them here."""
    ledger = make_ledger(tmp_path)
    addon = SecondLine(compile_network(POLICY), Scribe(ledger, rng=os.urandom), secret=b"s")
    whole, broken = RAW[hook](), RAW[hook]()
    await getattr(addon, hook)(whole)
    assert whole.error is not None  # as it should be: ended

    async def fail(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    if hook.endswith("_message"):
        broken.messages.clear()  # so that taking the last one fails
    monkeypatch.setattr(addon, "_raw", fail)
    await getattr(addon, hook)(broken)
    assert broken.error is not None
    ledger.seal()
    assert any(f"hook {hook} failed" in fault["detail"] for fault in net_records(tmp_path, "component.lost"))


def test_every_hook_of_the_addon_is_broken_by_a_test_above() -> None:
    ours = {name for name in vars(SecondLine) if name in all_hooks}
    source = Path(__file__).read_text(encoding="utf-8")
    assert len(ours) == 18
    assert {name for name in ours if f'"{name}' not in source and f"SecondLine.{name}" not in source} == set()


@pytest.mark.parametrize("hook", ["requestheaders", "request"])
async def test_hook_that_always_fails_keeps_the_run_from_starting(tmp_path: Path, hook: str) -> None:
    broken = f"deskcert_proxy.addon:SecondLine.{hook}"
    environment = {**os.environ, "PYTHONPATH": str(BREAKS), "DESKCERT_TEST_BREAK": broken}
    with pytest.raises(HarnessError, match="not this run's proxy"):
        await ProxyRun.start(make_ledger(tmp_path), POLICY, folder=tmp_path / "proxy", environment=environment)


@pytest.mark.parametrize("broken", ["deskcert_proxy.addon:read_message", "deskcert_proxy.addon:describe_message"])
async def test_exception_at_a_message_drops_it(tmp_path: Path, broken: str) -> None:
    ledger, origin = make_ledger(tmp_path), Origin()
    environment = {**os.environ, "PYTHONPATH": str(BREAKS), "DESKCERT_TEST_BREAK": broken}
    async with await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy", environment=environment) as proxy:
        await asyncio.to_thread(_say_hello, proxy.port, origin)
    assert origin.messages == []
    origin.close()
    ledger.seal()
    assert net_records(tmp_path, "component.lost")


def _say_hello(port: int, origin: Origin) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        key = base64.b64encode(b"0123456789abcdef").decode()
        upgrade = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13")]
        data = request_bytes("GET", origin.url + "/ws", b"", [*upgrade, ("Sec-WebSocket-Key", key)])
        client.sendall(data)
        assert read_reply(client).status == 101
        client.sendall(b"\x81\x85\0\0\0\0hello" + b"\x88\x80\0\0\0\0")
        while client.recv(4096):
            pass


async def test_killed_proxy_leaves_no_network_and_is_noticed(tmp_path: Path) -> None:
    ledger, origin = make_ledger(tmp_path), Origin()
    proxy = await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy")
    noticed = asyncio.Event()
    proxy.on_lost = lambda _: noticed.set()
    os.kill(proxy.pid, signal.SIGKILL)
    await asyncio.wait_for(noticed.wait(), 10)
    assert await post(proxy, origin.url + "/api/x") == 0
    assert proxy.lost is not None
    with pytest.raises(HarnessError):
        await proxy.prove(lambda _: asyncio.sleep(0), [origin.url], "end")
    await proxy.stop()
    assert origin.hits == []
    origin.close()


async def test_stopped_proxy_lets_nothing_through_after_it_is_killed(tmp_path: Path) -> None:
    ledger, origin = make_ledger(tmp_path), Origin()
    proxy = await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy")
    os.kill(proxy.pid, signal.SIGSTOP)
    waiting = [asyncio.create_task(post(proxy, origin.url + "/api/x")) for _ in range(5)]
    await asyncio.sleep(0)
    os.kill(proxy.pid, signal.SIGKILL)
    assert await asyncio.gather(*waiting) == [0] * 5
    assert origin.hits == []
    await proxy.stop()
    origin.close()


async def test_without_a_sequencer_writes_stop(tmp_path: Path) -> None:
    ledger, origin = make_ledger(tmp_path), Origin()
    proxy = await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy")
    assert await post(proxy, origin.url + "/api/x") == 200
    proxy._server.close()
    assert await post(proxy, origin.url + "/api/x") == 403
    assert await post(proxy, origin.url + "/api/payouts/1") == 403
    assert len(origin.hits) == 1
    await proxy.stop()
    origin.close()


class _FullDisk(Disk):
    full = False

    def datasync(self, fd: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().datasync(fd)


async def test_full_disk_stops_writes(tmp_path: Path) -> None:
    disk = _FullDisk()
    ledger, origin = make_ledger(tmp_path, disk=disk), Origin()
    proxy = await ProxyRun.start(ledger, POLICY, folder=tmp_path / "proxy")
    assert await post(proxy, origin.url + "/api/x") == 200
    disk.full = True
    assert await post(proxy, origin.url + "/api/x") == 403
    disk.full = False
    assert await post(proxy, origin.url + "/api/x") == 403  # a poisoned ledger stays so
    assert len(origin.hits) == 1
    assert ledger.poisoned is not None
    await proxy.stop()
    origin.close()


async def test_port_of_another_program_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HarnessError, match=str(port)):
            await ProxyRun.start(make_ledger(tmp_path), POLICY, folder=tmp_path / "proxy", listen=f"127.0.0.1:{port}")


async def test_proxy_without_our_addon_is_refused(tmp_path: Path) -> None:
    from deskcert_proxy.ready import prove_ready

    origin = Origin()
    with pytest.raises(HarnessError, match="addon is not loaded"):
        await prove_ready(origin.port, b"s" * 32)
    origin.close()


async def test_policy_without_hosts_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="network"):
        await ProxyRun.start(make_ledger(tmp_path), {"version": 1, "deny": []}, folder=tmp_path / "proxy")
