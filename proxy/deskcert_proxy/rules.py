"""The policy's `network` section, compiled, and the answer to a request: `Allow`, or `Block` with the rule and why.

Order: host; what cannot be read in one way; deny rules, of which one that matches, or cannot be answered, blocks; and,
where the policy has allow rules, a write that none of them names. An allow rule never lifts a deny rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from deskcert_proxy.classify import Reading
from deskcert_proxy.request import Kind
from deskcert_proxy.rule import WriteRule, read_rule
from deskcert_proxy.texts import Match
from deskcert_proxy.urls import host_matches
from deskcert_proxy.websocket import Message
from deskcert_schema.errors import ConfigError

__all__ = ["Allow", "Block", "Decision", "NetworkPolicy", "compile_network"]

HOST: Final = "net-host"
UNREADABLE: Final = "net-unreadable"
NOT_ALLOWED: Final = "net-not-allowed"


@dataclass(frozen=True, slots=True)
class Allow:
    rule: str | None = None
    """The allow rule that named it, if any did."""


@dataclass(frozen=True, slots=True)
class Block:
    rule: str
    why: str
    """One sentence, with nothing of the request's content in it."""


type Decision = Allow | Block


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    hosts: tuple[str, ...]
    denies: tuple[WriteRule, ...]
    allows: tuple[WriteRule, ...]

    def knows_host(self, host: str, port: int | None) -> bool:
        return any(host_matches(pattern, host, port) for pattern in self.hosts)

    def about_host(self, host: str, port: int | None) -> Block | None:
        if self.knows_host(host, port):
            return None
        return Block(HOST, "the policy's network.hosts does not name this host")

    def decide(self, reading: Reading) -> Decision:
        blocked = self._about_hosts(reading)
        if blocked is not None:
            return blocked
        if reading.unreadable is not None:
            return Block(UNREADABLE, reading.unreadable)
        for rule in self.denies:
            match rule.of_request(reading):
                case Match.YES:
                    return Block(rule.id, rule.reason or "a write rule of the policy forbids it")
                case Match.UNKNOWN:
                    return Block(rule.id, "whether this rule forbids it cannot be told from the request")
                case Match.NO:
                    pass
        return self._allowed([r for r in self.allows if r.of_request(reading) is Match.YES], reading.kind)

    def decide_message(self, url: str, message: Message) -> Decision:
        """For a message that a page sends through the WebSocket opened at `url`."""
        if message.unreadable is not None:
            return Block(UNREADABLE, message.unreadable)
        for rule in self.denies:
            match rule.of_message(url, message):
                case Match.YES:
                    return Block(rule.id, rule.reason or "a write rule of the policy forbids this message")
                case Match.UNKNOWN:
                    return Block(rule.id, "whether this rule forbids it cannot be told from the message")
                case Match.NO:
                    pass
        return self._allowed([r for r in self.allows if r.of_message(url, message) is Match.YES], message.kind)

    def _allowed(self, naming: Sequence[WriteRule], kind: Kind) -> Decision:
        if naming:
            return Allow(naming[0].id)
        if self.allows and kind is not Kind.READ:
            return Block(NOT_ALLOWED, "the policy lists what may be written, and no rule of it names this")
        return Allow()

    def _about_hosts(self, reading: Reading) -> Block | None:
        """The host the request goes to, the `Host` it names, and those of rewriting headers."""
        for url in reading.urls:
            parts = urlsplit(url)
            try:
                port = parts.port
            except ValueError:
                return Block(UNREADABLE, "the port of the URL cannot be read")
            blocked = self.about_host(parts.hostname or "", port or _PORTS.get(parts.scheme))
            if blocked is not None:
                return blocked
        parts = urlsplit(reading.request.url)
        named = {_plain(value.strip(), parts.scheme) for value in reading.request.values("host")}
        if any("@" in value for value in reading.request.values("host")):
            return Block(HOST, "the Host header holds more than a host")
        if named - {_plain(parts.netloc, parts.scheme)}:
            return Block(HOST, "the Host header names another host than the request goes to")
        return None


_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def _plain(authority: str, scheme: str) -> str:
    """Host and port without the port that goes without saying."""
    return authority.rpartition("@")[2].lower().removesuffix(f":{_PORTS.get(scheme, 0)}")


def compile_network(document: Mapping[str, Any]) -> NetworkPolicy:
    """From a whole policy. Raises `ConfigError` when it has no usable network section."""
    network = document.get("network")
    hosts = network.get("hosts") if isinstance(network, Mapping) else None
    if not isinstance(network, Mapping) or not hosts:
        raise ConfigError(
            "the policy names no hosts: add a section `network` with `hosts`, such as "
            '{hosts: ["127.0.0.1", "localhost"]}; the proxy denies every host that is not named'
        )
    rules = [read_rule(raw, f"network.writes[{n}]") for n, raw in enumerate(network.get("writes") or ())]
    ids = [rule.id for rule in rules]
    twice = sorted({rule for rule in ids if ids.count(rule) > 1} | {r for r in ids if r in (HOST, UNREADABLE)})
    if twice:
        raise ConfigError(f"network.writes: the id {twice[0]} is used twice or reserved")
    denies = tuple(rule for rule in rules if not rule.allow)
    return NetworkPolicy(tuple(hosts), denies, tuple(rule for rule in rules if rule.allow))
