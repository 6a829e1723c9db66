"""Every way in which a page of a real browser can write, through the real proxy: forbidden ones do not arrive."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from h2_rig import H2Origin
from proxy_rig import POLICY, Line, Origin, make_ledger, net_records

from deskcert.adapters.web.browser import ARGS
from deskcert.adapters.web.find_browser import find_browser
from deskcert.certify.https import ServerCertificate
from deskcert_proxy.authority import Authority
from deskcert_proxy.canary import ProxyBlind
from deskcert_proxy.chromium import chromium_arguments, missing_arguments
from deskcert_proxy.supervisor import ProxyRun

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

AUTHORITY = Authority.new()
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
self.addEventListener('sync', (e) => e.waitUntil(Promise.all(['payouts', 'orders'].map(
place => fetch(`/api/${place}/from-sync`, {method: 'POST', body: '{}'})))));"""

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
        "u => { fetchLater(u, {method: 'POST', body: '{}', activateAfter: 0}) }",
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
    "prerendering": (
        "get",
        """u => { const s = document.createElement('script'); s.type = 'speculationrules';
        s.textContent = JSON.stringify({prerender: [{source: 'list', urls: [u], eagerness: 'immediate'}]});
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
    arguments = [*ARGS, *chromium_arguments(spki=f"{line.proxy.spki},{AUTHORITY.spki}")]
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
    await page.evaluate(script, path)
    await until(lambda: line.records("net.blocked")[known:], f"{way}: no record of a block")
    assert path not in [hit.path for hit in line.origin.hits]
    rules = {record["rule"] for record in line.records("net.blocked")[known:]}
    assert rules <= {"net-payout", "net-item", "net-rpc"}


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("reporting", "font", "video")])
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


@pytest.mark.parametrize("scheme", ["ws", "wss"])
async def test_forbidden_websocket_is_not_opened_and_its_twin_is_judged(
    line: Line, browser: Any, tmp_path: Path, scheme: str
) -> None:
    """Before it is open: the handshake is a GET, and a rule about its address stops it."""
    both = tmp_path / "both.pem"
    certificate, key = ServerCertificate.new().write(tmp_path)
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    origin = Origin(tls=both) if scheme == "wss" else line.origin
    origin.pages["/page"] = ("text/html", PAGE)
    context = await browser.new_context(proxy={"server": line.proxy.server})
    page = await context.new_page()
    await page.goto(origin.url + "/page")
    script = """async url => { const w = new WebSocket(url); const opened = await new Promise(d => {
        w.onopen = () => d(true); w.onerror = () => d(false) }); if (!opened) return [false];
        w.send('{"op":"delete"}'); w.send('{"op":"list"}'); await new Promise(d => w.onmessage = d); w.close();
        return [true] }"""
    address, known = origin.url.replace("http", "ws"), len(line.records("net.blocked"))
    origin.messages.clear()
    assert await page.evaluate(script, address + "/item/1/delete") == [False]
    assert "/item/1/delete" not in [hit.path for hit in origin.hits]
    (blocked,) = line.records("net.blocked")[known:]
    assert (blocked["rule"], blocked["upgrade"]) == ("net-item", "websocket")
    assert await page.evaluate(script, address + "/item/1/show") == [True]
    assert origin.messages == [b'{"op":"list"}']
    await context.close()
    if origin is not line.origin:
        origin.close()


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


@pytest.mark.parametrize("place", ["payouts", "orders"])
async def test_what_a_page_sends_when_it_goes_away_is_judged(line: Line, browser: Any, place: str) -> None:
    context = await browser.new_context(proxy={"server": line.proxy.server})
    page = await context.new_page()
    await page.goto(line.origin.url + "/page")
    kind = {"payouts": "net.blocked", "orders": "net.allowed"}[place]
    known = len(line.records(kind))
    await page.evaluate(
        """place => { addEventListener('pagehide', () => { navigator.sendBeacon(`/api/${place}/bye-beacon`, '{}');
        fetch(`/api/${place}/bye-keepalive`, {method: 'POST', keepalive: true, body: '{}'}) });
        fetchLater(`/api/${place}/bye-later`, {method: 'POST', body: '{}'}) }""",
        place,
    )
    await page.goto(line.origin.url + "/page?next")
    ways = {"bye-beacon", "bye-keepalive", "bye-later"}

    def told() -> set[str]:
        return {r["url_class"].rpartition("/")[2] for r in line.records(kind)[known:]} & ways

    await until(lambda: told() == ways, "no records of what was sent at the end")
    if place == "orders":
        await until(lambda: {h.path.rpartition("/")[2] for h in line.origin.hits} >= ways, "not all arrived")
    await context.close()
    assert not [hit for hit in line.origin.hits if "payouts/bye" in hit.path]


SYNC = """async () => { await navigator.serviceWorker.register('/sw.js'); const r = await navigator.serviceWorker.ready;
    try { await r.sync.register('x'); return 'registered' } catch (e) { return String(e) } }"""


async def test_headless_shell_offers_no_background_sync(line: Line, page: Any) -> None:
    """If it ever does, the test below has to be run on it."""
    if "headless" in find_browser().name:
        assert "disabled" in await page.evaluate(SYNC)
    assert "/api/payouts/from-sync" not in [hit.path for hit in line.origin.hits]


async def test_background_sync_of_a_whole_browser_is_judged(line: Line, browser: Any) -> None:
    """Debian's `chromium`, which offers it. Where it is not installed, the browser of the other tests is asked."""
    from playwright.async_api import async_playwright

    del browser  # its fixture has put the service worker's script on the server
    whole = shutil.which("chromium") or shutil.which("google-chrome")
    assert whole or "CI" not in os.environ, "CI installs chromium"
    arguments = [*ARGS, *chromium_arguments(spki=line.proxy.spki), *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=whole or find_browser(), args=arguments)
        context = await started.new_context(proxy={"server": line.proxy.server})
        await context.grant_permissions(["background-sync"])
        page = await context.new_page()
        await page.goto(line.origin.url + "/page")
        known = {kind: len(line.records(kind)) for kind in ("net.blocked", "net.allowed")}
        answer = await page.evaluate(SYNC)
        if whole:
            assert answer == "registered"

        def told(kind: str) -> bool:
            return any("from-sync" in r["url_class"] for r in line.records(kind)[known[kind] :])

        if answer == "registered":
            await until(lambda: told("net.blocked") and told("net.allowed"), "no record of the sync")
            await until(lambda: "/api/orders/from-sync" in [h.path for h in line.origin.hits], "did not arrive")
        await started.close()
    assert "/api/payouts/from-sync" not in [hit.path for hit in line.origin.hits]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "app.localhost"])
async def test_each_name_of_this_machine_is_guarded_in_the_browser(line: Line, browser: Any, name: str) -> None:
    origin = Origin(host="::1") if name == "[::1]" else line.origin
    origin.pages["/page"] = ("text/html", PAGE)
    context = await browser.new_context(proxy={"server": line.proxy.server})
    page = await context.new_page()
    before = len(origin.hits)
    await page.goto(f"http://{name}:{origin.port}/page")
    post = "u => fetch(u, {method: 'POST', body: '{}'}).then(r => r.status)"
    assert await page.evaluate(post, "/api/payouts/1") == 403
    assert await page.evaluate(post, "/api/orders/1") == 200
    await line.proxy.prove(lambda url: _write(page, url), [f"http://{name}:{origin.port}"], "start")
    await context.close()
    arrived = [f"{hit.method} {hit.path}" for hit in origin.hits[before:] if "favicon" not in hit.path]
    assert arrived == ["GET /page", "POST /api/orders/1"]
    assert all(hit.by_proxy for hit in origin.hits[before:])
    if origin is not line.origin:
        origin.close()


@pytest.mark.parametrize("status", [307, 308])
async def test_redirect_of_a_write_to_a_forbidden_place_is_stopped(line: Line, page: Any, status: int) -> None:
    line.origin.redirects["/hop"] = (status, "/api/payouts/hop")
    answered = await page.evaluate("() => fetch('/hop', {method: 'POST', body: '{}'}).then(r => r.status)")
    assert answered == 403
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


H2_WAYS = {
    "fetch": "u => fetch(u, {method: 'POST', body: '{}'}).then(r => r.status)",
    "fetch of a stream": """u => { const body = new ReadableStream({start(c) {
        c.enqueue(new TextEncoder().encode('{"a":')); c.enqueue(new TextEncoder().encode('1}')); c.close() }});
        return fetch(u, {method: 'POST', body, duplex: 'half'}).then(r => r.status) }""",
    "XMLHttpRequest": WAYS["XMLHttpRequest"][1],
    "sendBeacon": WAYS["sendBeacon"][1],
    "worker": WAYS["worker"][1],
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def h2(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[H2Origin, Any, Path]]:
    """A real HTTP/2 server whose certificate the proxy checks, and a page of it in a browser that trusts the proxy."""
    folder = tmp_path_factory.mktemp("h2-browser")
    ledger, origin = make_ledger(folder), H2Origin(folder)
    origin.pages |= {"/page": ("text/html", PAGE), "/w.js": ("text/javascript", WORKER)}
    authority = AUTHORITY
    proxy = await ProxyRun.start(ledger, POLICY, folder=folder / "proxy", trust=origin.certificate, authority=authority)
    context = await browser.new_context(proxy={"server": proxy.server})
    page = await context.new_page()
    await page.goto(origin.url + "/page")
    yield origin, page, folder
    await context.close()
    await proxy.stop()
    origin.close()
    ledger.seal()


async def test_page_over_http2_comes_to_it_as_http2(h2: tuple[H2Origin, Any, Path]) -> None:
    origin, page, _ = h2
    protocol = "() => performance.getEntriesByType('navigation')[0].nextHopProtocol"
    assert await page.evaluate(protocol) == "h2"
    assert set(origin.versions) == {"2"}


@pytest.mark.parametrize("way", H2_WAYS)
async def test_way_out_over_http2_is_judged(h2: tuple[H2Origin, Any, Path], way: str) -> None:
    origin, page, folder = h2
    name = way.replace(" ", "-")
    for place in ("payouts", "orders"):
        await page.evaluate(H2_WAYS[way], f"/api/{place}/{name}")
    await until(lambda: f"POST /api/orders/{name}" in origin.writes(), f"{way}: did not arrive")
    await until(
        lambda: any(r["url_class"].endswith(f"payouts/{name}") for r in net_records(folder, "net.blocked")), "no record"
    )
    assert f"POST /api/payouts/{name}" not in origin.writes()
    assert any(r["url_class"].endswith(f"orders/{name}") for r in net_records(folder, "net.allowed"))


async def test_no_packet_of_quic_leaves_the_browser(h2: tuple[H2Origin, Any, Path]) -> None:
    """The server offers HTTP/3 at its own port, where packets are waited for: the offer does not come to the page."""
    origin, page, _ = h2
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packets:
        packets.bind(("127.0.0.1", origin.port))
        packets.setblocking(False)
        origin.more = [(b"alt-svc", f'h3=":{origin.port}"; ma=3600'.encode())]
        ask = "() => fetch('/page?again', {cache: 'no-store'}).then(r => r.headers.get('alt-svc'))"
        assert [await page.evaluate(ask) for _ in range(3)] == [None] * 3
        with pytest.raises(BlockingIOError):
            packets.recv(1)
    assert origin.versions[-1] == "2"


async def test_browser_does_not_take_another_authority(browser: Any, h2: tuple[H2Origin, Any, Path]) -> None:
    """The server's own certificate, without the proxy, is one that this browser was not told of."""
    from playwright.async_api import Error

    origin, _, _ = h2
    context = await browser.new_context()
    page = await context.new_page()
    with pytest.raises(Error, match="ERR_CERT_AUTHORITY_INVALID"):
        await page.goto(origin.url + "/page")
    await context.close()


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


async def test_flags_that_lead_round_are_refused() -> None:
    assert missing_arguments(["--proxy-bypass-list=127.0.0.1", *ARGS])
    assert missing_arguments(["--no-proxy-server", *ARGS])
    assert missing_arguments([a for a in ARGS if a != "--disable-quic"])
    assert missing_arguments([*ARGS, *chromium_arguments("http://127.0.0.1:1")]) == ()
