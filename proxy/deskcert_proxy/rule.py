"""One write rule: everything it names must hold. Three-valued: what a rule needs and cannot see is unknown.

A forbidding rule reads generously, so that no spelling slips past it; an allowing rule reads to the letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deskcert_proxy.bodies import Body, Form
from deskcert_proxy.classify import Reading
from deskcert_proxy.graphql_calls import Calls
from deskcert_proxy.json_rule import JsonAt, read_json
from deskcert_proxy.overrides import REGISTERED
from deskcert_proxy.request import SAFE_METHODS, Kind
from deskcert_proxy.rpc import called
from deskcert_proxy.texts import Match, Pattern, UrlPattern, all_of, any_of, fold
from deskcert_proxy.websocket import Message
from deskcert_schema.errors import ConfigError

__all__ = ["WriteRule", "read_rule"]

_GETS: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class WriteRule:
    id: str
    reason: str
    allow: bool
    methods: frozenset[str]
    """Empty: any."""
    url: UrlPattern | None
    get: UrlPattern | None
    graphql: tuple[str | None, Pattern | None] | None
    json: JsonAt | None
    rpc: Pattern | None
    websocket: Pattern | None

    def of_request(self, reading: Reading) -> Match:
        if self.websocket is not None:
            return Match.NO
        generous = not self.allow
        answers = [self._about_method(reading)]
        for pattern in (self.url, self.get):
            if Match.NO not in answers and pattern is not None:
                hits = [pattern.hits(url, generous=generous) for url in reading.urls]
                answers.append(any_of(hits) if generous else all_of(*hits))
        if Match.NO not in answers:
            answers += self._about_content(reading.body, reading.calls, reading.rpc, reading.fields, generous=generous)
        return all_of(*answers)

    def of_message(self, url: str, message: Message) -> Match:
        """A rule with a method, or about URLs alone, is about requests."""
        about_content = self.websocket or self.json or self.graphql or self.rpc
        if self.methods or self.get is not None or (about_content is None and not self.allow):
            return Match.NO
        generous = not self.allow
        answers = [self.url.hits(u, generous=generous) for u in [url] if self.url is not None]
        if self.url is not None and generous:
            answers = [any_of([*answers, self.url.hits(url.replace("http", "ws", 1))])]
        if self.websocket is not None:
            hit = self.websocket.hits_any(message.texts, generous=generous)
            hidden = message.opaque or message.loose
            answers.append(Match.UNKNOWN if hidden and hit is Match.NO and generous else hit)
        form = Form.BINARY_DOCUMENT if message.opaque else Form.JSON
        body = Body(form, message.documents, loose=message.loose)
        names = tuple(
            value
            for document in message.documents
            if isinstance(document, dict)
            for key, value in document.items()
            if fold(key) in ("method", "rpc", "procedure", "target", "event") and isinstance(value, str)
        )
        answers += self._about_content(body, message.calls, names, (), generous=generous)
        return all_of(*answers)

    def _about_method(self, reading: Reading) -> Match:
        # What a method that is on no list does, only the server knows: a GET's work, or a POST's.
        strange = Match.UNKNOWN if reading.methods - REGISTERED and not self.allow else Match.NO
        if self.get is not None and not reading.methods & _GETS:
            return strange
        if self.methods:
            wanted = self.methods & reading.methods if not self.allow else self.methods >= reading.methods
            return Match.YES if wanted else strange if self.methods - SAFE_METHODS else Match.NO
        # A rule with a URL and nothing else is about writes; one about content is about whatever holds that content.
        bare = self.get is None and not (self.graphql or self.json or self.rpc)
        return Match.NO if bare and reading.kind is Kind.READ else Match.YES

    def _about_content(
        self,
        body: Body,
        calls: Calls | None,
        rpc: tuple[str, ...],
        fields: tuple[tuple[str, str], ...],
        *,
        generous: bool,
    ) -> Iterator[Match]:
        if self.graphql is not None:
            yield _graphql(self.graphql, calls, generous=generous)
        if self.json is not None:
            hit = self.json.of(body.documents, fields, generous=generous)
            # A rule with an address is about what happens there, in whatever form it is sent.
            hidden = (
                body.form is Form.BINARY_DOCUMENT or (body.form is Form.GRPC and self.url is not None) or body.loose
            )
            yield Match.UNKNOWN if hit is Match.NO and hidden and generous else hit
        if self.rpc is not None:
            yield _rpc(self.rpc, rpc, body, generous=generous)


def _rpc(wanted: Pattern, names: tuple[str, ...], body: Body, *, generous: bool) -> Match:
    """Allowing: each call of a batch has to be named, not one of them."""
    calls = called(body.documents)
    if generous or not calls:
        return wanted.hits_any(names, generous=generous)
    return all_of(*(wanted.hits_any((name, name.rsplit(".", 1)[-1]), generous=False) for name in calls))


def _graphql(wanted: tuple[str | None, Pattern | None], calls: Calls | None, *, generous: bool) -> Match:
    kind, name = wanted
    if calls is None:
        return Match.NO
    answers = []
    for operation in calls.operations:
        if kind is not None and operation.kind != kind:
            continue
        names = (*operation.roots, *([operation.name] if operation.name else []))
        if name is None:
            answers.append(Match.YES)
        elif generous:
            answers.append(name.hits_any(names))
        else:
            # Allowing: what is executed counts, and every root field of it.
            answers.append(all_of(*(name.hits(root, generous=False) for root in operation.roots)))
    if not generous:
        complete = calls.unknown is None and len(answers) == len(calls.operations) and bool(answers)
        return all_of(*answers) if complete else Match.NO
    return any_of([*answers, *([Match.UNKNOWN] if calls.unknown is not None else [])])


def read_rule(raw: Mapping[str, Any], where: str) -> WriteRule:
    """Raises `ConfigError`, which names `where`. The schema has been checked; this is about what it cannot say."""
    told = raw.get("method")
    methods = frozenset([told] if isinstance(told, str) else told or ())
    graphql, json = raw.get("graphql"), raw.get("json")
    if raw.get("websocket") is not None and (methods or raw.get("get") is not None):
        raise ConfigError(f"{where}: a message through a WebSocket has no method; take `method` and `get` out")
    return WriteRule(
        id=str(raw["id"]),
        reason=str(raw.get("reason", "")),
        allow=raw.get("allow") is True,
        methods=frozenset(method.upper() for method in methods),
        url=UrlPattern.read(raw["url"], f"{where}.url") if "url" in raw else None,
        get=UrlPattern.read(raw["get"], f"{where}.get") if "get" in raw else None,
        graphql=None if graphql is None else _read_graphql(graphql, f"{where}.graphql"),
        json=None if json is None else read_json(json, f"{where}.json"),
        rpc=Pattern.read(raw["rpc"], f"{where}.rpc", bare="glob") if "rpc" in raw else None,
        websocket=Pattern.read(raw["websocket"], f"{where}.websocket") if "websocket" in raw else None,
    )


def _read_graphql(raw: Mapping[str, Any], where: str) -> tuple[str | None, Pattern | None]:
    return raw.get("operation"), Pattern.read(raw["name"], f"{where}.name") if "name" in raw else None
