"""HTTP Archive 1.2 of what the second line saw: one entry a request, whether it was let through or stopped.

A ledger holds no bodies and, of an address, its form; the address itself is told where its opening still is and was
asked for. What is not known is told with HAR's own value for it (-1, or an empty list).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from deskcert.audit.exports.events import VERSION, RunEvents, instant
from deskcert_ledger import Record, openings
from deskcert_schema.errors import LedgerError

__all__ = ["har_log"]

_UNKNOWN: Final = -1


def har_log(runs: Iterable[RunEvents], *, with_openings: bool) -> dict[str, Any]:
    pages, entries = [], []
    for run in runs:
        pages.append(
            {
                "startedDateTime": run.began.isoformat(),
                "id": run.run,
                "title": run.scenario or run.run,
                "pageTimings": {"onContentLoad": _UNKNOWN, "onLoad": _UNKNOWN},
                "comment": f"ledger {run.word}, root {run.root}",
            }
        )
        entries += list(_entries(run, with_openings=with_openings))
    creator = {"name": "deskcert", "version": VERSION}
    return {"log": {"version": "1.2", "creator": creator, "pages": pages, "entries": entries}}


def _entries(run: RunEvents, *, with_openings: bool) -> Iterator[dict[str, Any]]:
    answers = {r.data.get("of"): r for r in run.network if r.kind == "net.answer"}
    opened: Mapping[str, tuple[str, Any]] = {}
    if with_openings:
        with contextlib.suppress(LedgerError):
            opened = openings(run.folder)
    for record in run.network:
        if record.kind != "net.answer":
            yield _entry(run, record, answers.get(record.seq), opened)


def _entry(
    run: RunEvents, record: Record, answer: Record | None, opened: Mapping[str, tuple[str, Any]]
) -> dict[str, Any]:
    data = record.data
    taken = max(0, answer.m - record.m) // 1000 if answer is not None else _UNKNOWN
    began = run.began + timedelta(milliseconds=max(0, instant(record.t).timestamp() - run.began.timestamp()) * 1000)
    stopped = record.kind == "net.blocked"
    by = f"by action {data['intent']}" if isinstance(data.get("intent"), int) else "no action known"
    rule = f"stopped by {data.get('rule') or 'the second line'}" if stopped else "let through"
    size = data.get("body_size_log2")
    told = "no body" if size is None else f"body below {1 << int(size)} bytes"
    return {
        "pageref": run.run,
        "startedDateTime": began.isoformat(),
        "time": max(0, taken),
        "request": _request(data, opened),
        "response": _response(answer, stopped=stopped),
        "cache": {},
        "timings": {"send": 0, "wait": max(0, taken), "receive": 0},
        "comment": f"record {record.seq}: {rule}, {by}, {told}",
    }


def _request(data: Mapping[str, Any], opened: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    names = [opened[d] for d in data.get("_sd", ()) if isinstance(d, str) and d in opened]
    url = next((str(value) for name, value in names if name == "url"), str(data.get("url_class", "")))
    query = [{"name": name, "value": value} for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True)]
    told: dict[str, Any] = {
        "method": str(data.get("method", "")),
        "url": url,
        "httpVersion": "unknown",
        "cookies": [],
        "headers": [],
        "queryString": query,
        "headersSize": _UNKNOWN,
        "bodySize": _UNKNOWN if "body_digest" in data else 0,
    }
    if "content_type" in data:
        told["postData"] = {"mimeType": data["content_type"], "text": "", "comment": str(data.get("body_digest", ""))}
    return told


def _response(answer: Record | None, *, stopped: bool) -> dict[str, Any]:
    status = answer.data.get("status") if answer is not None else None
    return {
        "status": status if isinstance(status, int) else (403 if stopped else 0),
        "statusText": "stopped by deskcert" if stopped else "",
        "httpVersion": "unknown",
        "cookies": [],
        "headers": [],
        "content": {"size": _UNKNOWN, "mimeType": ""},
        "redirectURL": "",
        "headersSize": _UNKNOWN,
        "bodySize": _UNKNOWN,
    }
