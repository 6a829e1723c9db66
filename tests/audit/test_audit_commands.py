"""timeline, show, diff, query, stats on a real ledger: what they print is what the records hold, and is harmless."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from deskcert.audit.query import NAMED, ask, load
from deskcert.cli.ledger import ledger
from deskcert_schema.errors import UsageError


def call(*arguments: object) -> Result:
    return CliRunner().invoke(ledger, [str(a) for a in arguments])


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().splitlines()]


def test_the_timeline_joins_each_intent_with_its_result(run: Path) -> None:
    told = rows(call("timeline", run, "--json"))
    results = {r["of"]: r for r in lines(run) if r["kind"] == "action.result"}
    acted = [s for s in told if s["group"] == "action"]
    assert [s["seq"] for s in acted] == sorted(results)
    for step in acted:
        assert step["end"] == results[step["seq"]]["seq"]
        assert step["outcome"] == results[step["seq"]]["delivery"]
    covered = {s["seq"] for s in told} | {s["end"] for s in told}
    assert covered == {r["seq"] for r in lines(run)}


def test_the_timeline_filters(run: Path) -> None:
    told = rows(call("timeline", run, "--only", "denial", "--json"))
    assert [s["rule"] for s in told] == ["no-delete"]
    assert rows(call("timeline", run, "--rule", "no-delete", "--json")) == told
    assert {s["outcome"] for s in rows(call("timeline", run, "--outcome", "refused", "--json"))} == {"refused"}


@pytest.mark.parametrize("form", ["table", "csv"])
def test_what_a_page_named_itself_does_nothing_on_a_terminal(run: Path, form: str) -> None:
    told = call("timeline", run, "--format", form).stdout
    assert "\\u{1b}[31m\\u{202e}evil" in told
    assert "\x1b" not in told
    assert "\u202e" not in told


def test_a_csv_cell_is_no_formula(run: Path) -> None:
    told = list(csv.DictReader(io.StringIO(call("timeline", run, "--format", "csv").stdout)))
    claim = next(r for r in told if r["what"] == "claims")
    assert claim["target"] == "'=HYPERLINK(1)"


def test_show_opens_the_secret_of_this_record_only(run: Path) -> None:
    intents = [r for r in lines(run) if r["kind"] == "action.intent"]
    typed = next(r for r in intents if r["command"] == "set-value")
    told = json.loads(call("show", run, typed["seq"], "--json").stdout)
    assert told["opened"] == {"value": "call twelve"}
    assert told["belongs_to"]["of"] == typed["seq"]
    other = json.loads(call("show", run, intents[0]["seq"], "--json").stdout)
    assert other["opened"] == {}


def test_show_says_what_can_no_longer_be_shown(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "disclosures.jsonl").unlink()
    seen = next(r for r in lines(copy) if r["kind"] == "observation")
    (copy / "blobs" / seen["tree"]["blob"]).unlink()
    typed = next(r for r in lines(copy) if r.get("command") == "set-value")
    assert "no opening" in call("show", copy, typed["seq"]).stdout
    assert "can no longer be shown" in call("show", copy, seen["seq"]).stdout
    assert "Approve" in call("show", run, seen["seq"], "--tree").stdout


def test_show_of_no_record_says_how_many_there_are(run: Path) -> None:
    done = CliRunner().invoke(ledger, ["show", str(run), "999"], standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert f"it has {len(lines(run))}" in str(done.exception)


def test_a_run_equals_itself_and_differs_from_a_shorter_one(run: Path, tmp_path: Path) -> None:
    assert call("diff", run, run).exit_code == 0
    copy = shutil.copytree(run, tmp_path / "run")
    kept = (copy / "ledger.jsonl").read_bytes().splitlines(keepends=True)[:4]
    (copy / "ledger.jsonl").write_bytes(b"".join(kept))
    done = call("diff", run, copy, "--json")
    assert done.exit_code == 1
    assert {r["sign"] for r in rows(done)} == {"-"}
    assert "set-value" in {r["what"] for r in rows(done)}


@pytest.mark.parametrize("name", NAMED)
def test_every_named_query_has_an_answer(run: Path, name: str) -> None:
    names, found = ask(load([run], ()), NAMED[name][1])
    assert names
    assert all(len(row) == len(names) for row in found)


def test_a_query_counts_what_the_ledger_holds(run: Path) -> None:
    told = rows(call("query", run, "select kind, count(*) as n from records group by kind", "--json"))
    counted: dict[str, int] = {}
    for record in lines(run):
        counted[record["kind"]] = counted.get(record["kind"], 0) + 1
    assert {r["kind"]: r["n"] for r in told} == counted
    (denied,) = rows(call("query", run, "denials", "--json"))
    assert (denied["rule"], denied["times"]) == ("no-delete", 1)


@pytest.mark.parametrize(
    "sql",
    [
        "delete from records",
        "drop table runs",
        "attach 'x.db' as x",
        "pragma query_only = off",
        "create table t (a)",
        "select load_extension('x')",
        "select * from nowhere",
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
    ],
)
def test_a_query_only_reads_and_ends(run: Path, sql: str) -> None:
    base = load([run], ())
    with pytest.raises(UsageError):
        list(ask(base, sql, seconds=0.2)[1])
    assert list(ask(base, "select count(*) from runs")[1]) == [(1,)]


def test_a_query_over_tampered_evidence_says_so(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    text = (copy / "ledger.jsonl").read_text()
    (copy / "ledger.jsonl").write_text(text.replace('"no-delete"', '"no-dElete"', 1))
    assert rows(call("query", copy, "words", "--json"))[0]["word"] == "tampered"


def test_stats_count_every_record(run: Path) -> None:
    told = rows(call("stats", run, "--json"))
    assert sum(r["count"] for r in told if not r["what"].startswith("phase")) == len(lines(run))


def test_a_reviewer_needs_no_browser_and_no_proxy() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['playwright','mitmproxy','starlette','mcp','orjson']));"
        "import deskcert.cli.audit, deskcert.cli.replay, deskcert.audit.query, deskcert.audit.record,"
        " deskcert.audit.diff, deskcert.audit.case, deskcert.replay.many, deskcert.cli.report, deskcert.cli.case,"
        " deskcert.report.html.page, deskcert.report.html.collect, deskcert.cli.ledger"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
