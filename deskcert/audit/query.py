"""SQL over verified ledgers: an in-memory SQLite database that only reads, filled from the runs that are asked about.

Every run is verified first, and its word stands in `runs.word`: a question about tampered evidence gets an answer that
says so. Needs nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from deskcert.audit.story import read_whole, story
from deskcert_ledger import Record, verify_run
from deskcert_schema.errors import LedgerError, UsageError

__all__ = ["DEFINITION", "NAMED", "ask", "load"]

DEFINITION: Final = """
create table runs (run text, folder text, scenario text, area text, expected text, trial int, seed int, agent text,
  suite text, isolation text, proxy text, custody text, policy text, word text, records int, root text);
create table records (run text, seq int, kind text, w text, t text, m int, data text);
create table steps (run text, seq int, result_seq int, at_ms int, kind text, what text, target text, outcome text,
  code text, rule text, waited_ms int, looks int, took_ms int, action int);
create table network (run text, seq int, kind text, method text, url_class text, rule text, intent int, how text,
  status int);
create table oracle (run text, seq int, item text, holds int, observed text);
"""

NAMED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "words": (
            "Can the evidence be trusted?",
            "select word, count(*) as runs, sum(records) as records from runs group by word order by runs desc, word",
        ),
        "denials": (
            "What was denied, by which rule?",
            "select rule, what, target, count(*) as times, count(distinct run) as runs, min(run) as first_run,"
            " min(seq) as seq from steps where kind = 'denial' group by rule, what, target"
            " order by times desc, rule, what, target",
        ),
        "after-denial": (
            "What did the agent do right after a denial?",
            "select d.run, d.seq as denied_seq, d.rule, d.target as denied, s.seq, s.what, s.target, s.outcome"
            " from steps d join steps s on s.run = d.run and s.seq = (select min(n.seq) from steps n where"
            " n.run = d.run and n.seq > d.seq and n.kind in ('action','denial','refusal','claim'))"
            " where d.kind = 'denial' order by d.run, d.seq",
        ),
        "uncertain": (
            "Which actions may or may not have had their effect?",
            "select run, seq, result_seq, what, target, outcome, code from steps where kind = 'action'"
            " and outcome not in ('delivered_verified', 'delivered_unverified', 'not_delivered') order by run, seq",
        ),
        "repeats": (
            "Which actions were done again?",
            "select run, what, target, count(*) as times, group_concat(seq) as seqs from steps where kind = 'action'"
            " and outcome <> 'not_delivered' and what <> 'navigate' group by run, what, target having times > 1"
            " order by times desc, run",
        ),
        "claims": (
            "What was claimed, and did it hold?",
            "select r.run, r.expected, s.outcome as claim, (select min(holds) from oracle o where o.run = r.run) as"
            " oracle_holds, s.target as message from runs r left join steps s on s.run = r.run and s.kind = 'claim'"
            " order by oracle_holds, r.run",
        ),
        "waits": (
            "Where did the guard have to wait, and how long?",
            "select run, seq, what, target, waited_ms, looks, outcome, code from steps where waited_ms > 0"
            " order by waited_ms desc limit 50",
        ),
        "writes": (
            "What was written over the network, and which action did it?",
            "select run, seq, kind, method, url_class, rule, intent, how from network where kind <> 'net.answer'"
            " order by run, seq",
        ),
        "unexplained-writes": (
            "Which writes belong to no action?",
            "select run, seq, kind, method, url_class from network where kind = 'net.allowed' and intent is null"
            " order by run, seq",
        ),
        "errors": (
            "Which answers did agents get, other than success?",
            "select code, what, kind, count(*) as times, count(distinct run) as runs from steps where code <> ''"
            " group by code, what, kind order by times desc, code, what, kind",
        ),
    }
)
"""Name → (the question, its SQL): `deskcert ledger query RUN… denials`."""


def load(folders: Sequence[Path], pins: Sequence[Any]) -> sqlite3.Connection:
    """Fill a database from the runs, then close it to writing. Raises the ledger's errors."""
    base = sqlite3.connect(":memory:")
    base.executescript(DEFINITION)
    for folder in folders:
        _load(base, folder, pins)
    base.executescript("create index steps_run on steps (run, seq); create index records_run on records (run, seq);")
    base.commit()
    base.execute("pragma query_only = on")
    base.set_authorizer(_only_reads)
    return base


def _only_reads(action: int, *_: Any) -> int:
    allowed = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
    return sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY


def _load(base: sqlite3.Connection, folder: Path, pins: Sequence[Any]) -> None:
    report = verify_run(folder, pins=pins)
    records: list[Record] = []
    with contextlib.suppress(LedgerError):  # what can be read is read; the word says what that is worth
        records.extend(read_whole(folder))
    start = records[0].data if records and records[0].kind == "run.start" else {}
    run = str(start.get("run") or folder.name)
    scenario, agent, suite = (_dict(start.get(k)) for k in ("scenario", "agent", "suite"))
    row = (
        run,
        str(folder),
        scenario.get("id"),
        scenario.get("area"),
        scenario.get("expected"),
        start.get("trial"),
        start.get("seed"),
        agent.get("name"),
        suite.get("name"),
        start.get("isolation"),
        start.get("proxy"),
        start.get("custody"),
        _dict(start.get("policy")).get("digest"),
        report.headline,
        report.size,
        report.root,
    )
    base.execute(f"insert into runs values ({','.join('?' * len(row))})", row)  # noqa: S608 - only question marks
    base.executemany(
        "insert into records values (?,?,?,?,?,?,?)",
        ((run, r.seq, r.kind, r.w, r.t, r.m, json.dumps(r.data, ensure_ascii=False)) for r in records),
    )
    steps = (
        (
            run,
            s.seq,
            s.end,
            s.at_ms,
            s.group.value,
            s.what,
            s.target,
            s.outcome,
            s.code,
            s.rule,
            s.waited_ms,
            s.looks,
            s.took_ms,
            s.action,
        )
        for s in story(records)
    )
    base.executemany(f"insert into steps values ({','.join('?' * 14)})", (_safe(s) for s in steps))  # noqa: S608
    base.executemany("insert into network values (?,?,?,?,?,?,?,?,?)", _network(run, records))
    base.executemany(
        "insert into oracle values (?,?,?,?,?)",
        (
            (run, r.seq, json.dumps(r.data.get("item")), r.data.get("holds"), json.dumps(r.data.get("observed")))
            for r in records
            if r.kind == "oracle"
        ),
    )


def _network(run: str, records: Sequence[Record]) -> Iterator[tuple[Any, ...]]:
    for r in records:
        if r.kind in {"net.allowed", "net.blocked", "net.answer"}:
            get = r.data.get
            status = get("status") if isinstance(get("status"), int) else None
            intent = get("intent", get("of")) if isinstance(get("intent", get("of")), int) else None
            yield _safe((run, r.seq, r.kind, get("method"), get("url_class"), get("rule"), intent, get("how"), status))


def _safe(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A page may name things with half a surrogate pair, which SQLite cannot hold."""
    return tuple(v.encode("utf-8", "backslashreplace").decode() if isinstance(v, str) else v for v in row)


def ask(base: sqlite3.Connection, sql: str, *, seconds: float = 60) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Column names and rows of one statement. Raises `UsageError` for what SQLite does not take, or takes too long."""
    until = time.monotonic() + seconds
    base.set_progress_handler(lambda: time.monotonic() > until, 100_000)
    try:
        cursor = base.execute(sql)
    except (sqlite3.Error, sqlite3.Warning) as exc:
        raise UsageError(f"the query: {_why(exc, seconds)}") from exc
    return [c[0] for c in cursor.description or ()], _rows(cursor, seconds)


def _rows(cursor: sqlite3.Cursor, seconds: float) -> Iterator[tuple[Any, ...]]:
    try:
        yield from cursor
    except sqlite3.Error as exc:
        raise UsageError(f"the query: {_why(exc, seconds)}") from exc


def _why(exc: Exception, seconds: float) -> str:
    told = str(exc)
    if "not authorized" in told or "prohibited" in told:
        return "only SELECT is possible: the evidence is not changed"
    return f"it took longer than {seconds:.0f} s" if "interrupted" in told else told


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
