"""Exports are read by programs and schemas that none of us wrote, and say what the records say."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from deskcert.cli.ledger import ledger
from deskcert_ledger import ProjectKey

NODE_MODULES = Path(tempfile.gettempdir()) / "deskcert-foreign" / "node_modules"
HERE = Path(__file__).parent


def call(*arguments: object) -> Result:
    return CliRunner().invoke(ledger, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    folder = tmp_path_factory.mktemp("exports")
    pin = ProjectKey.load(run.parent / "key").vkey

    def export(form: str, *options: str, of: Path = run) -> str:
        out = folder / form
        done = call("export", of, "--to", form, "--out", out, "--key", pin, *options)
        assert done.exit_code == 0, done.output
        return out.read_text("utf-8")

    return export


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().splitlines()]


def seqs_of(run: Path, *kinds: str) -> list[int]:
    return [r["seq"] for r in records(run) if r["kind"] in kinds]


def test_every_ocsf_event_holds_to_the_published_schema(run: Path, exported: Callable[..., str]) -> None:
    from jsonschema import Draft202012Validator
    from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema

    schema = OcsfJsonSchemaEmbedded(get_ocsf_schema(version="1.5.0"))
    classes = {
        6003: schema.get_class_schema("api_activity", ["security_control"]),
        2004: schema.get_class_schema("detection_finding", ["security_control"]),
    }
    events = [json.loads(line) for line in exported("ocsf").splitlines()]
    for event in events:
        told = dict(event)
        told.pop("unmapped")  # the standard's own place for what it has no attribute for
        errors = [e.message for e in Draft202012Validator(classes[event["class_uid"]]).iter_errors(told)]
        assert errors == []
    acts = [e["metadata"]["sequence"] for e in events if e["class_uid"] == 6003 and e["activity_id"] == 3]
    assert acts == seqs_of(run, "action.intent", "action.denied", "action.refused")
    found = [e["metadata"]["sequence"] for e in events if e["class_uid"] == 2004 and e["disposition_id"] == 2]
    assert found == seqs_of(run, "action.denied")


def test_cef_comes_apart_into_the_fields_that_went_in(run: Path, exported: Callable[..., str]) -> None:
    import pycef

    text = exported("cef")
    assert "\x1b" not in text
    assert "\u202e" not in text
    events = [pycef.parse(line) for line in text.splitlines()]
    assert all(events)
    by_seq = {int(e["seq"] if "seq" in e else e["cn1"]): e for e in events}
    (denied,) = (r for r in records(run) if r["kind"] == "action.denied")
    event = by_seq[denied["seq"]]
    assert event["DeviceEventClassID"] == denied["rule"]
    assert event["act"] == "denied"
    assert denied["target"]["name"] in event["msg"]


def test_otlp_is_a_request_that_a_collector_takes(run: Path, exported: Callable[..., str]) -> None:
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    told = json.loads(exported("otlp"))
    for resource in told["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                # OTLP's JSON has these as hexadecimal digits, where protobuf's own JSON has base 64
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    request = json_format.ParseDict(told, ExportTraceServiceRequest())
    (resource,) = request.resource_spans
    spans = resource.scope_spans[0].spans
    whole, inner = spans[0], spans[1:]
    assert all(span.parent_span_id == whole.span_id and span.trace_id == whole.trace_id for span in inner)
    assert len({span.span_id for span in spans}) == len(spans)
    assert all(s.start_time_unix_nano <= s.end_time_unix_nano <= whole.end_time_unix_nano for s in inner)
    kinds = ("action.intent", "action.denied", "action.refused", "observation")
    told_seqs = [a.value.int_value for s in inner for a in s.attributes if a.key == "deskcert.seq"]
    assert told_seqs == seqs_of(run, *kinds)


def test_csv_is_the_table_that_the_query_shows(run: Path, exported: Callable[..., str]) -> None:
    rows = list(csv.DictReader(io.StringIO(exported("csv", "--table", "records"))))
    assert [int(r["seq"]) for r in rows] == [r["seq"] for r in records(run)]
    (claim,) = (r for r in csv.DictReader(io.StringIO(exported("csv"))) if r["kind"] == "claim")
    assert claim["target"] == "'=HYPERLINK(1)", "no spreadsheet may take it for a formula"


def test_parquet_is_read_by_another_engine_with_the_same_rows(run: Path, tmp_path: Path) -> None:
    modules = Path(os.environ.get("DESKCERT_NODE_MODULES", NODE_MODULES))
    if not (modules / "hyparquet").is_dir():
        sentence = "hyparquet is missing; .ci/run installs it"
        pytest.fail(sentence) if os.environ.get("CI") == "true" else pytest.skip(sentence)
    out = tmp_path / "records.parquet"
    done = call("export", run, "--to", "parquet", "--table", "records", "--out", out)
    assert done.exit_code == 0, done.output
    program = (
        f"import {{ asyncBufferFromFile, parquetReadObjects }} from '{modules}/hyparquet/src/node.js';"
        f"const file = await asyncBufferFromFile({json.dumps(str(out))});"
        "const rows = await parquetReadObjects({ file });"
        "console.log(JSON.stringify(rows, (_, v) => typeof v === 'bigint' ? Number(v) : v));"
    )
    read = subprocess.run(["node", "--input-type=module", "-e", program], capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr
    told = records(run)
    assert [(r["seq"], r["kind"], r["w"], r["t"]) for r in json.loads(read.stdout)] == [
        (r["seq"], r["kind"], r["w"], r["t"]) for r in told
    ]


def test_sarif_holds_to_its_schema_and_names_what_scoring_finds(run: Path, exported: Callable[..., str]) -> None:
    from jsonschema import Draft7Validator

    from deskcert.scoring import score

    told = json.loads(exported("sarif"))
    schema = json.loads((HERE.parent / "report" / "schemas" / "sarif-2.1.0.json").read_text())
    assert [e.message for e in Draft7Validator(schema).iter_errors(told)] == []
    verdict = score([run], [ProjectKey.load(run.parent / "key").vkey]).as_json()
    found = sorted(r["ruleId"] for r in told["runs"][0]["results"])
    assert found == sorted(f["rule"] for f in verdict["findings"])
    assert found


def test_duckdb_answers_as_sqlite_does(run: Path) -> None:
    pytest.importorskip("duckdb")
    from deskcert.audit.query import NAMED

    for name in NAMED:
        answers = [call("query", run, name, "--engine", engine, "--json") for engine in ("sqlite", "duckdb")]
        assert [a.exit_code for a in answers] == [0, 0], answers[1].output
        assert answers[0].stdout == answers[1].stdout, name


@pytest.mark.parametrize(
    "sql",
    ["drop table runs", "select 1; select 2", "copy runs to '/dev/null'", "select * from read_text('/etc/hostname')"],
)
def test_duckdb_only_reads_and_only_its_tables(run: Path, sql: str) -> None:
    done = CliRunner().invoke(ledger, ["query", str(run), sql, "--engine", "duckdb"])
    assert type(done.exception).__name__ == "UsageError"


@pytest.mark.parametrize("form", ["ocsf", "cef", "otlp", "har", "csv"])
def test_the_same_run_gives_the_same_bytes(exported: Callable[..., str], form: str) -> None:
    assert exported(form) == exported(form)


@pytest.mark.parametrize("form", ["ocsf", "cef", "otlp", "har"])
def test_what_was_changed_is_not_exported(run: Path, tmp_path: Path, form: str) -> None:
    import shutil

    changed = tmp_path / "run"
    shutil.copytree(run, changed)
    path = changed / "ledger.jsonl"
    path.write_bytes(path.read_bytes().replace(b"no-delete", b"no-delexe", 1))
    done = call("export", changed, "--to", form, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "tampered with" in done.output
    assert not (tmp_path / "out").exists()


def test_an_option_of_another_format_is_refused(run: Path, tmp_path: Path) -> None:
    done = call("export", run, "--to", "cef", "--with-openings", "--out", tmp_path / "out")
    assert type(done.exception).__name__ == "UsageError"
