"""What a request calls by name, in every convention that puts the name outside or on top of a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from deskcert_proxy.bodies import Body
from deskcert_proxy.request import SAFE_METHODS, Request
from deskcert_proxy.strict_json import maps
from deskcert_proxy.xml_fields import called_in

__all__ = ["called", "rpc_names"]

_NAME_KEYS: Final = ("method", "rpc", "procedure")
_CALL_KEYS: Final = frozenset((*_NAME_KEYS, "methodcalls"))
_PLAIN: Final = frozenset(("GET", "HEAD", "OPTIONS"))
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"))


def rpc_names(
    request: Request, paths: tuple[str, ...], body: Body, query: tuple[tuple[str, str], ...]
) -> tuple[str, ...]:
    """What a request calls, by every convention that puts a name outside or on top of a message: the path (gRPC,
    Twirp, Connect, tRPC), JSON-RPC's `method`, SOAP's action, XML-RPC, JMAP, AWS's target, Next.js's action."""
    found: dict[str, None] = {}
    for path in paths:
        pieces = [piece for piece in path.split("/") if piece]
        service = len(pieces) > 1 and "." in pieces[-2]
        if service:
            found |= dict.fromkeys(("/".join(pieces), "/" + "/".join(pieces), "/".join(pieces[-2:])))
        if pieces and (service or "trpc" in pieces or request.method.upper() not in SAFE_METHODS):
            found |= dict.fromkeys((pieces[-1], *pieces[-1].split(",")))  # a comma: tRPC's batches
    for header in ("soapaction", "x-amz-target", "next-action", "x-rpc-method", "grpc-method"):
        for value in request.values(header):
            bare = value.strip().strip('"')
            found |= dict.fromkeys((bare, bare.rsplit("/", 1)[-1], bare.rsplit("#", 1)[-1], bare.rsplit(".", 1)[-1]))
    found |= dict.fromkeys(name for document in body.documents for name in _json_rpc(document))
    told = (v for k, v in (*query, *body.fields) if k.lower() in _NAME_KEYS and request.method.upper() not in _PLAIN)
    found |= dict.fromkeys(name for value in told for name in _ends(value))
    if body.text is not None and body.text.lstrip()[:1] == "<":
        found |= dict.fromkeys(name for value in called_in(body.text) for name in _ends(value))
    return tuple(name for name in found if name)


def called(documents: tuple[Any, ...]) -> tuple[str, ...]:
    """The methods of JSON-RPC calls, one for each."""
    calls = (call for document in documents for call in (document if isinstance(document, list) else [document]))
    return tuple(str(call["method"]) for call in calls if isinstance(call, dict) and "method" in call)


def _json_rpc(document: Any) -> Iterator[str]:
    for call in maps(document):
        low = {key.casefold(): value for key, value in call.items()}
        if low.keys().isdisjoint(_CALL_KEYS):
            continue
        for key in _NAME_KEYS:
            value = low.get(key)
            # In a batch of requests, `method` is HTTP's.
            if isinstance(value, str) and not (value.upper() in _METHODS and set(low) & {"url", "path", "href"}):
                yield from _ends(value)
        for item in low.get("methodcalls") or () if isinstance(low.get("methodcalls"), list) else ():
            if isinstance(item, list) and item and isinstance(item[0], str):
                yield from _ends(item[0])


def _ends(name: str) -> Iterator[str]:
    yield name
    yield name.rsplit(".", 1)[-1]
    yield name.rsplit("/", 1)[-1]
