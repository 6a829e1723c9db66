"""Every way in which a page of a real browser can write, through the real proxy: forbidden ones do not arrive."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from proxy_rig import Line, Origin

from deskcert.adapters.web.browser import ARGS
from deskcert.adapters.web.find_browser import find_browser
from deskcert_proxy.canary import ProxyBlind
from deskcert_proxy.chromium import chromium_arguments, missing_arguments

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

PAGE = b"""<!doctype html><meta charset=utf-8><title>ways</title><body><div id=here></div></body>"""
WORKER = b"""onmessage = async (e) => { try { const r = await fetch(e.data, {method: 'POST', body: '{}'});
postMessage(r.status) } catch (x) { postMessage(String(x)) } }"""
SHARED = b"""onconnect = (e) => { const p = e.ports[0]; p.onmessage = async (m) => {
try { const r = await fetch(m.data, {method: 'POST', body: '{}'}); p.postMessage(r.status) }
catch (x) { p.postMessage(String(x)) } } }"""
SERVICE = b"""self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (e) => e.waitUntil(self.clients.claim()));
self.addEventListener('message', (e) => e.waitUntil((async () => { let r;
try { r = (await fetch(e.data, {method: 'POST', body: '{}'})).status } catch (x) { r = String(x) }
e.source.postMessage(r) })()));
self.addEventListener('sync', (e) => e.waitUntil(fetch('/api/payouts/from-sync', {method: 'POST', body: '{}'})));"""

# Each gets a URL path and resolves when the attempt is over. `write`: it sends a POST; else a GET with a side effect.
WAYS: dict[str, tuple[str, str]] = {
    "fetch": ("write", "u => fetch(u, {method: 'POST', body: '{}'}).then(r => r.status)"),
    "fetch with a small-letter method": ("write", "u => fetch(u, {method: 'patch', body: '{}'}).then(r => r.status)"),
    "fetch without cors": ("write", "u => fetch(u, {method: 'POST', mode: 'no-cors', body: '{}'}).then(r => 1)"),
    "fetch keepalive": ("write", "u => fetch(u, {method: 'POST', keepalive: true, body: '{}'}).then(r => r.status)"),
    "XMLHttpRequest": (
        "write",
        "u => new Promise(d => { const x = new XMLHttpRequest(); x.open('POST', u); x.onloadend = d; x.send('{}') })",
    ),
    "synchronous XMLHttpRequest": (
        "write",
        "u => { const x = new XMLHttpRequest(); x.open('POST', u, false); x.send('{}'); return x.status }",
    ),
    "sendBeacon": ("write", "u => { navigator.sendBeacon(u, '{}') }"),
    "form into a frame": (
        "write",
        """u => { const i = document.createElement('iframe'); i.name = 'f'; document.body.append(i);
        const f = document.createElement('form'); f.method = 'post'; f.action = u; f.target = 'f';
        document.body.append(f); f.submit() }""",
    ),
    "link ping": (
        "write",
        """u => { const a = document.createElement('a'); a.href = '#x'; a.ping = u;
        document.body.append(a); a.click() }""",
    ),
    "worker": ("write", "u => new Promise(d => { const w = new Worker('/w.js'); w.onmessage = d; w.postMessage(u) })"),
    "shared worker": (
        "write",
        """u => new Promise(d => { const w = new SharedWorker('/shared.js'); w.port.onmessage = d;
        w.port.start(); w.port.postMessage(u) })""",
    ),
    "service worker": (
        "write",
        """async u => { await navigator.serviceWorker.register('/sw.js'); const r = await navigator.serviceWorker.ready;
        await new Promise(d => { navigator.serviceWorker.onmessage = d; r.active.postMessage(u) }) }""",
    ),
    "fetchLater": (
        "write",
        "u => { if (self.fetchLater) fetchLater(u, {method: 'POST', body: '{}', activateAfter: 0}) }",
    ),
    "reporting": ("write", "u => fetch(u, {method: 'REPORT-X', body: '{}'}).then(r => r.status)"),
    "image": ("get", "u => new Promise(d => { const i = new Image(); i.onload = i.onerror = () => d(); i.src = u })"),
    "script": (
        "get",
        """u => new Promise(d => { const s = document.createElement('script'); s.onload = s.onerror = () => d();
        s.src = u; document.body.append(s) })""",
    ),
    "style sheet": (
        "get",
        """u => new Promise(d => { const l = document.createElement('link'); l.rel = 'stylesheet';
        l.onload = l.onerror = () => d(); l.href = u; document.head.append(l) })""",
    ),
    "preload": (
        "get",
        """u => new Promise(d => { const l = document.createElement('link'); l.rel = 'preload'; l.as = 'script';
        l.onload = l.onerror = () => d(); l.href = u; document.head.append(l); setTimeout(d, 3000) })""",
    ),
    "prefetch": (
        "get",
        """u => new Promise(d => { const l = document.createElement('link'); l.rel = 'prefetch';
        l.onload = l.onerror = () => d(); l.href = u; document.head.append(l); setTimeout(d, 3000) })""",
    ),
    "speculation rules": (
        "get",
        """u => { const s = document.createElement('script'); s.type = 'speculationrules';
        s.textContent = JSON.stringify({prefetch: [{source: 'list', urls: [u], eagerness: 'immediate'}]});
        document.head.append(s) }""",
    ),
    "EventSource": (
        "get",
        "u => new Promise(d => { const e = new EventSource(u); e.onopen = e.onerror = () => { e.close(); d() } })",
    ),
    "frame": (
        "get",
        """u => new Promise(d => { const i = document.createElement('iframe'); i.onload = () => d(); i.src = u;
        document.body.append(i) })""",
    ),
    "import": ("get", "u => import(u).catch(() => 0)"),
    "font": ("get", "u => new FontFace('x', `url(${u})`).load().catch(() => 0)"),
    "video": (
        "get",
        """u => new Promise(d => { const v = document.createElement('video'); v.onerror = () => d();
        v.onloadeddata = () => d(); v.src = u; document.body.append(v) })""",
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(line: Line) -> AsyncIterator[Any]:
    from playwright.async_api import async_playwright

    line.origin.pages |= {
        "/page": ("text/html", PAGE),
        "/w.js": ("text/javascript", WORKER),
        "/shared.js": ("text/javascript", SHARED),
        "/sw.js": ("text/javascript", SERVICE),
    }
    arguments = [*ARGS, *chromium_arguments(spki=line.proxy.spki)]
    assert missing_arguments(arguments) == ()
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=find_browser(), args=arguments)
        yield started
        await started.close()


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Any, line: Line) -> AsyncIterator[Any]:
    context = await browser.new_context(proxy={"server": line.proxy.server})
    opened = await context.new_page()
    await opened.goto(line.origin.url + "/page")
    yield opened
    await context.close()


async def until(condition: Any, what: str) -> None:
    async with asyncio.timeout(15):
        while not condition():  # noqa: ASYNC110 - a record of another process is waited for
            await asyncio.sleep(0.05)
    assert condition(), what


def path_of(way: str, kind: str, *, forbidden: bool) -> str:
    name = "".join(c if c.isalnum() else "-" for c in way.lower())
    if kind == "write":
        return f"/api/payouts/{name}" if forbidden else f"/api/orders/{name}"
    return f"/item/{name}/delete" if forbidden else f"/item/{name}/show"


@pytest.mark.parametrize("way", WAYS)
async def test_forbidden_way_out_is_blocked_and_recorded(line: Line, page: Any, way: str) -> None:
    kind, script = WAYS[way]
    path = path_of(way, kind, forbidden=True)
    if way == "reporting":
        path = "/shop.v1.Orders/DeleteOrder"
    known = len(line.records("net.blocked"))
    if way == "fetchLater" and not await page.evaluate("() => 'fetchLater' in self"):
        assert line.records("net.blocked")[known:] == []  # this browser has no such way
        return
    await page.evaluate(script, path)
    await until(lambda: line.records("net.blocked")[known:], f"{way}: no record of a block")
    assert path not in [hit.path for hit in line.origin.hits]
    rules = {record["rule"] for record in line.records("net.blocked")[known:]}
    assert rules <= {"net-payout", "net-item", "net-rpc"}


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("reporting", "fetchLater", "font", "video")])
async def test_allowed_way_out_arrives_and_is_recorded(line: Line, page: Any, way: str) -> None:
    kind, script = WAYS[way]
    path = path_of(way, kind, forbidden=False)
    known = len(line.records("net.allowed"))
    await page.evaluate(script, path)
    await until(lambda: path in [hit.path for hit in line.origin.hits], f"{way}: did not arrive")
    await until(lambda: any(path in r["url_class"] for r in line.records("net.allowed")[known:]), "no record")
    assert all(hit.by_proxy for hit in line.origin.hits)


async def test_websocket_messages_are_judged_one_by_one(line: Line, page: Any) -> None:
    line.origin.messages.clear()
    script = """async url => { const w = new WebSocket(url); const got = [];
        await new Promise(d => w.onopen = d);
        const answered = n => new Promise(d => w.onmessage = () => { got.push(1); if (got.length == n) d() });
        w.send('{"op":"read"}'); w.send('{"op": "d\\\\u0065lete"}'); w.send('{"op":"delete","id":1}');
        w.send(new Blob(['{"op":"delete"}'])); w.send(new Uint8Array([255, 1, 2])); w.send('{"op":"list"}');
        await answered(2); w.close(); return got.length }"""
    assert await page.evaluate(script, line.origin.url.replace("http", "ws") + "/ws") == 2
    assert line.origin.messages == [b'{"op":"read"}', b'{"op":"list"}']
    blocked = [r for r in line.records("net.blocked") if r["method"] == "WEBSOCKET"]
    assert {r["rule"] for r in blocked} == {"net-op", "net-ws"} or {r["rule"] for r in blocked} == {"net-op"}
    assert len(blocked) == 4


@pytest.mark.parametrize("where", ["Worker", "SharedWorker"])
async def test_websocket_of_a_worker_is_judged_too(line: Line, page: Any, where: str) -> None:
    line.origin.messages.clear()
    source = """const go = (url, done) => { const w = new WebSocket(url); w.onopen = () => {
        w.send('{"op":"delete"}'); w.send('{"op":"fine"}') }; w.onmessage = () => { w.close(); done(1) } };
        self.onmessage = e => go(e.data, x => postMessage(x));
        self.onconnect = e => { const p = e.ports[0]; p.onmessage = m => go(m.data, x => p.postMessage(x)) };"""
    line.origin.pages["/ws-worker.js"] = ("text/javascript", source.encode())
    script = """([kind, url]) => new Promise(d => { const w = new self[kind]('/ws-worker.js'); const p = w.port || w;
        p.onmessage = d; if (w.port) w.port.start(); p.postMessage(url) }).then(() => 1)"""
    await page.evaluate(script, [where, line.origin.url.replace("http", "ws") + "/ws"])
    assert line.origin.messages == [b'{"op":"fine"}']


async def test_beacons_of_a_page_that_goes_away_are_judged(line: Line, browser: Any) -> None:
    context = await browser.new_context(proxy={"server": line.proxy.server})
    page = await context.new_page()
    await page.goto(line.origin.url + "/page")
    known = len(line.records("net.blocked"))
    await page.evaluate(
        """() => addEventListener('pagehide', () => { navigator.sendBeacon('/api/payouts/bye', '{}');
        fetch('/api/payouts/bye2', {method: 'POST', keepalive: true, body: '{}'}) })"""
    )
    await page.goto(line.origin.url + "/page?next")
    await until(lambda: len(line.records("net.blocked")[known:]) >= 2, "no records of the beacons")
    await context.close()
    assert not [hit for hit in line.origin.hits if "bye" in hit.path]


async def test_background_sync_is_judged_or_not_there(line: Line, page: Any) -> None:
    known = len(line.records("net.blocked"))
    answer = await page.evaluate(
        """async () => { await navigator.serviceWorker.register('/sw.js');
        const r = await navigator.serviceWorker.ready;
        try { await r.sync.register('x'); return 'registered' } catch (e) { return String(e) } }"""
    )
    if answer == "registered":
        await until(lambda: line.records("net.blocked")[known:], "no record of the sync")
    else:
        assert "disabled" in answer  # as in a headless browser
    assert "/api/payouts/from-sync" not in [hit.path for hit in line.origin.hits]


async def test_redirect_of_a_write_to_a_forbidden_place_is_stopped(line: Line, page: Any) -> None:
    line.origin.redirects["/hop"] = (307, "/api/payouts/hop")
    status = await page.evaluate("() => fetch('/hop', {method: 'POST', body: '{}'}).then(r => r.status)")
    assert status == 403
    assert "/api/payouts/hop" not in [hit.path for hit in line.origin.hits]


async def test_webrtc_and_webtransport_find_no_route(page: Any) -> None:
    candidates = await page.evaluate(
        """async () => { const found = [];
        const p = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:3478'}]});
        p.onicecandidate = e => e.candidate && e.candidate.candidate && found.push(e.candidate.candidate);
        p.createDataChannel('x'); await p.setLocalDescription(await p.createOffer());
        await new Promise(d => { p.onicegatheringstatechange = () => p.iceGatheringState == 'complete' && d();
        setTimeout(d, 3000) }); return found.filter(c => / udp /i.test(c)) }"""
    )
    assert candidates == []
    outcome = await page.evaluate(
        """async () => { if (!self.WebTransport) return 'none'; try {
        const t = new WebTransport('https://127.0.0.1:4433/x');
        await Promise.race([t.ready, new Promise((_, r) => setTimeout(() => r(new Error('no answer')), 3000))]);
        return 'open' } catch (e) { return 'refused' } }"""
    )
    assert outcome in ("none", "refused")


async def test_https_and_http2_are_read_with_the_runs_own_authority(line: Line, browser: Any) -> None:
    from mitmproxy.certs import CertStore

    store = CertStore.from_store(line.folder / "origin-ca", "mitmproxy", 2048)
    entry = store.get_cert("127.0.0.1", [])
    pem = line.folder / "origin.pem"
    pem.write_bytes(_key(entry) + entry.cert.to_pem())
    origin = Origin(tls=pem)
    origin.pages["/page"] = ("text/html", PAGE)
    context = await browser.new_context(proxy={"server": line.proxy.server})
    page = await context.new_page()
    try:
        await page.goto(origin.url + "/page")
        protocol = await page.evaluate("() => performance.getEntriesByType('navigation')[0].nextHopProtocol")
        denied = await page.evaluate("() => fetch('/api/payouts/1', {method: 'POST', body: '{}'}).then(r => r.status)")
        allowed = await page.evaluate("() => fetch('/api/orders/1', {method: 'POST', body: '{}'}).then(r => r.status)")
        assert (denied, allowed) == (403, 200)
        assert protocol in ("h2", "http/1.1")
        assert origin.writes() == ["POST /api/orders/1"]
    finally:
        await context.close()
        origin.close()


def _key(entry: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization

    plain = serialization.NoEncryption()
    return entry.privatekey.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain
    )


async def _write(page: Any, url: str) -> None:
    await page.evaluate("u => fetch(u, {method: 'POST', body: 'canary'}).catch(() => 0)", url)


async def test_canary_is_seen_blocked_and_recorded(line: Line, page: Any) -> None:
    before, known = len(line.origin.hits), len(line.records("canary"))
    origins = [line.origin.url, line.origin.url.replace("127.0.0.1", "localhost")]
    await line.proxy.prove(lambda url: _write(page, url), origins, "start")
    await until(lambda: len(line.records("canary")) == known + 2, "both canaries in the ledger")
    canaries = line.records("canary")[-2:]
    assert [(r["origin"], r["phase"], r["blocked"]) for r in canaries] == [(o, "start", True) for o in origins]
    assert [h for h in line.origin.hits[before:] if "canary" in h.path] == []


async def test_browser_that_goes_round_the_proxy_is_found_by_the_canary(line: Line, browser: Any) -> None:
    context = await browser.new_context()  # no proxy at all
    page = await context.new_page()
    await page.goto(line.origin.url + "/page")
    with pytest.raises(ProxyBlind, match="proxy_blind"):
        await line.proxy._canaries.prove(lambda u: _write(page, u), [line.origin.url], "start", wait_s=1.5)
    await context.close()
    assert not line.origin.hits[-1].by_proxy


def test_flags_that_lead_round_are_refused(tmp_path: Path) -> None:
    assert missing_arguments(["--proxy-bypass-list=127.0.0.1", *ARGS])
    assert missing_arguments(["--no-proxy-server", *ARGS])
    assert missing_arguments([a for a in ARGS if a != "--disable-quic"])
    assert missing_arguments([*ARGS, *chromium_arguments("http://127.0.0.1:1")]) == ()
