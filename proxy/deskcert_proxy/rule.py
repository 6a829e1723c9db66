"""One write rule: everything it names must hold. Three-valued: what a rule needs and cannot see is unknown.

A forbidding rule reads generously, so that no spelling slips past it; an allowing rule reads to the letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from deskcert_proxy.bodies import Body, Form
from deskcert_proxy.classify import Reading
from deskcert_proxy.graphql_calls import Calls
from deskcert_proxy.request import Kind
from deskcert_proxy.texts import Match, Pattern, UrlPattern, all_of, any_of, fold
from deskcert_proxy.websocket import Message
from deskcert_schema.errors import ConfigError

__all__ = ["WriteRule", "read_rule"]

_GETS: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class _Json:
    pointer: tuple[str, ...]
    equals: Any
    has_equals: bool
    matches: Pattern | None

    def of(self, documents: tuple[Any, ...], fields: tuple[tuple[str, str], ...], *, generous: bool) -> Match:
        found = [value for document in documents for value in _at(document, self.pointer, generous=generous)]
        if generous:
            found += [value for name, value in fields if _names(name) == tuple(fold(part) for part in self.pointer)]
        return any_of([self._value(value, generous=generous) for value in found])

    def _value(self, value: Any, *, generous: bool) -> Match:
        if generous and isinstance(value, list):
            return any_of([self._value(item, generous=True) for item in value])
        if isinstance(value, dict | list):
            return Match.NO
        if self.matches is not None:
            return self.matches.hits(_text(value), generous=generous)
        return Match.YES if _same(value, self.equals, generous=generous) else Match.NO


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
    json: _Json | None
    rpc: Pattern | None
    websocket: Pattern | None

    def of_request(self, reading: Reading) -> Match:
        if self.websocket is not None:
            return Match.NO
        generous = not self.allow
        answers = [self._about_method(reading)]
        if Match.NO not in answers and self.url is not None:
            answers.append(any_of([self.url.hits(url, generous=generous) for url in reading.urls]))
        if Match.NO not in answers and self.get is not None:
            answers.append(any_of([self.get.hits(url, generous=generous) for url in reading.urls]))
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
            answers.append(Match.UNKNOWN if message.opaque and hit is Match.NO and generous else hit)
        body = Body(Form.BINARY_DOCUMENT if message.opaque else Form.JSON, message.documents)
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
        if self.get is not None and not reading.methods & _GETS:
            return Match.NO
        if self.methods:
            wanted = self.methods & reading.methods if not self.allow else self.methods >= reading.methods
            return Match.YES if wanted else Match.NO
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
            hidden = body.form is Form.BINARY_DOCUMENT or (body.form is Form.GRPC and self.url is not None)
            yield Match.UNKNOWN if hit is Match.NO and hidden and generous else hit
        if self.rpc is not None:
            yield self.rpc.hits_any(rpc, generous=generous)


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


def _at(value: Any, pointer: tuple[str, ...], *, generous: bool) -> Iterator[Any]:
    """Values at a pointer. Generous: keys in any case, and inside each element of a batch."""
    if not pointer:
        yield value
        return
    head, rest = pointer[0], pointer[1:]
    if isinstance(value, dict):
        for key, item in value.items():
            if key == head or (generous and fold(key) == fold(head)):
                yield from _at(item, rest, generous=generous)
    elif isinstance(value, list):
        if head.isdecimal() and int(head) < len(value):
            yield from _at(value[int(head)], rest, generous=generous)
        elif generous:
            for item in value:
                yield from _at(item, pointer, generous=generous)


def _names(name: str) -> tuple[str, ...]:
    """`order[id]`, `order.id`, `order[0].id` as the parts of a pointer."""
    return tuple(fold(part) for part in name.replace("[", ".").replace("]", "").split(".") if part)


def _text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)


def _same(value: Any, wanted: Any, *, generous: bool) -> bool:
    """Generous: as servers coerce, `"1001"`, `1001.0` and `1001` are alike, `"TRUE"` and `true`."""
    if not generous:
        return type(value) is type(wanted) and bool(value == wanted)
    if fold(_text(value)) == fold(_text(wanted)):
        return True
    if isinstance(wanted, bool) and not isinstance(value, bool):
        return fold(_text(value)) in (("1", "yes", "on") if wanted else ("0", "no", "off", ""))
    try:
        left, right = Decimal(_text(value).strip()), Decimal(_text(wanted).strip())
    except InvalidOperation:
        return False
    # Readers that keep numbers as doubles cannot tell some large ones apart.
    return left == right or (left.is_finite() and right.is_finite() and float(left) == float(right))


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
        json=None if json is None else _read_json(json, f"{where}.json"),
        rpc=Pattern.read(raw["rpc"], f"{where}.rpc", bare="glob") if "rpc" in raw else None,
        websocket=Pattern.read(raw["websocket"], f"{where}.websocket") if "websocket" in raw else None,
    )


def _read_graphql(raw: Mapping[str, Any], where: str) -> tuple[str | None, Pattern | None]:
    return raw.get("operation"), Pattern.read(raw["name"], f"{where}.name") if "name" in raw else None


def _read_json(raw: Mapping[str, Any], where: str) -> _Json:
    pointer = tuple(part.replace("~1", "/").replace("~0", "~") for part in str(raw["pointer"]).split("/")[1:])
    matches = Pattern.read(raw["matches"], f"{where}.matches") if "matches" in raw else None
    return _Json(pointer, raw.get("equals"), "equals" in raw, matches)
