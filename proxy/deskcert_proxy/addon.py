"""The hooks of mitmproxy, thin: each closes the way, reads, decides, records durably, and only then opens it."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from deskcert_proxy.answers import FAULT, NO_RECORD, refusal
from deskcert_proxy.canary import CANARY_PATH
from deskcert_proxy.classify import Reading, classify
from deskcert_proxy.control_frames import without_texts
from deskcert_proxy.failclosed import (
    BLOCKED,
    close_connection,
    close_message,
    close_raw,
    close_request,
    closed_unless_done,
    fault_recorded,
    record_only,
)
from deskcert_proxy.flows import request_of, url_of
from deskcert_proxy.names import loopback_names
from deskcert_proxy.options import BODY_LIMIT, FORCED, refused_options
from deskcert_proxy.ready import READY_HOST, answer_of
from deskcert_proxy.records import describe, describe_message, url_class
from deskcert_proxy.request import SAFE_METHODS, Kind, Unreadable
from deskcert_proxy.rules import Allow, Block, NetworkPolicy
from deskcert_proxy.scribe import Scribe
from deskcert_proxy.websocket import read_message
from deskcert_schema.errors import HarnessError, LedgerUnavailable

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow

__all__ = ["SecondLine"]

_LOG = logging.getLogger(__name__)
_SEQ: Final = "deskcert_seq"
_KNOWN: Final = 2000
_LONG: Final = 1 << 18
_TOO_LARGE: Final = Block("net-too-large", "the body is longer than what is looked at")
_CANARY: Final = Block("net-canary", "the run's own harmless write, which must be blocked")
_RAW: Final = Block("net-raw", "only HTTP and WebSocket are understood")
_UNREAD_PORTS: Final = frozenset({53, 5353})
"""mitmproxy takes what goes there for DNS."""


class SecondLine:
    """Give it to mitmproxy as an addon. `secret` answers readiness requests; `tape` keeps flows for replay."""

    def __init__(self, policy: NetworkPolicy, scribe: Scribe, *, secret: bytes, tape: Any | None = None) -> None:
        self._policy, self._scribe, self._secret, self._tape = policy, scribe, secret, tape
        self._known: OrderedDict[str, str] = OrderedDict()
        """GraphQL documents by their SHA-256, as persisted queries name them."""
        self._configured = False
        """mitmproxy logs what `configure` raises, and goes on."""
        self._beat: asyncio.Task[None] | None = None

    # -- the life of the proxy

    def load(self, loader: Any) -> None:
        without_texts()
        loader.master.options.update(**_forced(loader.master.options))

    def configure(self, _updated: set[str]) -> None:
        from mitmproxy import ctx, exceptions

        self._configured = False
        wrong = refused_options(ctx.options)
        if wrong or any(getattr(ctx.options, name) != value for name, value in _forced(ctx.options).items()):
            raise exceptions.OptionsError(  # type: ignore[no-untyped-call]
                "; ".join(wrong) or "an option that deskcert sets was changed"
            )
        self._configured = True

    @fault_recorded
    async def running(self) -> None:
        loopback_names(asyncio.get_running_loop())
        self._beat = asyncio.create_task(self._scribe.beat())

    @fault_recorded
    async def done(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
        self._scribe.last_beat()

    def fault(self, hook: str, error: BaseException) -> None:
        _LOG.error("deskcert: %s failed closed: %s", hook, error, exc_info=error)
        self._scribe.fault(hook, error)

    # -- HTTP

    @closed_unless_done(close_request)
    async def requestheaders(self, flow: HTTPFlow) -> None:
        if not self._configured:
            raise HarnessError("the options were not checked: something could go round")
        flow.request.stream = False
        if flow.request.headers.get("upgrade", "").lower() not in ("", "websocket"):
            del flow.request.headers["upgrade"]

    @closed_unless_done(close_request)
    async def request(self, flow: HTTPFlow) -> None:
        closed = flow.response is not None or BLOCKED in flow.metadata
        flow.response = refusal(FAULT)
        if closed:
            await self._blocked_early(flow)
            return
        if flow.request.host == READY_HOST:
            flow.metadata[BLOCKED] = True
            flow.response = self._ready(flow)
            return
        reading, decision = self._decide(flow)
        record = describe(reading, self._scribe.salt)
        if isinstance(decision, Block):
            await self._block(flow, decision, record)
            return
        try:
            seq = await self._scribe.allowed(record | _rule_of(decision), durable=_matters(reading))
        except (LedgerUnavailable, TimeoutError):
            flow.metadata[BLOCKED] = True
            flow.response = refusal(NO_RECORD, origin=flow.request.headers.get("origin"))
            return
        self._remember(reading)
        flow.metadata[_SEQ] = seq
        flow.request.headers.add("via", "1.1 deskcert")
        if self._tape is not None:
            self._tape.sent(flow.id, reading.request)
        flow.response = None

    def _decide(self, flow: HTTPFlow) -> tuple[Reading, Allow | Block]:
        try:
            request = request_of(flow)
        except Unreadable as error:
            flow.request.raw_content = b""
            return classify(request_of(flow)), Block("net-unreadable", str(error))
        reading = classify(request, self._known)
        sni = flow.client_conn.sni
        if request.path.startswith(CANARY_PATH):
            return reading, _CANARY
        if sni and self._policy.about_host(sni, None) and self._policy.about_host(sni, flow.request.port):
            return reading, Block("net-host", "TLS was opened for a host that the policy does not name")
        if len(request.body) > BODY_LIMIT and request.method.upper() not in ("GET", "HEAD"):
            return reading, _TOO_LARGE
        return reading, self._policy.decide(reading)

    async def _block(self, flow: HTTPFlow, block: Block, record: dict[str, Any]) -> None:
        flow.metadata[BLOCKED] = True
        if block is _CANARY:
            nonce = flow.request.path.removeprefix(CANARY_PATH).partition("?")[0][:100]
            told = {"origin": url_of(flow.request).partition(CANARY_PATH)[0], "nonce": nonce, "blocked": True}
            await self._scribe.canary(told | {"method": record["method"]})
        else:
            await self._scribe.blocked(record | {"rule": block.rule, "why": block.why[:300]})
        flow.response = refusal(block, origin=flow.request.headers.get("origin"))

    async def _blocked_early(self, flow: HTTPFlow) -> None:
        """A hook before this one has closed the way."""
        flow.metadata[BLOCKED] = True
        told = {"method": flow.request.method[:32], "url_class": url_class(url_of(flow.request)), "how": "none"}
        await self._scribe.blocked(told | {"class": Kind.UNKNOWN.value, "rule": FAULT.rule, "why": FAULT.why})

    def _ready(self, flow: HTTPFlow) -> Any:
        from mitmproxy.http import Response

        nonce = flow.request.path.lstrip("/").encode()
        return Response.make(200, answer_of(self._secret, nonce))

    def _remember(self, reading: Reading) -> None:
        if reading.calls is not None:
            for digest, document in reading.calls.documents:
                self._known[digest] = document
                if len(self._known) > _KNOWN:
                    self._known.popitem(last=False)

    @closed_unless_done(record_only)
    async def responseheaders(self, flow: HTTPFlow) -> None:
        assert flow.response is not None
        flow.response.headers.pop("alt-svc", None)  # nothing may go on by another protocol
        if BLOCKED in flow.metadata:
            return
        self._scribe.answered(flow.metadata.get(_SEQ), flow.response.status_code)
        if flow.response.status_code != 101:
            tape = self._tape
            if _flows_on(flow.response.headers):
                flow.response.stream = True if tape is None else tape.keep(flow.id, flow.response)

    @closed_unless_done(record_only)
    async def response(self, flow: HTTPFlow) -> None:
        if self._tape is not None and BLOCKED not in flow.metadata and flow.response is not None:
            self._tape.done(flow.id, flow.response)

    @closed_unless_done(record_only)
    async def error(self, flow: HTTPFlow) -> None:
        if BLOCKED in flow.metadata:
            return
        if _SEQ in flow.metadata:
            self._scribe.answered(flow.metadata[_SEQ], 0)
            return
        # It never came as far as `request`: too long, malformed, or cut off by the client.
        told = {"method": flow.request.method[:32], "url_class": url_class(url_of(flow.request)), "how": "none"}
        why = str(flow.error)[:200]
        rule = _TOO_LARGE.rule if "body_size_limit" in why else "net-malformed"
        await self._scribe.blocked(told | {"class": Kind.UNKNOWN.value, "rule": rule, "why": why})

    @closed_unless_done(close_request)
    async def http_connect(self, flow: HTTPFlow) -> None:
        host, port = flow.request.host, flow.request.port
        blocked = self._policy.about_host(host, port)
        if blocked is None and port in _UNREAD_PORTS:
            blocked = _RAW
        if blocked is not None:
            told = {"method": "CONNECT", "url_class": f"{host[:200]}:{port}", "how": "none", "class": "unknown"}
            flow.response = refusal(blocked)
            await self._scribe.blocked(told | {"rule": blocked.rule, "why": blocked.why})

    # -- WebSocket

    @closed_unless_done(close_message)
    async def websocket_start(self, flow: HTTPFlow) -> None:
        if BLOCKED in flow.metadata or _SEQ not in flow.metadata:
            flow.metadata[BLOCKED] = True

    @closed_unless_done(close_message)
    async def websocket_message(self, flow: HTTPFlow) -> None:
        assert flow.websocket is not None
        message = flow.websocket.messages[-1]
        del flow.websocket.messages[:-1]
        if not message.from_client:
            return
        message.dropped = True
        url = url_of(flow.request)
        read = read_message(message.content, text=message.is_text)
        decision = FAULT if BLOCKED in flow.metadata else self._policy.decide_message(url, read)
        record = describe_message(url, read.kind.value, message.content, self._scribe.salt)
        if isinstance(decision, Block):
            await self._scribe.blocked(record | {"rule": decision.rule, "why": decision.why[:300]})
            return
        try:
            await self._scribe.allowed(record | _rule_of(decision), durable=read.kind is not Kind.READ)
        except (LedgerUnavailable, TimeoutError):
            return
        message.dropped = False

    # -- what is not understood

    @closed_unless_done(close_connection)
    async def server_connect(self, data: Any) -> None:
        address = data.server.address
        if address is None or self._policy.about_host(address[0], address[1]) is not None:
            close_connection(data)

    @closed_unless_done(close_raw)
    async def tcp_start(self, flow: Any) -> None:
        await self._raw(flow, "TCP")

    @closed_unless_done(close_raw)
    async def tcp_message(self, flow: Any) -> None:
        flow.messages[-1].content = b""
        close_raw(flow)

    @closed_unless_done(close_raw)
    async def udp_start(self, flow: Any) -> None:
        await self._raw(flow, "UDP")

    @closed_unless_done(close_raw)
    async def udp_message(self, flow: Any) -> None:
        flow.messages[-1].content = b""
        close_raw(flow)

    @closed_unless_done(close_raw)
    async def dns_request(self, flow: Any) -> None:
        await self._raw(flow, "DNS")

    async def _raw(self, flow: Any, name: str) -> None:
        close_raw(flow)
        told = {"method": name, "url_class": "raw", "how": "none", "class": "unknown"}
        await self._scribe.blocked(told | {"rule": _RAW.rule, "why": _RAW.why})


def _forced(options: Any) -> dict[str, Any]:
    """Options that exist; only the one for the onboarding pages may be missing, with its addon."""
    return {name: value for name, value in FORCED.items() if name != "onboarding" or name in options}


def _flows_on(headers: Any) -> bool:
    """Is it an answer without a known end, or a long one? A short one goes out in one piece, which is faster."""
    length = headers.get("content-length", "")
    events = headers.get("content-type", "").lower().startswith("text/event-stream")
    return events or not length.isdecimal() or int(length) > _LONG


def _rule_of(decision: Allow) -> dict[str, str]:
    return {} if decision.rule is None else {"rule": decision.rule}


def _matters(reading: Reading) -> bool:
    """Everything but a plain read waits for the disk: queries by POST too, which a server may take otherwise."""
    return reading.kind is not Kind.READ or bool(reading.methods - SAFE_METHODS) or bool(reading.request.upgrade)
