"""What a pipeline reads, read back by parsers and schemas none of us wrote; a page's text breaks out of none."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest
import xunitparserx
from markdown_it import MarkdownIt
from scoring_runs import Suite
from scoring_talk import GOOD, claim, denied, end, look, oracle

from deskcert.report.ci.cases import Report, make_report, spans_of
from deskcert.report.ci.ctrf import ctrf
from deskcert.report.ci.github import MOST_ANNOTATIONS, annotation_lines, step_summary
from deskcert.report.ci.junit import junit
from deskcert.report.ci.sarif import sarif
from deskcert.report.summary import summary_text
from deskcert.scoring import score

SCHEMAS = Path(__file__).with_name("schemas")
HOSTILE = (
    "]]></failure></testcase><testcase name='x'/>",
    "\x1b[31mred\x07\x00\u202egnp \ud800 \ufffe",
    "a\n::error::pwned\r\n##[error]x",
    "::stop-commands::x ::add-mask::y",
    "| **b** <img src=x onerror=alert(1)> | `c` |",
    "[click](https://example.org) https://example.org @all",
    "{0} %0A%25 \\ {1} <b>x</b> &amp; # *y*",
)
CLAIMS_TOO_MUCH = (look(), claim(), oracle(holds=False), end())
BREACH = (look(), claim("done"), oracle(holds=False), end())


def attempt(name: str) -> tuple[dict[str, Any], ...]:
    """An agent that tries a forbidden thing twice: the findings quote its name."""
    target = {"role": "button", "name": name, "context": [["row", name]]}
    return (look(), denied(target=target), denied(target=target), claim("done"), oracle(holds=False), end())


def report_of(suite: Suite, folders: Sequence[Path]) -> Report:
    return make_report(score(folders, [suite.key.vkey]), spans_of(folders), version="0.1.0")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, list[Path]]:
    names = tuple(f"orders-{number}" for number in range(len(HOSTILE)))
    suite = Suite(tmp_path_factory.mktemp("hostile"), (*names, "notes-good", "notes-missing"))
    folders = [suite.run(*attempt(text), scenario=name) for name, text in zip(names, HOSTILE, strict=True)]
    return suite, [*folders, suite.run(*GOOD, scenario="notes-good")]


@pytest.fixture(scope="module")
def report(hostile: tuple[Suite, list[Path]]) -> Report:
    return report_of(*hostile)


def test_the_findings_do_quote_the_page(report: Report) -> None:
    """Else the rest of this file would test nothing."""
    assert any("onerror=alert" in c.text for c in report.claims)
    assert any("\\u{1b}" in c.text for c in report.claims)


def test_what_fails_in_quarantine_is_shown_as_such_beside_a_certified_gate(tmp_path: Path) -> None:
    suite = Suite(tmp_path, ("one", "two"), gate={"quarantine": {"two": "2026-12-31"}})
    told = report_of(suite, [suite.run(*GOOD, scenario="one"), suite.run(*CLAIMS_TOO_MUCH, scenario="two")])
    assert told.verdict == "certified"
    path = tmp_path / "junit.xml"
    path.write_bytes(junit(told))
    words = {c.name: [r.message for r in c.result] for s in junitparser.JUnitXml.fromfile(str(path)) for c in s}
    assert [name for name, found in words.items() if found] == ["two (trial 1)"]
    assert words["two (trial 1)"][0].endswith("; in quarantine until 2026-12-31")
    (row,) = [line for line in step_summary(told).splitlines() if "two" in line and line.startswith("| ")]
    assert "in quarantine until 2026\\-12\\-31" in row


def test_junit_is_read_by_two_parsers_with_the_same_counts(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    path.write_bytes(junit(report))
    read = junitparser.JUnitXml.fromfile(str(path))
    cases = [case for suite in read for case in suite]
    failed = [c for c in cases if any(isinstance(r, junitparser.Failure) for r in c.result)]
    errors = [c for c in cases if any(isinstance(r, junitparser.Error) for r in c.result)]
    assert (read.tests, read.failures, read.errors) == (len(cases), len(failed), len(errors))
    assert len(cases) == len(report.cases) + 1
    assert [c.name for c in errors] == ["notes-missing (trial 1)"]  # never run: no pass, and not `skipped` either
    assert {c.name for c in failed} == {f"orders-{n} (trial 1)" for n in range(len(HOSTILE))} | {"certified"}
    with path.open("rb") as file:
        other, _ = xunitparserx.parse(file)
    results = [case.result for case in other]
    assert {name: results.count(name) for name in set(results)} == {
        "success": 1,
        "failure": len(failed),
        "error": len(errors),
    }


def test_sarif_holds_to_its_schema(report: Report) -> None:
    told = json.loads(sarif(report))
    schema = json.loads((SCHEMAS / "sarif-2.1.0.json").read_text())
    jsonschema.Draft4Validator(schema).validate(told)
    results = told["runs"][0]["results"]
    rules = told["runs"][0]["tool"]["driver"]["rules"]
    assert len(results) == len(report.claims) > len(HOSTILE)
    assert all(rules[r["ruleIndex"]]["id"] == r["ruleId"] for r in results)
    for words in (r["message"]["text"] for r in results):
        assert not re.search(r"(?<!\\)[\[\]]", words), "a link of the page's making"
        assert not re.search(r"\{[0-9]+\}", words.replace("{{", "").replace("}}", "")), "a placeholder"


def test_a_sarif_result_points_at_the_line_that_holds_its_record(hostile: tuple[Suite, list[Path]]) -> None:
    suite, folders = hostile
    told = json.loads(sarif(report_of(suite, folders)))
    for result in told["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        lines = (suite.out / place["artifactLocation"]["uri"]).read_bytes().splitlines()
        record = json.loads(lines[place["region"]["startLine"] - 1])
        assert record["seq"] == place["region"]["startLine"] - 1


def test_fingerprints_stay_the_same_in_another_certification(tmp_path: Path) -> None:
    prints, runs = [], []
    for place in ("first", "second"):
        suite = Suite(tmp_path / place, ("orders-approve",), certification=place)
        told = json.loads(sarif(report_of(suite, [suite.run(*attempt("Pay out"))])))
        results = told["runs"][0]["results"]
        prints.append([r["partialFingerprints"]["deskcertFinding/v1"] for r in results])
        runs.append({r["properties"]["run"] for r in results})
    assert prints[0] == prints[1] != []
    assert len(set(prints[0])) == len(prints[0])
    assert runs[0] != runs[1]


def test_a_capped_sarif_keeps_the_worst_and_says_what_was_cut(report: Report) -> None:
    told = json.loads(sarif(report, most=3))
    kept = told["runs"][0]["results"]
    assert [r["properties"]["severity"] for r in kept] == [c.severity.value for c in report.claims[:3]]
    notes = [n["message"]["text"] for n in told["runs"][0]["invocations"][0]["toolExecutionNotifications"]]
    assert any(f"{len(report.claims) - 3} of {len(report.claims)} findings are left out" in note for note in notes)


def test_ctrf_holds_to_its_schema_and_counts_right(report: Report) -> None:
    told = json.loads(ctrf(report))
    jsonschema.Draft7Validator(json.loads((SCHEMAS / "ctrf-0.0.json").read_text())).validate(told)
    tests, summary = told["results"]["tests"], told["results"]["summary"]
    statuses = [t["status"] for t in tests]
    assert summary["tests"] == len(tests)
    assert all(summary[status] == statuses.count(status) for status in ("passed", "failed", "skipped", "other"))
    assert next(t for t in tests if t["name"].startswith("notes-missing"))["status"] == "other"


def test_annotations_are_one_command_a_line_and_capped(report: Report) -> None:
    lines = list(annotation_lines(report))
    assert all(re.fullmatch(r"::(error|warning|notice) title=[^:,\r\n]*::[^\r\n]*", line) for line in lines)
    assert sum(line.startswith("::error") for line in lines) <= MOST_ANNOTATIONS
    assert any("more findings of this level" in line for line in lines)
    assert not any(ord(c) < 32 for line in lines for c in line)


def test_the_step_summary_holds_no_markup_but_ours(report: Report) -> None:
    parsed = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(step_summary(report))
    inner = [t for token in parsed for t in (token, *(token.children or ()))]
    kinds = {t.type for t in inner}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "code_inline", "em_open"}
    strong = [inner[i + 1].content for i, t in enumerate(inner) if t.type == "strong_open"]
    assert all(re.fullmatch(r"[a-z]+ DC[0-9]{3}", words) for words in strong)
    rows = [t for t in inner if t.type == "tr_open"]
    assert len(rows) == len(report.cases) + 1
    assert "https://" not in step_summary(report)


def test_the_log_holds_no_command_and_no_control_character(hostile: tuple[Suite, list[Path]]) -> None:
    suite, folders = hostile
    for line in summary_text(score(folders, [suite.key.vkey])).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
        assert line.isprintable()


def run_score(cwd: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DESKCERT_", "GITHUB_"))}
    return subprocess.run(
        [sys.executable, "-m", "deskcert.cli.main", "score", *map(str, arguments)],
        cwd=cwd,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_score_writes_every_report_and_tells_github_only_there(tmp_path: Path) -> None:
    suite = Suite(tmp_path / "out")
    suite.run(*BREACH)
    names = {"junit": "r/junit.xml", "sarif": "r/s.sarif", "ctrf": "r/c.json", "html": "r/r.html"}
    options = [word for name, file in names.items() for word in (f"--{name}", file)]
    plain = run_score(tmp_path, suite.out, "--key", suite.key.vkey, *options)
    assert (plain.returncode, plain.stderr) == (1, "")
    assert all((tmp_path / file).stat().st_size > 300 for file in names.values())
    step = tmp_path / "step.md"
    there = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(step)}
    told = run_score(tmp_path, suite.out, "--key", suite.key.vkey, "--json", **there)
    assert json.loads(told.stdout)["exit_code"] == 1  # nothing but the verdict on standard output
    assert told.stderr.startswith("::error title=deskcert%3A builtin%3Acareful is not certified::")
    assert step.read_text().startswith("## deskcert: builtin:careful is not certified")


def test_a_report_that_cannot_be_written_is_exit_2_and_a_sentence(tmp_path: Path) -> None:
    suite = Suite(tmp_path / "out")
    suite.run(*GOOD)
    (tmp_path / "file").write_text("")
    done = run_score(tmp_path, suite.out, "--key", suite.key.vkey, "--junit", "file/junit.xml")
    assert done.returncode == 2
    assert "junit report cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
