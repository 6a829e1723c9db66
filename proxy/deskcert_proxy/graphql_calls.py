"""GraphQL in a request: POST with JSON, batches, multipart, `application/graphql`, GET parameters, persisted hashes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from deskcert_proxy.bodies import Body, Form
from deskcert_proxy.graphql import NotGraphql, Operation, parse
from deskcert_proxy.request import Kind, Request
from deskcert_proxy.strict_json import NotJson, loads

__all__ = ["Calls", "find_calls", "payload_calls"]

_HASH_KEYS: Final = ("documentid", "doc_id", "queryid", "query_id", "persistedquery", "hash", "documenthash")


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
    found = [payload_calls(payload, known, at_home=at_home) for payload in payloads]
    calls = [call for call in found if call is not None]
    if not calls:
        writes = body.form is not Form.EMPTY
        if "graphql" in request.path.lower() and writes and not payloads:
            return Calls((), "a body at a GraphQL address that is no GraphQL")
        return None
    operations = tuple(operation for call in calls for operation in call.operations)
    unknown = next((call.unknown for call in calls if call.unknown is not None), None)
    return Calls(operations, unknown, tuple(pair for call in calls for pair in call.documents))


def _payloads(request: Request, body: Body, query: tuple[tuple[str, str], ...]) -> Iterator[dict[str, Any]]:
    if request.media_type == "application/graphql" and body.text is not None:
        yield {"query": body.text}
    for document in body.documents:
        for item in document if isinstance(document, list) else [document]:
            if isinstance(item, dict):
                yield item
    told = {name.lower(): value for name, value in (*query, *body.fields)}
    if "query" in told or "extensions" in told or set(told) & set(_HASH_KEYS):
        payload: dict[str, Any] = {"operationName" if k == "operationname" else k: v for k, v in told.items()}
        if isinstance(payload.get("extensions"), str):
            try:
                payload["extensions"] = loads(payload["extensions"])
            except NotJson:
                payload["extensions"] = None
        yield payload


def payload_calls(payload: dict[str, Any], known: Mapping[str, str], *, at_home: bool) -> Calls | None:
    """One `{query, operationName, extensions}`. `at_home`: it was sent to a GraphQL address. Raises `Unreadable`."""
    low = {key.lower(): value for key, value in payload.items()}
    document, digest = _document(low), _digest(low)
    if document is None:
        if digest is None:
            return Calls((), "no document") if at_home and "query" in low else None
        if digest in known:
            document = known[digest]
        else:
            return Calls((), "a persisted document that is known by its hash only") if at_home or _is_apq(low) else None
    try:
        operations = parse(document)
    except NotGraphql as error:
        return Calls((), f"the document cannot be read: {error}") if at_home else None
    right = digest is not None and sha256(document.encode("utf-8", "surrogatepass")).hexdigest() == digest.lower()
    pairs = ((digest, document),) if digest is not None and right else ()
    if digest is not None and not right:
        return Calls(operations, "the hash of the persisted document is not its own", ())
    return Calls(_chosen(operations, low.get("operationname")), None, pairs)


def _document(low: Mapping[str, Any]) -> str | None:
    for key in ("query", "mutation", "document"):
        value = low.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return None


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


def _chosen(operations: tuple[Operation, ...], name: Any) -> tuple[Operation, ...]:
    """The named one; all of them where the name leaves a doubt."""
    named = [operation for operation in operations if operation.name == name]
    return (named[0],) if isinstance(name, str) and len(named) == 1 else operations
