"""A certificate against what is in use now, and the badge that is made of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from scoring_runs import Suite
from scoring_talk import GOOD, claim, end, look, oracle

from deskcert.certify.changes import InUse, changes, in_use
from deskcert.certify.config import Overrides, load_settings
from deskcert.certify.start_record import versions
from deskcert.certify.suite import load_suites, policy_for, select
from deskcert.certify.suite_certificate import write_suite_certificate
from deskcert.report.ci.badge import badge_of
from deskcert.report.summary import summary_text
from deskcert.scoring import score
from deskcert_ledger.certificate import check_certificate
from deskcert_schema.validate import digest

BAD = (look(), claim(), oracle(holds=False), end())
DAY = ("--at", "1970-01-20")
"""The ledgers of these tests are of 1970."""


def deskcert(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DESKCERT_", "GITHUB_"))}
    command = [sys.executable, "-m", "deskcert.cli.main", *arguments]
    return subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Suite, dict[str, Any]]:
    """A project as `deskcert init` begins it, with an agent, and a certificate of exactly these files."""
    project = tmp_path_factory.mktemp("project")
    assert deskcert(project, "init", ".").returncode == 0
    (project / "my_agent.py").write_text("print('hello')\n")
    settings = load_settings(Overrides(), cwd=project)
    used = load_suites(settings.suites, base=settings.base, policy=settings.policy)
    (scenario,) = used.scenarios
    policy, policy_digest = policy_for(used, scenario)
    suite = Suite(project / "out", (scenario.id,))
    folder = suite.run(
        *GOOD,
        scenario=scenario.id,
        start_more={
            "agent": settings.agent.recorded(),
            "suite": {"name": used.name, "digest": used.digest},
            "policy": {"digest": policy_digest, "content": policy},
            "schema": {"digest": digest()},
            "versions": dict(versions(None)) | {"browser": "1.2.3.4"},
        },
    )
    verdict = score([folder], [suite.key.vkey])
    (suite.out / "verdict.json").write_bytes(verdict.as_bytes())
    assert write_suite_certificate(suite.out, verdict, [folder], suite.key)
    told = check_certificate((suite.out / "suite.intoto.jsonl").read_bytes(), [suite.key.verifier])
    return project, suite, told.statement.predicate


def rewritten(path: Path, change: Callable[[str], str]) -> Callable[[], None]:
    kept = path.read_text()
    path.write_text(change(kept))
    return lambda: (path.write_text(kept), None)[1]


@pytest.mark.parametrize(
    ("file", "change", "what"),
    [
        ("my_agent.py", lambda text: text + "# more\n", {"agent file my_agent.py"}),
        ("deskcert.yaml", lambda text: text.replace("my_agent.py]", "my_agent.py, --fast]"), {"agent"}),
        ("policy.yaml", lambda text: text.replace("default: allow", "default: deny", 1), {"policy", "suite"}),
        (
            "scenarios/approve-an-order.yaml",
            lambda text: text.replace("Approve no other order.", "Approve no other."),
            {"suite"},
        ),
    ],
)
def test_a_change_revokes_and_is_named(
    certified: tuple[Path, Suite, dict[str, Any]], file: str, change: Callable[[str], str], what: set[str]
) -> None:
    project, _, predicate = certified
    now = in_use(Overrides(), project)
    assert [c.what for c in changes(predicate, now)[0] if c.revokes] == []
    restore = rewritten(project / file, change)
    try:
        found, _ = changes(predicate, in_use(Overrides(), project))
    finally:
        restore()
    assert {c.what for c in found if c.revokes} == what


def test_another_browser_or_deskcert_is_told_and_revokes_nothing(
    certified: tuple[Path, Suite, dict[str, Any]],
) -> None:
    project, _, predicate = certified
    now = in_use(Overrides(), project)
    assert now.versions["browser"].count(".") >= 2  # asked of the browser that is installed
    found, _ = changes(predicate, replace(now, versions=dict(now.versions) | {"deskcert": "9.9"}))
    assert {c.what: c.revokes for c in found} == {"browser": False, "deskcert": False}
    assert any(c.text == f"browser was 1.2.3.4, and is {now.versions['browser']} here" for c in found)


def test_a_certificate_of_a_part_of_the_suite_or_by_another_gate_says_so(
    certified: tuple[Path, Suite, dict[str, Any]],
) -> None:
    """The digest of the suite is the whole suite's, also where `--only` left out what the agent fails at."""
    project, _, predicate = certified
    now = in_use(Overrides(), project)
    assert {c.what for c in changes(predicate, now)[0]} == {"browser"}
    more = replace(now, scenarios=(*now.scenarios, "refund-an-order"))
    (part,) = [c for c in changes(predicate, more)[0] if c.what == "scenarios"]
    assert part.text == "it is about 1 of the suite's 2 scenarios; not about refund-an-order"
    restore = rewritten(project / "deskcert.yaml", lambda text: text.replace("fail_on: high", "fail_on: medium"))
    try:
        stricter = in_use(Overrides(), project)
    finally:
        restore()
    (gate,) = [c for c in changes(predicate, stricter)[0] if c.what == "gate"]
    assert gate.text == "it was decided by another gate than the one in use: fail_on"


def test_verify_says_what_is_in_quarantine_and_what_is_not_covered(tmp_path: Path) -> None:
    suite = Suite(tmp_path, ("one", "two"), gate={"quarantine": {"two": "2026-12-31"}})
    folders = [suite.run(*GOOD, scenario="one"), suite.run(*BAD, scenario="two")]
    assert write_suite_certificate(tmp_path, score(folders, [suite.key.vkey]), folders, suite.key)
    done = deskcert(tmp_path, "certificate", "verify", "suite.intoto.jsonl", "--key", suite.key.vkey, *DAY)
    assert "in quarantine: two, until 2026-12-31; counted only where unsafe" in done.stdout
    assert "not covered: whether what was recorded is true" in done.stdout


def test_what_cannot_be_compared_is_named_and_not_passed_over(
    certified: tuple[Path, Suite, dict[str, Any]],
) -> None:
    found, skipped = changes(certified[2], InUse())
    assert found == []
    assert {"agent", "policy", "suite", "schema", "browser", "deskcert"} <= set(skipped)


def test_the_command_says_what_changed(certified: tuple[Path, Suite, dict[str, Any]], tmp_path: Path) -> None:
    project, suite, _ = certified
    words = ("certificate", "verify", "out/suite.intoto.jsonl", "--key", suite.key.vkey, "--json")
    good = deskcert(project, *words, *DAY)
    told = json.loads(good.stdout)
    assert (good.returncode, told["holds"], told["problems"]) == (0, True, [])
    assert [c["what"] for c in told["changed"]] == ["browser"]
    assert deskcert(project, *words, *DAY, "--strict").returncode == 1
    late = deskcert(project, *words)
    assert late.returncode == 1
    assert any("it expired on 1970-" in problem for problem in json.loads(late.stdout)["problems"])
    restore = rewritten(project / "my_agent.py", lambda text: text + "#\n")
    try:
        other = deskcert(project, *words, *DAY)
    finally:
        restore()
    assert other.returncode == 1
    assert json.loads(other.stdout)["problems"] == [
        "revoked: the agent file my_agent.py in use is not the one that was certified"
    ]
    away = deskcert(tmp_path, "certificate", "verify", str(suite.out / "suite.intoto.jsonl"), *words[3:], *DAY)
    assert away.returncode == 0
    assert any("there is no deskcert.yaml here" in text for text in json.loads(away.stdout)["not_checked"])


def test_a_certificate_that_says_not_certified_is_no_pass(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    folder = suite.run(*BAD)
    verdict = score([folder], [suite.key.vkey])
    assert write_suite_certificate(tmp_path, verdict, [folder], suite.key)
    done = deskcert(tmp_path, "certificate", "verify", "suite.intoto.jsonl", "--key", suite.key.vkey, *DAY)
    assert done.returncode == 1
    assert "not certified" in done.stdout
    found = check_certificate((tmp_path / "suite.intoto.jsonl").read_bytes(), [suite.key.verifier])
    badge = badge_of(found, datetime(1970, 1, 20, tzinfo=UTC))
    assert (badge.message, badge.colour) == ("not certified 0/1", "red")


def test_a_badge_says_what_the_certificate_says(certified: tuple[Path, Suite, dict[str, Any]], tmp_path: Path) -> None:
    _, suite, _ = certified
    file, key = str(suite.out / "suite.intoto.jsonl"), ("--key", suite.key.vkey)
    made = deskcert(tmp_path, "certificate", "badge", file, *key, *DAY, "--svg", "b.svg", "--json", "b.json")
    assert made.returncode == 0, made.stderr
    told = json.loads((tmp_path / "b.json").read_text())
    assert told == {
        "schemaVersion": 1,
        "label": "deskcert",
        "message": "certified 1/1 until 1970-04-01",
        "color": "brightgreen",
    }
    image = Xml.parse(tmp_path / "b.svg").getroot()
    assert image.get("aria-label") == f"deskcert: {told['message']}"


def test_no_badge_is_made_of_a_certificate_that_expired_or_was_forged(
    certified: tuple[Path, Suite, dict[str, Any]], tmp_path: Path
) -> None:
    _, suite, _ = certified
    raw = (suite.out / "suite.intoto.jsonl").read_bytes()
    (tmp_path / "good").write_bytes(raw)
    (tmp_path / "forged").write_bytes(raw[:200] + bytes([raw[200] ^ 1]) + raw[201:])
    key = ("--key", suite.key.vkey)
    late = deskcert(tmp_path, "certificate", "badge", "good", *key, "--svg", "b.svg")
    forged = deskcert(tmp_path, "certificate", "badge", "forged", *key, *DAY, "--svg", "b.svg")
    assert (late.returncode, "expired" in late.stderr) == (1, True)
    assert forged.returncode in (1, 2)
    assert not (tmp_path / "b.svg").exists()
    assert deskcert(tmp_path, "certificate", "badge", "good", *DAY, "--svg", "b.svg").returncode == 3


def test_a_part_of_a_suite_never_has_a_green_badge(tmp_path: Path) -> None:
    """`deskcert ci --only` may certify, and what it certifies is said in yellow, by the verdict, and by verify."""
    suite = Suite(tmp_path)
    told = {"suite": {"name": "builtin:core", "digest": "1" * 64, "scenarios": 24}}
    folders = [suite.run(*GOOD, start_more=told)]
    verdict = score(folders, [suite.key.vkey])
    assert (verdict.certified, verdict.scope) == (True, (1, 24))
    assert verdict.as_json()["scope"] == {"scenarios": 1, "of": 24}
    assert "only 1 of the suite's 24 scenarios" in summary_text(verdict)
    (tmp_path / "verdict.json").write_bytes(verdict.as_bytes())
    write_suite_certificate(tmp_path, verdict, folders, suite.key)
    file = tmp_path / "suite.intoto.jsonl"
    found = check_certificate(file.read_bytes(), [suite.key.verifier])
    assert (
        "23 of the suite's 24 scenarios: they were not run (--only, --tag)" in found.statement.predicate["not_covered"]
    )
    badge = badge_of(found, datetime(1970, 1, 20, tzinfo=UTC))
    assert (badge.message, badge.colour) == ("partial: 1 of 24 scenarios until 1970-04-01", "yellow")
    assert b"#8a6100" in badge.as_svg()


def test_a_whole_suite_is_no_part(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    told = {"suite": {"name": "builtin:core", "digest": "1" * 64, "scenarios": 1}}
    verdict = score([suite.run(*GOOD, start_more=told)], [suite.key.vkey])
    assert verdict.scope is None
    assert "scope" not in verdict.as_json()


def test_what_is_left_out_of_a_suite_is_still_counted() -> None:
    whole = load_suites(["builtin:core"], base=Path.cwd(), policy=None)
    assert select(whole, "orders-rerender").size == whole.size == len(whole.scenarios) == 24
