"""What a request is: its methods, names, documents, and whether it reads, writes, or cannot be told.

A POST is a write unless it is shown to be a query; a GET is a read unless something in it says otherwise. This is one
reading of one request; whether it may pass is `rules`' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from deskcert_proxy.bodies import Body, Form, documents_in, form_fields, read_body
from deskcert_proxy.graphql_calls import Calls, find_calls
from deskcert_proxy.overrides import told_methods, told_urls
from deskcert_proxy.request import SAFE_METHODS, Kind, Request, Unreadable, check_form
from deskcert_proxy.rpc import rpc_names
from deskcert_proxy.urls import paths

__all__ = ["Kind", "Reading", "classify"]

_SEARCHES: Final = frozenset(("_search", "_msearch", "_count", "_mget", "$query", "search", "autocomplete", "suggest"))


@dataclass(frozen=True, slots=True)
class Reading:
    request: Request
    kind: Kind
    methods: frozenset[str]
    """The method sent and every override, in capitals."""
    urls: tuple[str, ...]
    """The URL, and those that it tells elsewhere."""
    body: Body
    calls: Calls | None
    """GraphQL in it."""
    rpc: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]
    """Of the form and of the query."""
    unreadable: str | None = None


def classify(request: Request, known: Mapping[str, str] | None = None) -> Reading:
    """`known`: GraphQL documents by SHA-256 that were seen in full. Never raises."""
    try:
        return _classify(request, known or {})
    except Unreadable as error:
        return _unreadable(request, str(error))
    except (ValueError, RecursionError, MemoryError) as error:
        return _unreadable(request, f"{type(error).__name__}: {error}")


def _unreadable(request: Request, why: str) -> Reading:
    method = request.method.upper()
    return Reading(request, Kind.UNKNOWN, frozenset({method}), (request.url,), Body(Form.OPAQUE), None, (), (), why)


def _classify(request: Request, known: Mapping[str, str]) -> Reading:
    check_form(request)
    body = read_body(request)
    query = tuple(form_fields(request.query)) if request.query else ()
    if (more := documents_in(query)) and body.form is not Form.BINARY_DOCUMENT:
        body = replace(body, documents=(*body.documents, *more))
    methods = told_methods(request, body, query)
    calls = find_calls(request, body, query, known)
    urls = (request.url, *told_urls(request, body, query))
    all_paths = tuple(path for url in urls for path in paths(url))
    rpc = rpc_names(request, all_paths, body, query)
    return Reading(
        request, _kind(methods, body, calls, all_paths), methods, urls, body, calls, rpc, body.fields + query
    )


def _kind(methods: frozenset[str], body: Body, calls: Calls | None, all_paths: tuple[str, ...]) -> Kind:
    if methods - SAFE_METHODS - {"POST"}:
        return Kind.WRITE
    if calls is not None:
        return calls.kind
    if methods <= SAFE_METHODS and (body.form is Form.EMPTY or methods & {"PROPFIND", "REPORT", "SEARCH", "QUERY"}):
        return Kind.READ
    last = {path.rstrip("/").rsplit("/", 1)[-1].lower() for path in all_paths}
    if last <= _SEARCHES and body.form in (Form.JSON, Form.LINES, Form.FIELDS, Form.EMPTY):
        return Kind.READ
    return Kind.WRITE
