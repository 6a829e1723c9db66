"""GraphQL in a request: POST with JSON, batches, multipart, `application/graphql`, GET parameters, persisted hashes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from deskcert_proxy.bodies import Body, Form
from deskcert_proxy.graphql import NotGraphql, Operation, parse
from deskcert_proxy.request import Kind, Request
from deskcert_proxy.strict_json import NotJson, loads, maps

__all__ = ["Calls", "find_calls", "payload_calls"]

_HASH_KEYS: Final = ("documentid", "doc_id", "queryid", "query_id", "persistedquery", "hash", "documenthash")
_DOCUMENT_KEYS: Final = ("query", "mutation", "document")
_MAX_TURNS: Final = 20


@dataclass(frozen=True, slots=True)
class Calls:
    operations: tuple[Operation, ...]
    """Those that may be executed."""
    unknown: str | None = None
    """Why some of it cannot be read."""
    documents: tuple[tuple[str, str], ...] = ()
    """(SHA-256, text) of documents that came with their right hash."""

    @property
    def kind(self) -> Kind:
        if any(operation.kind != "query" for operation in self.operations):
            return Kind.WRITE
        return Kind.UNKNOWN if self.unknown is not None else Kind.READ


def find_calls(
    request: Request, body: Body, query: tuple[tuple[str, str], ...], known: Mapping[str, str]
) -> Calls | None:
    """None when it is no GraphQL."""
    at_home = "graphql" in request.path.lower() or request.path.lower().rstrip("/").endswith("/gql")
    payloads = list(_payloads(request, body, query))
    # The address's operationName beats the body's in some servers.
    names = frozenset(value for name, value in (*query, *body.fields) if name.lower() == "operationname" and value)
    found = [payload_calls(one, known, at_home=at_home and home, names=names) for one, home in payloads]
    calls = [call for call in found if call is not None]
    if not calls:
        writes = body.form is not Form.EMPTY
        if "graphql" in request.path.lower() and writes and not payloads:
            return Calls((), "a body at a GraphQL address that is no GraphQL")
        return None
    operations = tuple(operation for call in calls for operation in call.operations)
    unknown = next((call.unknown for call in calls if call.unknown is not None), None)
    return Calls(operations, unknown, tuple(pair for call in calls for pair in call.documents))


def _payloads(
    request: Request, body: Body, query: tuple[tuple[str, str], ...]
) -> Iterator[tuple[dict[str, Any], bool]]:
    """(payload, whether it stands where a payload belongs)."""
    if request.media_type == "application/graphql" and body.text is not None:
        yield {"query": body.text}, True
    for document in body.documents:
        tops = [item for item in (document if isinstance(document, list) else [document]) if isinstance(item, dict)]
        yield from ((item, True) for item in tops)
        known = {id(item) for item in tops}
        yield from ((item, False) for item in maps(document) if id(item) not in known and _documents(item))
    told: dict[str, list[str]] = {}
    for name, value in (*query, *body.fields):
        told.setdefault(name.lower(), []).append(value)
    if "query" in told or "mutation" in told or "extensions" in told or set(told) & set(_HASH_KEYS):
        # A field that stands there twice: some take the first, some the last.
        for turn in range(min(max(map(len, told.values())), _MAX_TURNS)):
            yield _of_fields({name: values[min(turn, len(values) - 1)] for name, values in told.items()}), True


def _of_fields(told: dict[str, str]) -> dict[str, Any]:
    payload: dict[str, Any] = dict(told)
    if isinstance(payload.get("extensions"), str):
        try:
            payload["extensions"] = loads(payload["extensions"])
        except NotJson:
            payload["extensions"] = None
    return payload


def payload_calls(
    payload: dict[str, Any], known: Mapping[str, str], *, at_home: bool, names: frozenset[str] = frozenset()
) -> Calls | None:
    """One `{query, operationName, extensions}`. `at_home`: it was sent to a GraphQL address. `names`: of operations,
    told elsewhere in the request. Raises `Unreadable`."""
    low = {key.lower(): value for key, value in payload.items()}
    documents, digest = _documents(payload), _digest(low)
    if not documents:
        if digest is None:
            return Calls((), "no document") if at_home and "query" in low else None
        if digest in known:
            documents = [known[digest]]
        else:
            return Calls((), "a persisted document that is known by its hash only") if at_home or _is_apq(low) else None
    operations: list[Operation] = []
    for document in documents:
        try:
            parsed = parse(document)
        except NotGraphql as error:
            if at_home:
                return Calls((), f"the document cannot be read: {error}")
            continue
        operations += _chosen(parsed, names | _operation_names(payload))
    if not operations:
        return None
    if digest is None:
        return Calls(tuple(operations))
    right = [d for d in documents if sha256(d.encode("utf-8", "surrogatepass")).hexdigest() == digest.lower()]
    if not right:
        return Calls(tuple(operations), "the hash of the persisted document is not its own")
    return Calls(tuple(operations), None, ((digest, right[0]),))


def _documents(payload: Mapping[str, Any]) -> list[str]:
    """Every text that some server would execute: keys in any case."""
    return [v for k, v in payload.items() if isinstance(v, str) and k.lower() in _DOCUMENT_KEYS and v.strip()]


def _operation_names(payload: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(v for k, v in payload.items() if k.lower() == "operationname" and isinstance(v, str) and v)


def _is_apq(low: Mapping[str, Any]) -> bool:
    extensions = low.get("extensions")
    return isinstance(extensions, dict) and "persistedQuery" in extensions


def _digest(low: Mapping[str, Any]) -> str | None:
    extensions = low.get("extensions")
    if isinstance(extensions, dict) and isinstance(extensions.get("persistedQuery"), dict):
        return str(extensions["persistedQuery"].get("sha256Hash", ""))
    for key in _HASH_KEYS:
        value = low.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return None


def _chosen(operations: tuple[Operation, ...], names: frozenset[str]) -> tuple[Operation, ...]:
    """The named one; all of them where the names leave a doubt."""
    named = [operation for operation in operations if operation.name in names]
    return (named[0],) if len(names) == 1 and len(named) == 1 else operations
